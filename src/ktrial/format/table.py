"""A table as a value: what it holds, before anybody says how it is drawn.

A table is made once, from `Field`s: a column, and what a row has in it. The terminal, Markdown, HTML, CSV and
JSON each have one renderer, which takes any table; a field that is added to a table is in all outputs that
its column names.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, Flag, auto
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ktrial.format import number_format

if TYPE_CHECKING:
    from ktrial.model.comparison import Verdict

Of = TypeVar("Of")


class Output(Flag):
    """What a table can be rendered to."""

    TERMINAL = auto()
    MARKDOWN = auto()
    HTML = auto()
    CSV = auto()
    JSON = auto()
    DOCUMENT = MARKDOWN | HTML
    PEOPLE = TERMINAL | MARKDOWN | HTML
    PROGRAMS = CSV | JSON
    ALL = PEOPLE | PROGRAMS


class Kind(Enum):
    """What a text is, which says how it is set, and how far it is trusted."""

    OWN = "own"
    """A number, or a word of ktrial's own."""
    NAME = "name"
    """Of a workload, a kernel, a setting: it comes from a file or a guest."""
    CODE = "code"
    """A name that is set like a program's text: a function, a counter."""
    PROSE = "prose"
    """A sentence that may hold names."""
    VERDICT = "verdict"
    """A verdict's symbol and word."""
    CHANGE = "change"
    """A number with the symbol of its verdict."""
    BAR = "bar"
    """A fraction as a bar."""


class Emphasis(Enum):
    """How loudly a row or a cell speaks."""

    PLAIN = "plain"
    MUTED = "muted"
    STRONG = "strong"
    GOOD = "good"
    CAUTION = "caution"
    BAD = "bad"


class RowKind(Enum):
    """What a row is among the others."""

    PLAIN = "plain"
    HEADING = "heading"
    """Over the rows that follow: it has one cell."""
    PART = "part"
    """Below a heading."""
    SUM = "sum"
    """What all rows above it add up to."""


@dataclass(frozen=True)
class Column:
    """One column. Headings are in lower case: documents have them with a capital."""

    key: str
    """What CSV and JSON call it, and the class of its cells in HTML."""
    heading: str = ""
    unit: str = ""
    """Behind the heading, where it is the same for all rows: `%`."""
    numeric: bool = False
    """Set flush right, and never broken into two lines."""
    outputs: Output = Output.ALL
    named: bool = False
    """Whether the heading is a name from a file or a guest."""
    wraps: bool = False
    """Whether the terminal may break its cells into several lines."""
    columns: int = 60
    """Character cells that a name in it has on the terminal."""
    heading_columns: int = 16
    """Character cells that its heading has there, where that is a name."""
    width: float = 0.0
    """Its share of a page's width, beside those of the other columns; 0: as its cells need it."""
    hidden: bool = False
    """Whether its heading is for screen readers only."""
    wide: bool = False
    """Whether a narrow page leaves it out."""

    @property
    def title(self) -> str:
        """The heading with its unit."""
        return f"{self.heading}, {self.unit}" if self.unit else self.heading


@dataclass(frozen=True)
class Cell:
    """What one row has in one column: a value for programs, and a text for people."""

    value: Any = None
    text: str = ""
    kind: Kind = Kind.OWN
    verdict: "Verdict | None" = None
    """Its colour, and its symbol where `kind` shows one."""
    emphasis: Emphasis = Emphasis.PLAIN
    scatter: str = ""
    """How the treatment scatters, where that is otherwise than the baseline: shown as ± beside the text."""
    notes: tuple[str, ...] = ()
    """Below the text, on pages only."""
    narrow: str = ""
    """On a narrow page: what stands for the columns that it leaves out."""
    title: str = ""
    """What a page says where the pointer rests on it."""
    link: str = ""
    """Where a page says more."""
    heat: int | None = None
    """How strongly a page colours it, in %."""


@dataclass(frozen=True)
class Row:
    """The cells, one a column."""

    cells: tuple[Cell, ...]
    kind: RowKind = RowKind.PLAIN
    emphasis: Emphasis = Emphasis.PLAIN


@dataclass(frozen=True)
class Field(Generic[Of]):
    """A column, and what it says about a thing that has a row."""

    column: Column
    cell: Callable[[Of], Cell]


