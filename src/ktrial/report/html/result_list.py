"""The pages of a site that list results, where these are more than its front page shows."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from jinja2 import Environment

from ktrial.format import number_format
from ktrial.format.table import Cell, Column, Field, Table, name, own, table
from ktrial.report.html.history import Crumbs
from ktrial.report.tables import site_index
from ktrial.report.tables.site_index import StudyRow


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
    shown, own_page = site_index.results(reversed(rows)), around.page
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
