"""What a command leaves on the terminal: at most 25 lines, the answer last; everything with -v.

A screen is made of parts. Some are always whole: the title, the answer. Others give way where there is no
room: the rows of a table, a list of causes, notes. What gave way is counted in one line, with the command
that shows it.
"""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ktrial.cli.render.table import rendered
from ktrial.format.number_format import SPACE, counted
from ktrial.format.sanitize import one_line, printable
from ktrial.format.table import Table

LINES = 25
"""A terminal of the usual size shows 24 lines and the prompt."""
_LEAST_ROWS = 3
_MOST_LINES = 4
_MOST_LINES_OF_ANSWER = 7
_SPLIT_NUMBERS = (
    (re.compile(r"(?<=\d) (?=%)"), SPACE),
    (re.compile(r" … (?=[+\u2212\d])"), f"{SPACE}…{SPACE}"),
)
"""A number stays on the line of its unit, and an interval is not broken."""


@dataclass
class _Lines:
    """Texts, each on one or several lines; `least` of them are shown in any case."""

    texts: tuple[str, ...]
    style: str
    least: int
    noun: str
    indent: str = ""
    wraps: bool = True
    """A command stays unbroken, so that it can be copied."""
    heading: str = ""
    most_lines: int | None = None
    """Of each text: what is longer ends with an ellipsis."""

    def drawn(self, count: int, width: int) -> list[Text]:
        above = [self.heading] if self.heading and count else []
        above = [line for text in above for line in (wrapped(text, width) if self.wraps else [text])]
        heading = [Text(line, style="dim") for line in above]
        if not self.wraps:
            return heading + [Text(f"{self.indent}{text}", style=self.style) for text in self.texts[:count]]
        return heading + [
            Text(line, style=self.style)
            for text in self.texts[:count]
            for line in wrapped(text, width, self.indent, self.most_lines)
        ]


@dataclass
class _Rows:
    """A table, of which the most important rows are shown where there is no room for all."""

    table: Table
    rank: tuple[int, ...]
    """The places of its rows, the most important first."""
    noun: str

    def drawn(self, count: int, width: int) -> list[RichTable]:
        shown = set(self.rank[:count])
        rows = tuple(row for place, row in enumerate(self.table.rows) if place in shown)
        return [rendered(replace(self.table, rows=rows))]


_Part = _Lines | _Rows


