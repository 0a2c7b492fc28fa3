"""Templates of pages and pictures: all that they are given is escaped, control characters written out."""

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup, escape

from ktrial.file_digests import digest_of_file
from ktrial.format import labels, number_format
from ktrial.format.sanitize import printable, shortened
from ktrial.format.table import Cell, Column, Emphasis, Kind, Output, Row, RowKind, Table
from ktrial.model.kernel import KernelDifference
from ktrial.report import charts
from ktrial.report.call_tree import call_tree_table
from ktrial.report.kernel_diff import facts_table, shown
from ktrial.report.proof import causes_table, closing, headline

if TYPE_CHECKING:
    from jinja2 import Environment

_USUAL_WIDTH = 10.0
_FEWEST_TO_SORT = 3
_KIND_CLASSES = {Kind.CHANGE: "cell", Kind.BAR: "wide-bar", Kind.PROSE: "words"}
_ROW_CLASSES = {RowKind.PART: "part", RowKind.SUM: "whole"}


def environment() -> "Environment":
    """Templates of this package, by the names of their files."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # not for other forms of a report

    from ktrial.report.compiled_templates import CompiledTemplates

    here = Path(__file__)
    templates = Environment(
        bytecode_cache=CompiledTemplates(here.parent / "templates", settings=digest_of_file(here)),
        loader=PackageLoader("ktrial.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    # A page without a script of its own has all that it says in its place.
    templates.globals.update(
        number_format=number_format, labels=labels, shortened=shortened, script=None, whole=True, served=False
    )
    templates.filters.update(
        # A text may go on in a new line after a slash; never between a number and its sign of per cent.
        breakable=lambda text: escape(printable(text)).replace("/", Markup("/<wbr>")),
        with_shares_whole=lambda text: text.replace(" %", f"{number_format.SPACE}%"),
        capital=lambda text: text[:1].upper() + text[1:],
        classes=_classes,
        class_attribute=lambda names: Markup(' class="{}"').format(names) if names else Markup(""),
        classes_in=_classes_in,
        facts=facts_table,
        for_page=lambda table: table.shown(Output.HTML),
        percent_of=_percent_of,
        proof_closing=closing,
        tree_table=call_tree_table,
        proof_headline=headline,
        proof_table=causes_table,
        sorts=_sorts,
    )
    return templates


def text_of(name: str) -> str:
    """A style sheet or a script, as it stands beside the templates."""
    return files("ktrial.report").joinpath("templates", name).read_text(encoding="utf-8")


def style_of(*names: str) -> Markup:
    """The style sheet of a page: what all pages share, and the sheets of these names."""
    return Markup("\n".join(map(text_of, ("page.css", "tables.css", *names))))


def chart_colours() -> Markup:
    """What turns a chart's colours into the page's own, for the dark and for paper."""
    rules = (
        f'svg [{attribute}="{colour}"]{{{attribute}:var(--{variable})}}'
        for colour, variable in charts.VARIABLES.items()
        for attribute in ("fill", "stroke")
    )
    return Markup("\n".join(rules))


def _finalized(value: Any) -> Any:
    """Plain text loses its control characters before it is escaped; markup of our own passes."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _sorts(table: Table) -> bool:
    """Whether rows may stand in another order: there are some, with headings, and none sums up others."""
    rows = [row for row in table.rows if row.kind is not RowKind.HEADING]
    titled = all(column.heading for column in table.columns)
    return len(rows) >= _FEWEST_TO_SORT and titled and not any(row.kind is RowKind.SUM for row in rows)


def _percent_of(column: Column, table: Table) -> str:
    """A column's part of the table's width, in %."""
    total = sum(other_column.width or _USUAL_WIDTH for other_column in table.columns)
    return f"{100 * (column.width or _USUAL_WIDTH) / total:.3g}"


def _classes(part: Column | Row) -> str:
    """The classes of a column's heading, or of a row."""
    if isinstance(part, Row):
        muted = "muted" if part.emphasis is Emphasis.MUTED else ""
        return " ".join(filter(None, (_ROW_CLASSES.get(part.kind, ""), muted)))
    return " ".join(name for name, holds in (("number", part.numeric), ("wider", part.wide)) if holds)


def _classes_in(cell: Cell, column: Column, table: Table) -> str:
    names = (
        _classes(column),
        column.key if table.stacks else "",
        _KIND_CLASSES.get(cell.kind, ""),
        cell.verdict.value if cell.verdict and cell.kind is not Kind.VERDICT else "",
        "muted" if cell.emphasis is Emphasis.MUTED else "",
    )
    return " ".join(filter(None, names))


# The scripts of pages: each page has one, inside it, and its content policy lets no other run.


class Script(NamedTuple):
    """A page's script."""

    text: Markup
    digest: str
    """As a content policy names it: `sha256-…`."""


def page_script(*, flame_graphs: bool = False, kernel_pairs: bool = False, live: bool = False) -> Script:
    """What opens sections, sorts and filters tables; with `flame_graphs` what draws and zooms those; with
    `kernel_pairs` what compares two kernels; `live`: what shows the studies that run now.
    """
    names = ["address.js", "sections.js", "tables.js", "search.js"]
    if flame_graphs:  # frames are drawn before they come to life, so their listener is the first
        names += ["flame_frames.js", "flame_graph.js"]
    if kernel_pairs:
        names.append("kernel_pairs.js")
    if live:
        names.append("live.js")
    text = "\n".join(text_of(name) for name in names)
    return Script(Markup(text), f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}")


# What differs between two kernels as one HTML page, which needs no network and has no script.


def kernel_difference_page(difference: KernelDifference) -> str:
    """The page as text."""
    templates = environment()
    template = templates.get_template("kernel_difference_page.html.j2")
    return template.render(change=shown(difference), style=style_of())
