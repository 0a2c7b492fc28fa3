"""A function of a difference by source line, as tables, in sentences and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from ktrial.format import number_format
from ktrial.format.table import Cell, Column, Field, Row, RowKind, Table, name, number, own, table
from ktrial.model.source_lines import LineDifference, LinePair, LineSide, SourceLine, counts_of

_MOST_NAMED = 3
_HEADING_COLUMNS = 24
_UNKNOWN = "(no line is known)"
_ONE_IMAGE = "both ran the same image: its lines have the same numbers"
_BY_ORDER = "paired by their order and counts, as no source is read"


class _LineRow(NamedTuple):
    """A row of a table; counts are of the region."""

    what: str
    before: int
    after: int
    function: str = ""
    is_name: bool = True
    """Else it is a word of ktrial's own: other lines, the sum."""


def frames_table(opened: LineDifference, sides: tuple[str, str], most: int | None) -> Table:
    """The function itself, what was inlined into it, and the sum. `sides`: what is above their numbers."""
    frames = [_LineRow(frame.function, frame.before, frame.after) for frame in opened.frames[:most]]
    if left := opened.frames[len(frames) :]:
        before, after = sum(frame.before for frame in left), sum(frame.after for frame in left)
        others = number_format.counted(len(left), "other function")
        frames.append(_LineRow(others, before, after, is_name=False))
    column = Column("function", "function, or inlined", wraps=True)
    return _with_sum(opened, (Field[_LineRow](column, _what), *_numbers(opened, sides)), frames)


def lines_table(opened: LineDifference, sides: tuple[str, str], most: int | None) -> Table:
    """Lines of both sides beside each other, those that are not shown, and the sum.

    `most`: of the lines with a difference; None: all lines.
    """
    differing = [pair for pair in opened.lines if opened.of_pair(pair)]
    shown = opened.lines if most is None else differing[:most]
    parts = [_LineRow(_place(pair), *counts_of(pair), pair.function) for pair in shown]
    if left := opened.lines[len(shown) :]:
        before, after = (sum(counts) for counts in zip(*map(counts_of, left), strict=True))
        parts.append(_LineRow(number_format.counted(len(left), "other line"), before, after, is_name=False))
    fields = (
        Field[_LineRow](Column("line", "source line", wraps=True), _what),
        Field[_LineRow](Column("function", "of", wraps=True), lambda part: name(part.function)),
        *_numbers(opened, sides),
    )
    return _with_sum(opened, fields, parts)


def _with_sum(opened: LineDifference, fields: Sequence[Field[_LineRow]], parts: Sequence[_LineRow]) -> Table:
    whole = _LineRow("the sum", opened.before.instructions, opened.after.instructions, is_name=False)
    made = table(fields, (*parts, whole), "lines")
    *rows, last = made.rows
    return replace(made, rows=(*rows, Row(last.cells, RowKind.SUM)))


def _what(part: _LineRow) -> Cell:
    return name(part.what) if part.is_name else own(part.what)


def _numbers(opened: LineDifference, sides: tuple[str, str]) -> Iterator[Field[_LineRow]]:
    yield Field(_side_column("before", sides[0]), lambda part: number(part.before / opened.before.operations))
    yield Field(_side_column("after", sides[1]), lambda part: number(part.after / opened.after.operations))
    yield Field(
        Column("difference", "difference", numeric=True),
        lambda part: _signed(opened.more(part.before, part.after)),
    )


def _side_column(key: str, label: str) -> Column:
    return Column(key, label, numeric=True, named=True, heading_columns=_HEADING_COLUMNS)


def _signed(difference: Fraction) -> Cell:
    return Cell(float(difference), number_format.signed(float(difference)))


def _place(pair: LinePair) -> str:
    """`mm/mmap.c:120 → 131`; `→ mm/vma.c:7` where only the second has such a line."""
    before, after = pair.before, pair.after
    if before is None:
        return f"→ {_line(after)}"
    if after is None:
        return f"{_line(before)} →"
    if (before.file, before.line) == (after.file, after.line):
        return _line(before)
    if before.file == after.file:
        return f"{_line(before)} → {after.line}"
    return f"{_line(before)} → {_line(after)}"


