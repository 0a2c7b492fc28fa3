"""The front page of a site and the pages that list its results, with the tables that these show."""

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
from ktrial.model.history import Across, ChangePoint, History, KernelPairs, MeasuredKernel
from ktrial.model.regression import TrackedRegression
from ktrial.model.workload import short_labels
from ktrial.report.history import Crumbs
from ktrial.report.regressions import answer as regressions_answer
from ktrial.report.regressions import regressions_table
from ktrial.store.study_rows import StoredStudy

SHEET = "style.css"
A_PAGE = 500
"""Results on a page that lists them, and on the front page."""
NAMES = "lists/names"
"""The page of all results' names."""
_MOST_CHANGES = 20
_LONGEST_ANSWER = 240


class StudyRow(NamedTuple):
    """One result of the site."""

    study: str
    number: int
    created: datetime
    answer: str
    page: str
    in_brief: bool = False
    """Whether its page has the verdicts alone."""


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


@dataclass(frozen=True)
class Front:
    """What the front page shows."""

    store: str
    results: Sequence[StudyRow]
    histories: Sequence[History]
    places: Mapping[str, str]
    """Workload → where its history is."""
    machines: Sequence[Across]
    pairs: KernelPairs
    lists: Sequence[ListPage] = ()
    """Pages of all results, where `results` are the newest alone."""
    result_count: int = 0
    in_brief: int = 0
    """How many of the results have pages in brief."""
    regressions: Sequence[TrackedRegression] = ()
    """Those that are open first."""


class _Changed(NamedTuple):
    workload: str
    unit: str
    change: ChangePoint


def front_page(front: Front, templates: Environment) -> tuple[str, str]:
    """The front page, and its tables as JSON."""
    changes = [
        _Changed(history.workload, history.lines[0].unit, change)
        for history in front.histories
        for change in history.lines[0].changes[-1:]
    ]
    changes.sort(key=lambda changed: -abs((changed.change.ratio or 2.0) - 1))
    tables = {
        "workloads": workloads_table(front.histories, front.places),
        "kernels": kernels_table(front.pairs, "compare.html"),
        "results": results_table(reversed(front.results)),
    }
    lists = table(_LISTS, front.lists, "lists")
    machines = machines_table(front.machines, front.histories, front.places)
    text = templates.get_template("site_index.html.j2").render(
        title="Kernel performance",
        eyebrow="ktrial",
        question="",
        short=short_labels(history.workload for history in front.histories),
        changes=changes[:_MOST_CHANGES],
        **tables,
        machines=machines if front.machines else None,
        histories=front.places,
        lists=lists if front.lists else None,
        regressions=regressions_table(front.regressions[:_MOST_CHANGES], linked=True)
        if front.regressions
        else None,
        regressions_answer=regressions_answer(front.regressions),
        more_regressions=max(0, len(front.regressions) - _MOST_CHANGES),
        in_brief=front.in_brief,
        every=front.result_count,
        crumbs=crumbs()[1:] if front.results else (),
        sheet=SHEET,
        json="index.json",
        foot=f"{number_format.counted(front.result_count, 'result')} of {Path(front.store).name}",
    )
    data = {key: shown.data() for key, shown in tables.items()}
    if front.lists:
        data["lists"] = lists.data()
    return text, json_text(data)


def crumbs(up: str = "") -> Crumbs:
    """The links at the top of a page. `up`: the way to the site's own directory."""
    pages = (
        ("All results", "index"),
        ("Matrix", "matrix"),
        ("Compare", "compare"),
        ("Regressions", "regressions"),
    )
    return tuple((text, f"{up}{page}.html") for text, page in pages)


def json_text(data: Any) -> str:
    """The numbers of a page, as they lie beside it."""
    return to_json(data, indent=1, inf_nan_mode="null").decode() + "\n"  # ten times as fast as json is


