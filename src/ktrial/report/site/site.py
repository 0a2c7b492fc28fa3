"""A static site of everything in a store: index, matrix, histories, results. Relative links, no server."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment

from ktrial.analysis.errors import NoMatrix, SiteInTheWay, SiteNotWritten
from ktrial.analysis.history.kernel_pairs import kernel_pairs
from ktrial.analysis.history.series import StudyTrials, history, stored_trials
from ktrial.analysis.machine_agreement import on_several_machines
from ktrial.analysis.result import record_of
from ktrial.format import number_format
from ktrial.model.base import digest
from ktrial.model.history import ChangePoint, History
from ktrial.model.kernel_pairs import KernelPairs
from ktrial.model.machine_agreement import Across
from ktrial.model.matrix import Matrix
from ktrial.model.plan import treatments
from ktrial.model.study_record import StudyRecord
from ktrial.model.workload import short_labels
from ktrial.report.html.history import history_page, site_environment, style
from ktrial.report.html.kernel_pairs import kernel_pairs_page
from ktrial.report.html.matrix import matrix_page
from ktrial.report.html.study import console_end, facts
from ktrial.report.json.study import as_json
from ktrial.report.site.page_cache import PageCache, Reason, ResultPage
from ktrial.report.tables import site_index
from ktrial.report.tables.matrix import matrix
from ktrial.report.tables.site_index import StudyRow
from ktrial.report.text.attribution import whys
from ktrial.store import Store, StoredStudy

MARK = "ktrial-site"
"""The file that tells a directory is one of ktrial's sites."""
_SHEET = "style.css"
_MOST_CHANGES = 20
_SUFFIXES = (".html", ".json")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")

Tell = Callable[[str], None]


class Site(NamedTuple):
    """What was built."""

    front: Path
    pages: int
    made: int
    """Results that were rendered now, and not found in the cache."""


class _Changed(NamedTuple):
    workload: str
    change: ChangePoint


def build(
    store: Store,
    directory: Path,
    *,
    reasons: bool = True,
    tell: Tell = lambda _text: None,
    cache: PageCache | None = None,
) -> Site:
    """Write the site, and take away pages of results that are gone. Raises SiteNotWritten, SiteInTheWay,
    StoreError.

    `reasons`: say what changes are made of, from the profiles in the store: seconds for a new result, once.
    """
    _check(directory)
    try:
        return _Building(store, directory, reasons, tell, cache or PageCache()).all()
    except OSError as error:
        raise SiteNotWritten(directory=directory, problem=error.strerror or str(error)) from error


def _check(directory: Path) -> None:
    try:
        there = sorted(one.name for one in directory.iterdir()) if directory.exists() else []
    except OSError as error:
        raise SiteNotWritten(directory=directory, problem=error.strerror) from error
    if there and MARK not in there:
        raise SiteInTheWay(directory=directory, file=there[0])


