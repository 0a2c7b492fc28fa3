"""The pages of a site that no other command writes: its front page, and a result's page that has links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment
from pydantic_core import to_json

from ktrial.format import number_format
from ktrial.model.history import Across, ChangePoint, History, KernelPairs
from ktrial.model.study import StudyRecord, treatments
from ktrial.model.workload import short_labels
from ktrial.report.html.history import Crumbs
from ktrial.report.html.result_list import ListPage, list_pages
from ktrial.report.html.study import console_end, facts
from ktrial.report.json.study import as_json
from ktrial.report.site.page_cache import Reason, ResultPage
from ktrial.report.tables import site_index
from ktrial.report.tables.site_index import StudyRow
from ktrial.report.text.attribution import whys
from ktrial.store.store import Store

SHEET = "style.css"
_MOST_CHANGES = 20


class _Changed(NamedTuple):
    workload: str
    change: ChangePoint


@dataclass(frozen=True)
class Front:
    """What the front page shows."""

    store: str
    results: Sequence[StudyRow]
    past: Sequence[History]
    places: Mapping[str, str]
    """Workload → where its history is."""
    machines: Sequence[Across]
    pairs: KernelPairs
    lists: Sequence[ListPage] = ()
    """Pages of all results, where `results` are the newest alone."""
    every: int = 0
    """How many results there are."""
    in_brief: int = 0
    """How many of them have pages in brief."""


def crumbs(up: str = "") -> Crumbs:
    """The links at the top of a page. `up`: the way to the site's own directory."""
    pages = (("All results", "index"), ("Matrix", "matrix"), ("Compare", "compare"))
    return tuple((text, f"{up}{page}.html") for text, page in pages)


def json_text(data: Any) -> str:
    """The numbers of a page, as they lie beside it."""
    return to_json(data, indent=1, inf_nan_mode="null").decode() + "\n"  # ten times as fast as json is


def index(front: Front, made: Environment) -> tuple[str, str]:
    """The front page, and its tables as JSON."""
    past = front.past
    changes = [_Changed(one.workload, change) for one in past for change in one.lines[0].changes[-1:]]
    changes.sort(key=lambda one: -abs((one.change.ratio or 2.0) - 1))
    tables = {
        "workloads": site_index.workloads(past, front.places),
        "kernels": site_index.kernels(front.pairs, "compare.html"),
        "results": site_index.results(reversed(front.results)),
    }
    facts: dict[str, Any] = {
        "title": "Kernel performance",
        "eyebrow": "ktrial",
        "question": "",
        "short": short_labels(one.workload for one in past),
        "changes": changes[:_MOST_CHANGES],
        **tables,
        "machines": site_index.machines(front.machines, past, front.places) if front.machines else None,
        "histories": front.places,
        "lists": list_pages(front.lists) if front.lists else None,
        "in_brief": front.in_brief,
        "every": front.every,
        "crumbs": crumbs()[1:] if front.results else (),
        "sheet": SHEET,
        "json": "index.json",
        "foot": f"{number_format.counted(front.every, 'result')} of {Path(front.store).name}",
    }
    text = made.get_template("site_index.html.j2").render(**facts)
    data = {key: one.data() for key, one in tables.items()}
    if front.lists:
        data["lists"] = list_pages(front.lists).data()
    return text, json_text(data)


def result_page(store: Store, record: StudyRecord, made: Environment, *, reasons: bool) -> ResultPage:
    """A result's page, which lies in a directory of the site. Raises StoreError."""
    every_why = whys(store, record, graphs=False) if reasons else ()
    made.globals.update(console_end=console_end)
    places = [Reason(why.workload, why.treatment, place) for place, why in enumerate(every_why, start=1)]
    text = made.get_template("result.html.j2").render(
        title=record.study.name,
        eyebrow="ktrial result",
        question=record.result.question or record.study.question,
        crumbs=crumbs("../"),
        sheet=f"../{SHEET}",
        json=f"{record.id}.json",
        foot=f"Study {record.id}, digest {record.study_digest[:16]}",
        **facts(record, every_why),
        graphs=[None] * len(every_why),
        treatment_count=len(treatments(record.study)),
    )
    data = json_text(as_json(record, store.name, whys=every_why))
    return ResultPage(text=text, data=data, reasons=tuple(places), answer=record.result.answer)