def _line(line: SourceLine | None) -> str:
    return f"{line.file}:{line.line}" if line and line.file else _UNKNOWN


# In sentences.


def lines_summary(opened: LineDifference) -> str:
    """What the rows add up to, and how lines were paired."""
    total = number_format.signed(float(opened.difference))
    how = _ONE_IMAGE if opened.same_code else _BY_ORDER
    return f"lines add up to {total}, its own code; {how}"


def lines_notes(opened: LineDifference) -> Iterator[str]:
    """Inlined functions that are rows of their own on the other side; counts that the ranking has not."""
    for part in opened.elsewhere:
        inlined, own_count = number_format.number(part.inlined), number_format.number(part.own)
        yield (
            f"{part.function}: inlined on {part.within} ({inlined}, with what is inlined into it), on "
            f"{part.apart} a function of its own ({own_count}), another row"
        )
    for side in (opened.before, opened.after):
        if not side.symbols:
            yield f"nothing of it ran on {side.label}"
        elif side.instructions != side.in_ranking:
            anew, ranked = (
                number_format.number(count / side.operations)
                for count in (side.instructions, side.in_ranking)
            )
            yield f"on {side.label} it was counted anew: {anew}, where the ranking has {ranked}"


def lines_answer(opened: LineDifference) -> str:
    """`do_mmap's own code makes +35 of mmap's +7,977 instructions per operation: vma_merge +25, do_mmap
    itself +10.`: with what was inlined, without what it calls.
    """
    whole, part = (number_format.signed(value) for value in (opened.whole, float(opened.difference)))
    own_code = f"{opened.function}'s own code makes {part}"
    start = f"{own_code} of {opened.workload}'s {whole} instructions per operation"
    frames = [
        (frame.function, difference)
        for frame in opened.frames
        if (difference := opened.more(frame.before, frame.after))
    ]
    if not frames:
        return f"{start}: all of its lines run as often on both."
    own_names = _own_names(opened)
    named = [
        f"{function}{' itself' if function in own_names else ''} {number_format.signed(float(difference))}"
        for function, difference in frames[:_MOST_NAMED]
    ]
    more = [f"{len(frames) - _MOST_NAMED} more"] if len(frames) > _MOST_NAMED else []
    return f"{start}: {', '.join((*named, *more))}."


def _own_names(opened: LineDifference) -> frozenset[str]:
    """The ranked functions themselves, which nothing inlined."""
    return frozenset(
        pair.function
        for pair in opened.lines
        for line in (pair.before, pair.after)
        if line is not None and not line.inlined
    )


# As JSON.


def lines_as_json(opened: LineDifference) -> dict[str, Any]:
    """Numbers are instructions per operation."""
    return {
        "workload": opened.workload,
        "function": opened.function,
        "from": _side_as_json(opened.before),
        "to": _side_as_json(opened.after),
        "difference": float(opened.difference),
        "of": opened.whole,
        "same_image": opened.same_code,
        "functions": [
            {"function": frame.function} | _counts_as_json(opened, frame.before, frame.after)
            for frame in opened.frames
        ],
        "lines": [
            {
                "function": pair.function,
                "from": _line_as_json(pair.before),
                "to": _line_as_json(pair.after),
            }
            | _counts_as_json(opened, *counts_of(pair))
            for pair in opened.lines
        ],
        "elsewhere": [part.model_dump(mode="json") for part in opened.elsewhere],
    }


def _side_as_json(side: LineSide) -> dict[str, Any]:
    return {
        "label": side.label,
        "symbols": list(side.symbols),
        "instructions": side.instructions / side.operations,
        "in_ranking": side.in_ranking / side.operations,
    }


def _line_as_json(line: SourceLine | None) -> dict[str, Any] | None:
    return line.model_dump(mode="json", include={"file", "line", "inlined"}) if line else None


def _counts_as_json(opened: LineDifference, before: int, after: int) -> dict[str, float]:
    return {
        "before": before / opened.before.operations,
        "after": after / opened.after.operations,
        "difference": float(opened.more(before, after)),
    }