@dataclass(frozen=True)
class Table:
    """Columns and rows."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    name: str = ""
    """The class of the table in HTML."""
    stacks: bool = False
    """Whether a narrow page sets the cells of a row below each other, each with its heading."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if row.kind is not RowKind.HEADING and len(row.cells) != len(self.columns):
                raise ValueError(f"a row of {len(row.cells)} cells in {len(self.columns)} columns")

    def shown(self, output: Output) -> "Table":
        """Only what this output shows."""
        places = [place for place, column in enumerate(self.columns) if output in column.outputs]
        return replace(
            self,
            columns=tuple(self.columns[place] for place in places),
            rows=tuple(
                row
                if row.kind is RowKind.HEADING
                else replace(row, cells=tuple(row.cells[place] for place in places))
                for row in self.rows
            ),
        )

    def adapted(self, key: str, **changes: Any) -> "Table":
        """With other properties of one column: a heading, the outputs that show it."""
        columns = (replace(column, **changes) if column.key == key else column for column in self.columns)
        return replace(self, columns=tuple(columns))

    def cut(self, key: str, columns: int) -> "Table":
        """With the texts of one column cut at their ends, for one line of so many characters."""
        place = next(place for place, column in enumerate(self.columns) if column.key == key)

        def cut(row: Row) -> Row:
            cell = row.cells[place]
            if len(cell.text) <= columns:
                return row
            shorter = replace(cell, text=f"{cell.text[: columns - 1].rstrip()}…")
            return replace(row, cells=(*row.cells[:place], shorter, *row.cells[place + 1 :]))

        return replace(self, rows=tuple(map(cut, self.rows)))

    def data(self, output: Output = Output.JSON) -> list[dict[str, Any]]:
        """Rows as JSON has them: key → value."""
        table = self.shown(output)
        return [
            {column.key: plain(cell.value) for column, cell in zip(table.columns, row.cells, strict=True)}
            for row in table.rows
        ]


def table(fields: Iterable[Field[Of]], rows: Iterable[Of], name: str = "") -> Table:
    """The table of these things: a row each."""
    every = tuple(fields)
    return Table(
        tuple(field.column for field in every),
        tuple(Row(tuple(field.cell(subject) for field in every)) for subject in rows),
        name,
    )


def text_field(heading: str, text: Callable[[Of], str], *, wraps: bool = True) -> Field[Of]:
    """A column of texts, which the terminal may break, and what it says about a thing."""
    column = Column(heading.replace(" ", "_"), heading, wraps=wraps)
    return Field(column, lambda subject: Cell(text(subject), text(subject)))


def facts(by_name: Mapping[str, str]) -> Table:
    """What is known of one thing: a row a fact, its name and its value, without headings."""
    columns = (Column("what"), Column("value", wraps=True))
    return Table(columns, tuple(Row((own(fact), own(value))) for fact, value in by_name.items()))


def of_texts(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    """A table of texts: a name, then numbers."""
    first, *following = headings
    columns = (
        Column("name", first, wraps=True),
        *(Column(f"number-{place}", heading, numeric=True) for place, heading in enumerate(following)),
    )
    return Table(columns, tuple(Row(tuple(Cell(text, text) for text in texts)) for texts in rows))


def row(columns: Iterable[Column], cells: Mapping[str, Cell], kind: RowKind = RowKind.PLAIN) -> Row:
    """A row that has something in a few columns, by their keys."""
    return Row(tuple(cells.get(column.key, Cell()) for column in columns), kind)


def plain(value: Any) -> Any:
    """A value as CSV and JSON know it."""
    return value.value if isinstance(value, Enum) else value


def name(text: str, **more: Any) -> Cell:
    """A name from a file or a guest."""
    return Cell(text, text, Kind.NAME, **more)


def own(text: str, **more: Any) -> Cell:
    """A word of ktrial's own."""
    return Cell(text, text, **more)


def number(value: float | None, **more: Any) -> Cell:
    """A number in five digits; programs get all."""
    return Cell(value, number_format.number(value), **more)


def quantity(value: float | None, unit: str, **more: Any) -> Cell:
    """A measured value: times in s, ms, µs or ns; programs get the value as it was measured."""
    return Cell(value, number_format.quantity(value, unit), **more)


def change(ratio: float | None, **more: Any) -> Cell:
    """A ratio as a relative change; programs get the ratio."""
    return Cell(ratio, number_format.change(ratio), **more)


def step(ratio: float | None, value: float | None, unit: str = "", **more: Any) -> Cell:
    """The same; where there is no ratio, as after zero, what it came to."""
    return Cell(ratio, number_format.step(ratio, value, unit), **more)


def interval(low: float | None, high: float | None, none: str = "") -> Cell:
    """The interval of a ratio, in %. `none`: why there is none, which pages say below a dash."""
    text = number_format.interval(low, high)
    return Cell((low, high), text or (number_format.NONE if none else ""), notes=(none,) if none else ())


def verdict(reached: "Verdict", **more: Any) -> Cell:
    """A verdict with its symbol."""
    from ktrial.format import labels  # with what is measured: tables of texts do without

    return Cell(reached, labels.verdict_text(reached), Kind.VERDICT, reached, **more)
