"""Logs of several reports of one program: a file that a loop has appended to, or JSON with an object a line.

Reports that nothing tells apart are repetitions of one measurement. What tells them apart is the line before
each (a command, a title), or a condition that they name.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from ktrial.program_outputs import OutputFormat
from ktrial.program_outputs.errors import OutputEmpty, OutputError
from ktrial.program_outputs.reports import Measured, Note, Report

MOST_REPORTS = 1000
_LONGEST_TITLE = 60
_NEVER_THE_SAME = {"date"}
_ALIKE = 0.05
"""By how much a condition may differ that a clock has told: `10.00` and `10.04` seconds."""
_COPIED = 3
"""So many numbers that are the same in two reports are not measured twice."""
_OBJECT = re.compile(r"^\{", re.MULTILINE)
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(\D*)")
_PROMPT = re.compile(r"^(?:\S*[@~/]\S* ?[$#>]|[$#>+=*~-]+)\s+|\s+[=*#-]+$")
_TITLE = re.compile(r"(?:[$>+*~-]+ |[#=]+ ?)\S.*|\S*[@~/]\S* ?[$#>] \S.*|\S.*:")
_HEADING = re.compile(r"#{1,6} (?P<heading>\S.{0,30}?)[ #:]*")
"""Of Markdown, above a command."""
_COUNTED = re.compile(
    r"\b(?:run|iteration|iter|round|trial|repeat|repetition|pass|sample|attempt)\W*\d+(?: (?:of|/) ?\d+)?\b",
    re.IGNORECASE,
)


@runtime_checkable
class SeveralReports(Protocol):
    """A format of text that says where each report begins."""

    @property
    def begins(self) -> tuple[str, ...]:
        """Patterns of a report's first line: the first pattern that is there as often as any other counts."""
        ...


@dataclass(frozen=True)
class Piece:
    """One report of a log."""

    text: str
    """With an empty line for each line before it, so that a line keeps its number."""
    title: str
    """The line before it, without a shell's prompt; empty where that is no title."""


def read_log(text: str, format: OutputFormat) -> Report:
    """What is in an output, or in a log of several. Raises OutputDamaged, OutputEmpty."""
    try:
        return format.read(text)
    except OutputError:
        pieces = list(_pieces(text, format))
        if not 1 < len(pieces) <= MOST_REPORTS:
            raise
    reports, failures, first = list[tuple[Piece, Report]](), list[Note](), None
    lines: dict[str, int] = {}
    for piece in pieces:
        line = 1 + len(piece.text) - len(piece.text.lstrip("\n"))
        try:
            report = format.read(piece.text)
        except OutputEmpty as error:
            first = first or error
            failures.append(Note(f"line {line}: this report is left out: {error.problem}"))
            continue
        numbers = [(number.of, number.metric, number.values) for number in report.measured]
        content = f"{numbers} {report.conditions}"
        if len(numbers) >= _COPIED and (before := lines.setdefault(content, line)) != line:
            failures.append(Note(f"line {line}: this report is that of line {before} again: it counts once"))
        else:
            reports.append((piece, report))
    if not reports and first:
        raise first
    return _together(reports, failures)


# --- Where reports begin.


def _pieces(text: str, format: OutputFormat) -> Iterator[Piece]:
    starts = list(_starts(text, format))
    for start, end in zip(starts, [*starts[1:], len(text)], strict=False):
        yield Piece("\n" * text.count("\n", 0, start) + text[start:end], _title(text[:start], format.name))


def _starts(text: str, format: OutputFormat) -> Iterator[int]:
    """Of each report: its first line, or its JSON object."""
    patterns = format.begins if isinstance(format, SeveralReports) else ()
    matches = [list(re.finditer(pattern, text, re.MULTILINE)) for pattern in patterns]
    if longest := max(matches, key=len, default=[]):
        yield from (match.start() for match in longest)
        return
    at, decoder = 0, json.JSONDecoder()
    while match := _OBJECT.search(text, at):
        try:
            _, at = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            return
        yield match.start()