@dataclass
class _Building:
    store: Store
    directory: Path
    reasons: bool
    tell: Tell
    cache: PageCache

    def all(self) -> Site:
        studies = [one for one in stored_trials(self.store) if one.trials]
        made = site_environment()
        written: dict[str, str] = {MARK: "A site made by ktrial.\n", _SHEET: str(style())}
        pages = {one.stored.id: f"results/{one.stored.id}.html" for one in studies}
        rendered, fresh = self._results(studies, made)
        for number, page in rendered.items():
            written |= {pages[number]: page.text, _data_place(pages[number]): page.data}
        histories = self._histories(studies, pages, rendered, made)
        for place, (one, text) in histories.items():
            written |= {place: text, _data_place(place): _json(one.model_dump(mode="json"))}
        places = {past.workload: place for place, (past, _) in histories.items()}
        past = [one for one, _ in histories.values()]
        pairs = kernel_pairs(past)
        if studies:
            written |= _matrix_files(_matrix(self.store, studies), rendered, places, made)
            written["compare.html"] = kernel_pairs_page(pairs, places, _crumbs()[:2], _SHEET, made)
            written["compare.json"] = _json(pairs.model_dump(mode="json"))
        results = [_row(one.stored, rendered[one.stored.id].answer, pages) for one in studies]
        machines = on_several_machines(studies, past)
        front = _Front(self.store.name, results, past, places, machines, pairs)
        written |= _index(front, made)
        self._write(written)
        count = sum(place.endswith(".html") for place in written)
        return Site(self.directory / "index.html", count, fresh)

    def _results(
        self, studies: Sequence[StudyTrials], made: Environment
    ) -> tuple[dict[int, ResultPage], int]:
        pages: dict[int, ResultPage] = {}
        fresh = 0
        for number, one in enumerate(studies, start=1):
            proofs = self.store.proofs(one.stored.id)
            key = self.cache.key(one.stored, one.trials, proofs, reasons=self.reasons)
            page = self.cache.get(key)
            if page is None:
                self.tell(f"result {number} of {len(studies)}: {one.stored.study.name}")
                record = record_of(self.store, one.stored, one.trials)
                page = result_page(self.store, record, made, f"../{_SHEET}", reasons=self.reasons)
                self.cache.put(key, page)
                fresh += 1
            pages[one.stored.id] = page
        return pages, fresh

    def _histories(
        self,
        studies: Sequence[StudyTrials],
        pages: Mapping[int, str],
        rendered: Mapping[int, ResultPage],
        made: Environment,
    ) -> dict[str, tuple[History, str]]:
        links = {number: f"../{page}" for number, page in pages.items()}
        baselines = {one.stored.id: treatments(one.stored.study)[0].label for one in studies}
        reasons = {
            (number, one.workload, one.treatment): one.place
            for number, page in rendered.items()
            for one in page.reasons
        }
        proofs = {one.stored.id: self.store.proofs(one.stored.id) for one in studies}
        written: dict[str, tuple[History, str]] = {}
        by_label: dict[str, dict[int, StudyTrials]] = {}
        for one in studies:
            for use in one.stored.study.workloads:
                by_label.setdefault(use.label, {})[one.stored.id] = one
        for label, own in by_label.items():
            past = history(list(own.values()), label)
            if past.lines:
                name = _file_name(label)
                text = history_page(
                    past,
                    links,
                    _crumbs("../"),
                    f"../{_SHEET}",
                    f"{name}.json",
                    made,
                    baselines,
                    reasons,
                    proofs,
                )
                written[f"history/{name}.html"] = (past, text)
        return written

    def _write(self, written: Mapping[str, str]) -> None:
        for place in ("results", "history"):
            (self.directory / place).mkdir(parents=True, exist_ok=True)
            for old in (self.directory / place).iterdir():
                if old.suffix in _SUFFIXES and f"{place}/{old.name}" not in written:
                    old.unlink()
        for place, text in written.items():
            file = self.directory / place
            partial = file.with_name(f".{file.name}.partial")
            partial.write_text(text, encoding="utf-8")
            partial.replace(file)


def _row(stored: StoredStudy, answer: str, pages: Mapping[int, str]) -> StudyRow:
    return StudyRow(stored.study.name, stored.id, stored.created, answer, pages[stored.id])


def _crumbs(up: str = "") -> tuple[tuple[str, str], ...]:
    pages = (("All results", "index"), ("Matrix", "matrix"), ("Compare", "compare"))
    return tuple((text, f"{up}{page}.html") for text, page in pages)


def _data_place(page: str) -> str:
    """Where the numbers of a page lie as JSON: beside it."""
    return f"{page.removesuffix('.html')}.json"


def _json(data: Any) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _file_name(label: str) -> str:
    """Of a workload's label: what every file system takes, and no two labels share."""
    plain = _UNSAFE.sub("_", label)[:80].strip(".")
    return plain if plain == label else f"{plain}-{digest(label)[:8]}"