class ResultLists:
    """The pages that list results; none where the front page has them all.

    Each page has so many results, in the order in which they were made: one that is full stays as it is when
    more come.
    """

    def __init__(self, studies: Iterable[StoredStudy]) -> None:
        """`studies`: all those that have results."""
        ordered = sorted(studies, key=lambda study: study.id)
        self.newest = ordered[-A_PAGE:]
        """Of the front page, the newest last."""
        starts = range(0, len(ordered), A_PAGE) if len(ordered) > A_PAGE else ()
        self._studies = {f"lists/{start // A_PAGE + 1}": ordered[start : start + A_PAGE] for start in starts}
        self.pages = [
            ListPage(
                f"{page}.html",
                studies[0].id,
                studies[-1].id,
                studies[0].created,
                studies[-1].created,
                len(studies),
            )
            for page, studies in self._studies.items()
        ][::-1]
        """All pages, the newest results first."""

    @property
    def places(self) -> tuple[str, ...]:
        """Of all these pages, relative to the site."""
        return tuple(f"{page}.html" for page in (*self._studies, *([NAMES] if self._studies else ())))

    def studies(self, page: str) -> Sequence[StoredStudy]:
        """Those on a page, by its place without an ending; empty where there is no such page."""
        return self._studies.get(page, ())

    def around(self, page: str) -> tuple[ListPage, ListPage | None, ListPage | None]:
        """A page by its place without an ending, the one of newer results and the one of older results.

        Raises ValueError.
        """
        at = [list_page.page for list_page in self.pages].index(f"{page}.html")
        newer = self.pages[at - 1] if at else None
        older = self.pages[at + 1] if at + 1 < len(self.pages) else None
        return self.pages[at], newer, older


def result_list(
    rows: Sequence[StudyRow],
    around: tuple[ListPage, ListPage | None, ListPage | None],
    templates: Environment,
) -> tuple[str, str]:
    """A page of results, the newest first, and its table as JSON."""
    list_page, newer, older = around
    shown = results_table(reversed(rows))
    text = templates.get_template("site_list.html.j2").render(
        title=f"Results {list_page.first} to {list_page.last}",
        results=shown,
        newer=newer,
        older=older,
        json=f"{list_page.page.rpartition('/')[2].removesuffix('.html')}.json",
        **_below_the_site(len(rows)),
    )
    return text, json_text({"results": shown.data()})


class NamedResult(NamedTuple):
    """A result by its name alone."""

    study: str
    number: int
    page: str


def names_page(results: Sequence[NamedResult], templates: Environment) -> tuple[str, str]:
    """All results' names, in alphabetical order, and these as JSON."""
    text = templates.get_template("site_names.html.j2").render(
        title="Results by name", names=results, json="names.json", **_below_the_site(len(results))
    )
    return text, json_text({result.number: result.study for result in results})


def _below_the_site(results: int) -> dict[str, object]:
    """What pages that list results have in common."""
    foot = number_format.counted(results, "result")
    return {
        "eyebrow": "ktrial",
        "question": "",
        "crumbs": crumbs("../"),
        "sheet": f"../{SHEET}",
        "foot": foot,
    }


def notice_page(title: str, notice: str, links: Crumbs, sheet: str, json: str, templates: Environment) -> str:
    """A page that says one thing: that there is nothing to show, or why. `json`: where its numbers lie;
    empty: it has none.
    """
    return templates.get_template("notice.html.j2").render(
        title=title,
        eyebrow="ktrial",
        question="",
        notice=notice,
        crumbs=links,
        sheet=sheet,
        json=json,
        foot="",
    )


# --- the tables


class _WorkloadRow(NamedTuple):
    history: History
    name: str
    page: str


class _KernelRow(NamedTuple):
    kernel: MeasuredKernel
    page: str


class _MachinesRow(NamedTuple):
    across: Across
    name: str
    page: str


def workloads_table(histories: Sequence[History], pages: Mapping[str, str]) -> Table:
    """A row a workload. `pages`: its name → the page of its history."""
    short = short_labels(history.workload for history in histories)
    rows = (_WorkloadRow(history, short[history.workload], pages[history.workload]) for history in histories)
    return table(_WORKLOADS, rows, "workloads")