class Screen:
    """Parts in the order in which they are read; `print` fits them and ends with the answer.

    `whole`: all of every part (-v). `more`: the command that prints the whole.
    """

    def __init__(self, console: Console, *, whole: bool = False, more: str = "") -> None:
        self._console = console
        self._whole = whole
        self._more = more
        self._parts: list[_Part | None] = []  # None is an empty line
        self._left_out: list[str] = []

    def title(self, text: str, beside: str = "") -> None:
        """The question, and in which unit and mode it is answered: a line each, cut where it is too long."""
        for line, style in ((text, "bold"), (beside, "dim")):
            if line:
                line = one_line(line)
                if not self._whole:
                    line = textwrap.shorten(line, self.width, placeholder=" …")
                self._parts.append(_Lines((line,), style, 1, ""))

    def gap(self) -> None:
        """An empty line, but not two of them."""
        if self._parts and self._parts[-1] is not None:
            self._parts.append(None)

    def rows(self, table: Table, rank: Sequence[int] = (), noun: str = "row") -> None:
        """A table; `rank`: the places of its rows, the most important first, else as they stand."""
        if table.rows:
            self.gap()
            self._parts.append(_Rows(table, tuple(rank) or tuple(range(len(table.rows))), noun))
            self.gap()

    def lines(
        self,
        texts: Sequence[str],
        noun: str,
        *,
        least: int = 0,
        style: str = "",
        heading: str = "",
        wraps: bool = True,
    ) -> None:
        """A list, of which at least so many are shown; the heading stands above it."""
        if texts:
            shown = tuple(one_line(text) if wraps else printable(text) for text in texts)
            indent = "  " if heading and wraps else ""
            most = None if self._whole else _MOST_LINES
            counted_from = min(least, len(shown))
            self._parts.append(
                _Lines(shown, style, counted_from, noun, indent, wraps, printable(heading), most)
            )

    def leave_out(self, count: int, noun: str) -> None:
        """Say that -v shows so many things more."""
        if count and not self._whole:
            self._left_out.append(counted(count, noun))

    def print(self, answer: str, *, next_step: str = "", style: str = "bold") -> None:
        """All parts, the next step, and the answer as the last line."""
        closing: list[_Part | None] = [None] if self._parts else []
        if next_step:
            closing.append(_Lines((f"next: {next_step}",), "", 1, "", wraps=False))
        most_lines = None if self._whole else _MOST_LINES_OF_ANSWER
        closing.append(_Lines((one_line(answer),), style, 1, "", most_lines=most_lines))
        while self._parts and self._parts[-1] is None:
            self._parts.pop()
        counts = self._fit(closing)
        for part, count in zip(self._parts, counts, strict=True):
            self._print(part, count)
        if left_out := self._said_left_out(counts):
            self._print(_Lines((left_out,), "dim", 1, "", wraps=False), 1)
        for part in closing:
            self._print(part, 1)

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return self._console.width

    def _fit(self, closing: Sequence[_Part | None]) -> list[int]:
        """How many lines' texts, or rows, of each part are shown."""
        full = [_size(part) for part in self._parts]
        if self._whole:
            return full
        counts = [
            min(_LEAST_ROWS, size) if isinstance(part, _Rows) else part.least if part else 1
            for part, size in zip(self._parts, full, strict=True)
        ]
        left_out = max(1, -(-len(self._said_left_out(counts)) // self.width))
        fixed = sum(self._height(part, 1) for part in closing) + left_out
        for place in reversed(range(len(counts))):  # where even that is too much
            part = self._parts[place]
            while isinstance(part, _Rows) and counts[place] > 1 and fixed + self._heights(counts) > LINES:
                counts[place] -= 1
            if isinstance(part, _Lines) and part.noun and fixed + self._heights(counts) > LINES:
                counts[place] = min(counts[place], 1)
                part.most_lines = _MOST_LINES // 2
        answer = closing[-1]
        if isinstance(answer, _Lines) and fixed + self._heights(counts) > LINES:
            answer.most_lines = _MOST_LINES
        # Tables first: the numbers are what was asked for; then lists, in their order.
        growing = sorted(
            (place for place, part in enumerate(self._parts) if part and counts[place] < full[place]),
            key=lambda place: isinstance(self._parts[place], _Lines),
        )
        for place in growing:
            part = self._parts[place]
            rest = fixed + self._heights(counts) - self._height(part, counts[place])
            while counts[place] < full[place]:
                if rest + self._height(part, counts[place] + 1) > LINES:
                    break
                counts[place] += 1
        return counts

    def _heights(self, counts: Sequence[int]) -> int:
        return sum(self._height(part, count) for part, count in zip(self._parts, counts, strict=True))

    def _height(self, part: _Part | None, count: int) -> int:
        if part is None:
            return 1
        if isinstance(part, _Lines):
            return sum(-(-len(drawn) // self.width) for drawn in part.drawn(count, self.width))
        return sum(
            len(self._console.render_lines(drawn, pad=False)) for drawn in part.drawn(count, self.width)
        )

    def _said_left_out(self, counts: Sequence[int]) -> str:
        left = [
            counted(_size(part) - count, f"more {part.noun}")
            for part, count in zip(self._parts, counts, strict=True)
            if part and count < _size(part)
        ]
        if not (left or self._left_out):
            return ""
        things = ", ".join((*left, *self._left_out)).replace(SPACE, " ")
        return f"not shown: {things}: {self._more}"

    def _print(self, part: _Part | None, count: int) -> None:
        if part is None:
            self._console.print()
            return
        for drawn in part.drawn(count, self.width):
            self._console.print(drawn, soft_wrap=isinstance(drawn, Text))


def _size(part: _Part | None) -> int:
    if part is None:
        return 1
    return len(part.texts) if isinstance(part, _Lines) else len(part.table.rows)


def wrapped(text: str, width: int, indent: str = "", most_lines: int | None = None) -> list[str]:
    """The text in lines, numbers with their units and intervals whole; lines after the first are indented."""
    for pattern, glue in _SPLIT_NUMBERS:
        text = pattern.sub(glue, text)
    lines = textwrap.wrap(
        text,
        max(width, 20),
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
        max_lines=most_lines,
        placeholder=" …",
    )
    return [line.replace(SPACE, " ") for line in lines]