def _matrix(store: Store, studies: Sequence[StudyTrials]) -> Matrix | None:
    """Of the study with the most treatments and workloads; of several the newest."""
    by_size = sorted(studies, key=lambda one: (_cells(one.stored), one.stored.id), reverse=True)
    for one in by_size:
        with suppress(NoMatrix):
            return matrix(record_of(store, one.stored, one.trials))
    return None


def _cells(stored: StoredStudy) -> int:
    return (len(treatments(stored.study)) - 1) * len(stored.study.workloads)


def _matrix_files(
    chosen: Matrix | None, rendered: Mapping[int, ResultPage], places: Mapping[str, str], made: Environment
) -> dict[str, str]:
    if chosen is None:
        return {"matrix.html": _no_matrix(made), "matrix.json": _json(None)}
    text = _matrix_text(chosen, rendered, places, made)
    return {"matrix.html": text, "matrix.json": _json(chosen.model_dump(mode="json"))}


def _no_matrix(made: Environment) -> str:
    facts: dict[str, Any] = {
        "title": "Matrix",
        "eyebrow": "ktrial",
        "question": "",
        "notice": "No study compares anything yet.",
        "crumbs": (*_crumbs()[:1], *_crumbs()[2:]),
        "sheet": _SHEET,
        "json": "matrix.json",
        "foot": "",
    }
    return made.get_template("notice.html.j2").render(**facts)


def _matrix_text(
    chosen: Matrix, rendered: Mapping[int, ResultPage], places: Mapping[str, str], made: Environment
) -> str:
    page = f"results/{chosen.study_id}.html"
    reasons = rendered[chosen.study_id].reasons
    said = {(one.workload, one.treatment): f"{page}#why-{one.place}" for one in reasons}
    changed = {
        (one.workload, one.treatment): f"{page}#comparisons"
        for row in chosen.rows
        for one in (cell.comparison for cell in row.cells)
        if one is not None
    }
    return matrix_page(
        chosen,
        histories=places,
        result=page,
        why_places=changed | said,
        crumbs=(*_crumbs()[:1], *_crumbs()[2:]),
        sheet=_SHEET,
        made=made,
    )


@dataclass(frozen=True)
class _Front:
    """What the front page shows."""

    store: str
    results: Sequence[StudyRow]
    past: Sequence[History]
    places: Mapping[str, str]
    machines: Sequence[Across]
    pairs: KernelPairs


def _index(front: _Front, made: Environment) -> dict[str, str]:
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
        "crumbs": _crumbs()[1:] if front.results else (),
        "sheet": _SHEET,
        "json": "index.json",
        "foot": f"{number_format.counted(len(front.results), 'result')} of {Path(front.store).name}",
    }
    text = made.get_template("site_index.html.j2").render(**facts)
    return {"index.html": text, "index.json": _json({key: one.data() for key, one in tables.items()})}


def result_page(
    store: Store, record: StudyRecord, made: Environment, sheet: str, *, reasons: bool
) -> ResultPage:
    """The page, rendered. Raises StoreError."""
    every_why = whys(store, record, graphs=False) if reasons else ()
    made.globals.update(console_end=console_end)
    places = [Reason(why.workload, why.treatment, place) for place, why in enumerate(every_why, start=1)]
    text = made.get_template("result.html.j2").render(
        title=record.study.name,
        eyebrow="ktrial result",
        question=record.result.question or record.study.question,
        crumbs=_crumbs("../"),
        sheet=sheet,
        json=f"{record.id}.json",
        foot=f"Study {record.id}, digest {record.study_digest[:16]}",
        **facts(record, every_why),
        graphs=[None] * len(every_why),
    )
    data = _json(as_json(record, store.name, whys=every_why))
    return ResultPage(text=text, data=data, reasons=tuple(places), answer=record.result.answer)