def kernels_table(pairs: KernelPairs, page: str) -> Table:
    """A row a kernel, the newest first. `page`: where it is compared with the one before it."""
    rows = []
    before = ""
    for kernel in pairs.kernels:
        query = urlencode({"from": before, "to": kernel.name} if before else {"to": kernel.name})
        rows.append(_KernelRow(kernel, f"{page}#?{query}"))
        before = kernel.name
    return table(_KERNELS, reversed(rows), "measured-kernels")


def machines_table(
    changes: Iterable[Across], histories: Sequence[History], pages: Mapping[str, str]
) -> Table:
    """A row a change that several machines measured; names are as short as in the table of workloads."""
    short = short_labels(history.workload for history in histories)
    rows = (_MachinesRow(across, short[across.workload], pages[across.workload]) for across in changes)
    return table(_MACHINES, rows, "machines")


def results_table(studies: Iterable[StudyRow]) -> Table:
    """A row a stored study."""
    return table(_RESULTS, studies, "results")


def _count(value: int) -> Cell:
    return Cell(value, str(value))


def _on_each_machine(across: Across) -> Cell:
    text = "; ".join(
        f"{number_format.change(result.ratio)} on {result.system.cpu_model or result.system.machine}"
        for result in across.systems
    )
    return Cell(text, text, Kind.PROSE)


def _agreement(across: Across) -> Cell:
    label = labels.AGREEMENTS[across.agreement]
    text = label if across.p is None else f"{label} (p {across.p:.2g})"
    return Cell(across.agreement, text, notes=(across.reason,) if across.reason else ())


_LISTS: tuple[Field[ListPage], ...] = (
    Field(Column("numbers", "numbers"), lambda row: name(f"{row.first} to {row.last}", link=row.page)),
    Field(Column("begun", "from"), lambda row: own(number_format.moment(row.begun))),
    Field(Column("ended", "to"), lambda row: own(number_format.moment(row.ended))),
    Field(Column("results", "results", numeric=True), lambda row: _count(row.results)),
)

_WORKLOADS: tuple[Field[_WorkloadRow], ...] = (
    Field(Column("workload", "workload"), lambda row: name(row.name, link=row.page)),
    Field(Column("versions", "versions", numeric=True), lambda row: _count(len(row.history.lines[0].points))),
    Field(
        Column("changes", "change points", numeric=True),
        lambda row: _count(len(row.history.lines[0].changes)),
    ),
    Field(Column("ratio", "first to last", numeric=True), lambda row: change(row.history.lines[0].ratio)),
)

_KERNELS: tuple[Field[_KernelRow], ...] = (
    Field(Column("kernel", "kernel"), lambda row: name(row.kernel.name, link=row.page)),
    Field(Column("release", "release"), lambda row: name(row.kernel.release)),
    Field(Column("workloads", "workloads", numeric=True), lambda row: _count(row.kernel.workloads)),
)

_MACHINES: tuple[Field[_MachinesRow], ...] = (
    Field(Column("workload", "workload"), lambda row: name(row.name, link=row.page)),
    Field(Column("change", "change"), lambda row: name(f"{row.across.before} → {row.across.after}")),
    Field(Column("systems", "on each machine"), lambda row: _on_each_machine(row.across)),
    Field(Column("agreement", "machine × version"), lambda row: _agreement(row.across)),
)

_RESULTS: tuple[Field[StudyRow], ...] = (
    Field(
        Column("study", "study"),
        lambda row: name(row.study, link=row.page, notes=("in brief",) if row.in_brief else ()),
    ),
    Field(
        Column("answer", "answer"),
        lambda row: Cell(row.answer, beginning(row.answer, _LONGEST_ANSWER), Kind.PROSE),
    ),
    Field(Column("created", "made"), lambda row: own(number_format.moment(row.created))),
    Field(Column("number", "number", numeric=True), lambda row: _count(row.number)),
)
