"""The pages of a site that no other command writes: its front page, and a result's page that has links."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from jinja2 import Environment
from pydantic_core import to_json

from ktrial.format import labels, number_format
from ktrial.format.sanitize import beginning
from ktrial.format.table import Cell, Column, Field, Kind, Table, change, name, own, table
from ktrial.model.history import Across, ChangePoint, History, KernelPairs, MeasuredKernel, OnSystem
from ktrial.model.study import StudyRecord, treatments
from ktrial.model.workload import short_labels
from ktrial.report.attribution import whys
from ktrial.report.csv_and_json import record_as_json
from ktrial.report.history import Crumbs
from ktrial.report.site.page_cache import Reason, ResultPage
from ktrial.report.study_page import console_end, study_facts
from ktrial.store.store import Store
from ktrial.store.study_rows import StoredStudy

# The pages of a site that no other command writes: its front page, and a result's page that has links.

SHEET = "style.css"


_MOST_CHANGES = 20


class _Changed(NamedTuple):
    workload: str
    change: ChangePoint


# The pages of a site that list results, where these are more than its front page shows.


class ListPage(NamedTuple):
    """A page of results."""

    page: str
    first: int
    last: int
    """The numbers of its first and its last result."""
    begun: datetime
    ended: datetime
    """When these were made."""
    results: int


class StudyRow(NamedTuple):
    """One result of the site."""

    study: str
    number: int
    created: datetime
    answer: str
    page: str
    in_brief: bool = False
    """Whether its page has the verdicts alone."""


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
        "workloads": workloads(past, front.places),
        "kernels": kernels(front.pairs, "compare.html"),
        "results": results(reversed(front.results)),
    }
    study_facts: dict[str, Any] = {
        "title": "Kernel performance",
        "eyebrow": "ktrial",
        "question": "",
        "short": short_labels(one.workload for one in past),
        "changes": changes[:_MOST_CHANGES],
        **tables,
        "machines": machines(front.machines, past, front.places) if front.machines else None,
        "histories": front.places,
        "lists": list_pages(front.lists) if front.lists else None,
        "in_brief": front.in_brief,
        "every": front.every,
        "crumbs": crumbs()[1:] if front.results else (),
        "sheet": SHEET,
        "json": "index.json",
        "foot": f"{number_format.counted(front.every, 'result')} of {Path(front.store).name}",
    }
    text = made.get_template("site_index.html.j2").render(**study_facts)
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
        **study_facts(record, every_why),
        graphs=[None] * len(every_why),
        treatment_count=len(treatments(record.study)),
    )
    data = json_text(record_as_json(record, store.name, whys=every_why))
    return ResultPage(text=text, data=data, reasons=tuple(places), answer=record.result.answer)


class Around(NamedTuple):
    """A page of results, and those beside it."""

    page: ListPage
    newer: ListPage | None
    older: ListPage | None


class NamedResult(NamedTuple):
    """A result by its name alone."""

    study: str
    number: int
    page: str


def list_pages(pages: Iterable[ListPage]) -> Table:
    """A row a page."""
    return table(_LISTS, pages, "lists")


def result_list(
    rows: Sequence[StudyRow], around: Around, crumbs: Crumbs, sheet: str, made: Environment
) -> tuple[str, Table]:
    """A page of results, the newest first, and its table."""
    shown, own_page = results(reversed(rows)), around.page
    text = made.get_template("site_list.html.j2").render(
        title=f"Results {own_page.first} to {own_page.last}",
        results=shown,
        newer=around.newer,
        older=around.older,
        json=f"{own_page.page.rpartition('/')[2].removesuffix('.html')}.json",
        **_shared(len(rows), crumbs, sheet),
    )
    return text, shown


def names_page(results: Sequence[NamedResult], crumbs: Crumbs, sheet: str, made: Environment) -> str:
    """All results' names, in alphabetical order."""
    shared = _shared(len(results), crumbs, sheet)
    text: str = made.get_template("site_names.html.j2").render(
        title="Results by name", names=results, json="names.json", **shared
    )
    return text


