"""Every line of a report for people is accounted for: measurement, condition, mark of failure, decoration.

What is left over is told, for it may be a number that nobody read.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ktrial.program_outputs.reports import Note
from ktrial.text_lines import lines_of

_LONGEST_QUOTE = 48
_MOST_QUOTED = 2
_LONGEST_LINE = 500


@dataclass(frozen=True)
class LinePatterns:
    """What a program's lines look like: patterns of whole lines, without spaces at their ends."""

    measurements: tuple[str, ...]
    """Numbers that are read, and what they spread by."""
    conditions: tuple[str, ...] = ()
    """Groups with names are kept: `(?P<threads>[0-9]+)`; in names `_` stands for a space."""
    failures: tuple[str, ...] = ()
    """A line of this kind says that the run is worth nothing."""
    decoration: tuple[str, ...] = ()
    """Headings, and numbers that follow from others."""

    @cached_property
    def _known(self) -> re.Pattern[str]:
        patterns = (*self.measurements, *self.conditions, *self.failures, *self.decoration)
        return re.compile("|".join(f"(?:{_unnamed(pattern)})" for pattern in patterns))

    def conditions_of(self, text: str) -> dict[str, str]:
        """Condition → what it was, of all lines that tell one."""
        patterns = [re.compile(pattern) for pattern in self.conditions]
        return {
            name.replace("_", " "): value
            for line in _lines(text)
            for pattern in patterns
            if (match := pattern.fullmatch(line))
            for name, value in match.groupdict().items()
            if value
        }

    def failure_of(self, text: str) -> str:
        """The first line that says that the run failed; empty where none does."""
        patterns = [re.compile(pattern) for pattern in self.failures]
        return next((line for line in _lines(text) if any(_matches(patterns, line))), "")

    def remainder(self, text: str) -> Iterator[Note]:
        """That lines were not understood, between the first and the last that were: others' are around."""
        lines = _lines(text)
        known = [not line or self._known.fullmatch(line) is not None for line in lines]
        of_program = [at for at, is_known in enumerate(known) if is_known and lines[at]]
        if of_program:
            between = range(of_program[0], of_program[-1] + 1)
            left = [lines[at] for at in between if not known[at]]
            yield from told(left, sum(bool(lines[at]) for at in between))


def _matches(patterns: Sequence[re.Pattern[str]], line: str) -> Iterator[bool]:
    """Whether each pattern is the whole line's."""
    return (pattern.fullmatch(line) is not None for pattern in patterns)


def told(left: Sequence[str], total: int, things: str = "lines") -> Iterator[Note]:
    """A note on the lines (or keys) that are left over, of so many; none where none is."""
    if not left:
        return
    quoted = "; ".join(f"'{_quoted(line)}'" for line in left[:_MOST_QUOTED])
    more = "; …" if len(left) > _MOST_QUOTED else ""
    was = "was" if len(left) == 1 else "were"
    yield Note(
        f"{len(left)} of {total} {things} {was} not understood: {quoted}{more}",
        f"look at {'it' if len(left) == 1 else 'them'}: a number that stands there is not read",
    )


def _quoted(line: str) -> str:
    text = " ".join(line.split())
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"


def _lines(text: str) -> list[str]:
    return [line.rstrip()[:_LONGEST_LINE] for line in lines_of(text)]


def _unnamed(pattern: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)