def _title(before: str, program: str) -> str:
    """The last line of the text before a report, if it is a command or a heading; and one above a command."""
    lines = [line.strip() for line in before[-2000:].split("\n") if re.search(r"\w", line)]
    last = lines[-1] if lines else ""
    word = program.partition("-")[0]
    if not (_TITLE.fullmatch(last) or re.search(rf"(?:^|[ /]){re.escape(word)} ", last)):
        return ""
    title = _PROMPT.sub("", last).strip(" :")
    above = _HEADING.fullmatch(lines[-2]) if len(lines) > 1 else None
    return (f"{above['heading']}, {title}" if above else title)[:_LONGEST_TITLE]


# --- What tells them apart.


def _together(reports: Sequence[tuple[Piece, Report]], failures: Sequence[Note]) -> Report:
    every = [report.conditions for _, report in reports]
    names = list(dict.fromkeys(name for conditions in every for name in conditions))
    varying = [name for name in names if name not in _NEVER_THE_SAME and _varies(name, every)]
    labels = list(_labels([piece.title for piece, _ in reports], every, varying))
    if any(number.spread for _, report in reports for number in report.measured):
        labels = _numbered(labels)
    merged: dict[tuple[str, str, str], Measured] = {}
    for (_, report), label in zip(reports, labels, strict=True):
        own = {name: report.conditions[name] for name in varying if name in report.conditions}
        for number in report.measured:
            of = ", ".join(filter(None, (label, number.of)))
            measured = replace(number, of=of, conditions={**own, **number.conditions})
            key = (of, number.metric, number.unit)
            merged[key] = _both(merged[key], measured) if key in merged else measured
    common = {name: every[0][name] for name in every[0] if name not in varying}
    kept = Counter((note.text, note.advice) for _, report in reports for note in report.notes)
    return Report(
        tuple(merged.values()),
        failures=(*failures, *(note for _, report in reports for note in report.failures)),
        notes=(*_what_was_done(labels), *(_of_several(*note, kept[note]) for note in kept)),
        conditions=common,
    )


def _varies(name: str, every: Sequence[dict[str, str]]) -> bool:
    levels = [conditions[name] for conditions in every if name in conditions]
    return not all(_is_alike(level, levels[0]) for level in levels)


def _is_alike(level: str, first: str) -> bool:
    """Whether a level is the first one; times that a clock has told are never quite."""
    numbers = _QUANTITY.fullmatch(level), _QUANTITY.fullmatch(first)
    if level == first or not all(numbers) or "." not in level + first:
        return level == first
    (value, unit), (other, other_unit) = (match.groups() for match in numbers if match)
    return unit == other_unit and abs(float(value) - float(other)) <= _ALIKE * float(other)


def _labels(titles: Sequence[str], every: Sequence[dict[str, str]], varying: Sequence[str]) -> Iterator[str]:
    """What names each report among the others; empty where all are the same."""
    bare = [_COUNTED.sub("", title).strip(" ,:;-") for title in titles]
    named = sum(map(bool, titles)) >= len(titles) - 1 and len(set(bare)) > 1
    bare = [title or f"report {at}" for at, title in enumerate(bare, start=1)] if named else bare
    for at, conditions in enumerate(every):
        same = [other for other, title in enumerate(bare) if not named or title == bare[at]]
        left = [name for name in varying if _varies(name, [every[other] for other in same])]
        levels = (f"{name} {conditions[name]}" for name in left if name in conditions)
        yield ", ".join(filter(None, (bare[at] if named else "", *levels)))


def _numbered(labels: Sequence[str]) -> list[str]:
    """Each has a label of its own: means of several runs are not put together."""
    times = Counter(labels)
    return [
        ", ".join(filter(None, (label, f"report {at}"))) if times[label] > 1 else label
        for at, label in enumerate(labels, start=1)
    ]


def _both(before: Measured, after: Measured) -> Measured:
    return replace(before, values=before.values + after.values, failed=before.failed + after.failed)


def _what_was_done(labels: Sequence[str]) -> Iterator[Note]:
    reports, things = len(labels), len(set(labels))
    if things > 1:
        text = f"{reports} reports are in it, of {things} things: what stands before or in them names them"
    else:
        text = f"{reports} reports are in it: taken for repetitions, for nothing tells them apart"
    if reports > 1:
        yield Note(text, "if that is not so, put each into a file of its own")


def _of_several(text: str, advice: str, times: int) -> Note:
    return Note(text if times == 1 else f"{text} (in {times} reports)", advice)