def _shared(results: int, crumbs: Crumbs, sheet: str) -> dict[str, object]:
    foot = number_format.counted(results, "result")
    return {"eyebrow": "ktrial", "question": "", "crumbs": crumbs, "sheet": sheet, "foot": foot}


def _count(value: int) -> Cell:
    return Cell(value, str(value))


_LISTS: tuple[Field[ListPage], ...] = (
    Field(Column("numbers", "numbers"), lambda row: name(f"{row.first} to {row.last}", link=row.page)),
    Field(Column("begun", "from"), lambda row: own(number_format.moment(row.begun))),
    Field(Column("ended", "to"), lambda row: own(number_format.moment(row.ended))),
    Field(Column("results", "results", numeric=True), lambda row: _count(row.results)),
)


# The tables of a site's front page: workloads, kernels, changes machine by machine, results.

_LONGEST_ANSWER = 240


_IN_BRIEF = ("in brief",)


class _Past(NamedTuple):
    history: History
    name: str
    page: str


class _Kernel(NamedTuple):
    kernel: MeasuredKernel
    page: str


class _Machines(NamedTuple):
    across: Across
    name: str
    page: str


def workloads(past: Iterable[History], pages: Mapping[str, str]) -> Table:
    """A row a workload. `pages`: its name → the page of its history."""
    every = list(past)
    short = short_labels(one.workload for one in every)
    rows = [_Past(one, short[one.workload], pages[one.workload]) for one in every]
    return table(_WORKLOADS, rows, "workloads")


def kernels(pairs: KernelPairs, page: str) -> Table:
    """A row a kernel, the newest first. `page`: where it is compared with the one before it."""
    before = ("", *(one.name for one in pairs.kernels))
    rows = [
        _Kernel(one, f"{page}#?{_chosen(old, one.name)}")
        for old, one in zip(before, pairs.kernels, strict=False)
    ]
    return table(_KERNELS, reversed(rows), "measured-kernels")


def _chosen(old: str, new: str) -> str:
    return urlencode({"from": old, "to": new} if old else {"to": new})


def machines(changes: Iterable[Across], past: Iterable[History], pages: Mapping[str, str]) -> Table:
    """A row a change that several machines measured; names are as short as in the table of workloads."""
    short = short_labels(one.workload for one in past)
    rows = [_Machines(one, short[one.workload], pages[one.workload]) for one in changes]
    return table(_MACHINES, rows, "machines")


def results(studies: Iterable[StudyRow]) -> Table:
    """A row a stored study."""
    return table(_RESULTS, studies, "results")


def first_to_last(past: History) -> float | None:
    """The last value of a history's first line by its first one; None where it has no such values."""
    values = [point.value for point in past.lines[0].points if point.value is not None]
    return values[-1] / values[0] if values and values[0] > 0 else None


def _site_index_count(value: int) -> Cell:
    return Cell(value, str(value))


def _on_each(systems: Iterable[OnSystem]) -> Cell:
    each = "; ".join(
        f"{number_format.change(one.ratio)} on {one.system.cpu_model or one.system.machine}"
        for one in systems
    )
    return Cell(each, each, Kind.PROSE)


def _agreement(across: Across) -> Cell:
    said = labels.AGREEMENTS[across.agreement]
    text = said if across.p is None else f"{said} (p {across.p:.2g})"
    return Cell(across.agreement, text, notes=(across.reason,) if across.reason else ())


def _answer(text: str) -> Cell:
    return Cell(text, beginning(text, _LONGEST_ANSWER), Kind.PROSE)


