"""Templates of pages and pictures: all that they are given is escaped, control characters written out."""

from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ktrial.format import labels, number_format
from ktrial.format.sanitize import printable, shortened
from ktrial.format.table import Cell, Column, Emphasis, Kind, Output, Row, RowKind, Table
from ktrial.report.charts import palette
from ktrial.report.tables.call_tree import of_tree
from ktrial.report.tables.kernel_diff import facts
from ktrial.report.tables.proof import of_proof
from ktrial.report.text.proof import closing, headline

_USUAL_WIDTH = 10.0
_FEWEST_TO_SORT = 3
_KIND_CLASSES = {Kind.CHANGE: "cell", Kind.BAR: "wide-bar", Kind.PROSE: "words"}
_ROW_CLASSES = {RowKind.PART: "part", RowKind.SUM: "whole"}


def environment() -> Environment:
    """Templates of this package, by the names of their files."""
    made = Environment(
        loader=PackageLoader("ktrial.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    # A page without a script of its own has all that it says in its place.
    made.globals.update(
        number_format=number_format, labels=labels, shortened=shortened, script=None, whole=True, served=False
    )
    made.filters.update(
        breakable=_breakable,
        with_shares_whole=_with_shares_whole,
        capital=_capital,
        classes=_classes,
        class_attribute=_class_attribute,
        classes_in=_classes_in,
        facts=facts,
        for_page=_for_page,
        percent_of=_percent_of,
        proof_closing=closing,
        tree_table=of_tree,
        proof_headline=headline,
        proof_table=of_proof,
        sorts=_sorts,
    )
    return made


def text_of(name: str) -> str:
    """A style sheet or a script, as it stands beside the templates."""
    return files("ktrial.report.html").joinpath("templates", name).read_text(encoding="utf-8")


def style_of(*names: str) -> Markup:
    """The style sheet of a page: what all pages share, and the sheets of these names."""
    return Markup("\n".join(map(text_of, ("page.css", "tables.css", *names))))


def chart_colours() -> Markup:
    """What turns a chart's colours into the page's own, for the dark and for paper."""
    rules = (
        f'svg [{what}="{colour}"]{{{what}:var(--{variable})}}'
        for colour, variable in palette.VARIABLES.items()
        for what in ("fill", "stroke")
    )
    return Markup("\n".join(rules))


def _finalized(value: Any) -> Any:
    """Plain text loses its control characters before it is escaped; markup of our own passes."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _breakable(text: str) -> Markup:
    """Escaped text that may go on in a new line after a slash."""
    return escape(printable(text)).replace("/", Markup("/<wbr>"))


def _with_shares_whole(text: str) -> str:
    """A sentence in which no line ends between a number and its sign of per cent."""
    return text.replace(" %", f"{number_format.SPACE}%")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _for_page(table: Table) -> Table:
    return table.shown(Output.HTML)


def _sorts(table: Table) -> bool:
    """Whether rows may stand in another order: there are some, with headings, and none sums up others."""
    rows = [row for row in table.rows if row.kind is not RowKind.HEADING]
    titled = all(column.heading for column in table.columns)
    return len(rows) >= _FEWEST_TO_SORT and titled and not any(row.kind is RowKind.SUM for row in rows)


def _percent_of(column: Column, table: Table) -> str:
    """A column's part of the table's width, in %."""
    whole = sum(one.width or _USUAL_WIDTH for one in table.columns)
    return f"{100 * (column.width or _USUAL_WIDTH) / whole:.3g}"


def _classes(part: Column | Row) -> str:
    """The classes of a column's heading, or of a row."""
    if isinstance(part, Row):
        muted = "muted" if part.emphasis is Emphasis.MUTED else ""
        return " ".join(filter(None, (_ROW_CLASSES.get(part.kind, ""), muted)))
    return " ".join(name for name, holds in (("number", part.numeric), ("wider", part.wide)) if holds)


def _class_attribute(names: str) -> Markup:
    return Markup(' class="{}"').format(names) if names else Markup("")


def _classes_in(cell: Cell, column: Column, table: Table) -> str:
    names = (
        _classes(column),
        column.key if table.stacks else "",
        _KIND_CLASSES.get(cell.kind, ""),
        cell.verdict.value if cell.verdict and cell.kind is not Kind.VERDICT else "",
        "muted" if cell.emphasis is Emphasis.MUTED else "",
    )
    return " ".join(filter(None, names))