_WORKLOADS: tuple[Field[_Past], ...] = (
    Field(Column("workload", "workload"), lambda row: name(row.name, link=row.page)),
    Field(
        Column("versions", "versions", numeric=True),
        lambda row: _site_index_count(len(row.history.lines[0].points)),
    ),
    Field(
        Column("changes", "change points", numeric=True),
        lambda row: _site_index_count(len(row.history.lines[0].changes)),
    ),
    Field(Column("ratio", "first to last", numeric=True), lambda row: change(first_to_last(row.history))),
)


_KERNELS: tuple[Field[_Kernel], ...] = (
    Field(Column("kernel", "kernel"), lambda row: name(row.kernel.name, link=row.page)),
    Field(Column("release", "release"), lambda row: name(row.kernel.release)),
    Field(
        Column("workloads", "workloads", numeric=True), lambda row: _site_index_count(row.kernel.workloads)
    ),
)


_MACHINES: tuple[Field[_Machines], ...] = (
    Field(Column("workload", "workload"), lambda row: name(row.name, link=row.page)),
    Field(Column("change", "change"), lambda row: name(f"{row.across.before} → {row.across.after}")),
    Field(Column("systems", "on each machine"), lambda row: _on_each(row.across.systems)),
    Field(Column("agreement", "machine × version"), lambda row: _agreement(row.across)),
)


_RESULTS: tuple[Field[StudyRow], ...] = (
    Field(
        Column("study", "study"),
        lambda row: name(row.study, link=row.page, notes=_IN_BRIEF if row.in_brief else ()),
    ),
    Field(Column("answer", "answer"), lambda row: _answer(row.answer)),
    Field(Column("created", "made"), lambda row: own(number_format.moment(row.created))),
    Field(Column("number", "number", numeric=True), lambda row: _site_index_count(row.number)),
)


# Where all results are listed, where these are more than the front page shows.
#
# Each page has so many results, in the order in which they were made: one that is full stays as it is when
# others come.

A_PAGE = 500
"""Results on a page, and on the front page."""


NAMES = "lists/names"
"""The page of all results' names."""


class ResultLists:
    """The pages that list results; none where the front page has them all."""

    def __init__(self, studies: Sequence[StoredStudy]) -> None:
        """`studies`: all those that have results."""
        ordered = sorted(studies, key=lambda one: one.id)
        self.newest = ordered[-A_PAGE:]
        """Of the front page, the newest last."""
        starts = range(0, len(ordered), A_PAGE) if len(ordered) > A_PAGE else ()
        self._listed = {f"lists/{start // A_PAGE + 1}": ordered[start : start + A_PAGE] for start in starts}

    @property
    def places(self) -> tuple[str, ...]:
        """Of all these pages, relative to the site."""
        return tuple(f"{page}.html" for page in (*self._listed, *([NAMES] if self._listed else ())))

    def studies(self, page: str) -> Sequence[StoredStudy]:
        """Those on a page, by its place without an ending; empty where there is no such page."""
        return self._listed.get(page, ())

    @property
    def pages(self) -> list[ListPage]:
        """All pages, the newest results first."""
        pages = (
            ListPage(f"{page}.html", each[0].id, each[-1].id, each[0].created, each[-1].created, len(each))
            for page, each in self._listed.items()
        )
        return list(pages)[::-1]

    def around(self, page: str) -> Around:
        """A page by its place without an ending. Raises ValueError."""
        pages = self.pages
        at = [one.page for one in pages].index(f"{page}.html")
        newer, older = pages[at - 1] if at else None, pages[at + 1] if at + 1 < len(pages) else None
        return Around(pages[at], newer, older)


# A page that says one thing: that there is nothing to show, or why.


def notice_page(title: str, notice: str, crumbs: Crumbs, sheet: str, json: str, made: Environment) -> str:
    """The page as text. `json`: where its numbers lie; empty: it has none."""
    facts: dict[str, Any] = {
        "title": title,
        "eyebrow": "ktrial",
        "question": "",
        "notice": notice,
        "crumbs": crumbs,
        "sheet": sheet,
        "json": json,
        "foot": "",
    }
    return made.get_template("notice.html.j2").render(**facts)
