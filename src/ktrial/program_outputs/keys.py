"""Every key of a document is accounted for: measurement, condition, what it scatters by, decoration.

What is left over is told, for it may be a number that nobody read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ktrial.program_outputs.lines import told
from ktrial.program_outputs.reports import Note

_DEEPEST = 40


@dataclass(frozen=True)
class KeyPatterns:
    """What keys a program writes, as ways from the outside in: `jobs/read/iops`; lists have no name in them.

    `*` is any key, `**` any key and all that is below it, `{min,max}` one of these.
    """

    measurements: tuple[str, ...]
    """Numbers that are read, and what tells how far to trust them."""
    conditions: tuple[str, ...] = ()
    decoration: tuple[str, ...] = ()
    """Numbers that follow from others, and all that is about the file."""

    @cached_property
    def _known(self) -> re.Pattern[str]:
        patterns = (*self.measurements, *self.conditions, *self.decoration)
        return re.compile("|".join(f"(?:{_pattern(each)})" for each in patterns))

    def remainder(self, document: Any) -> Iterator[Note]:
        """That keys were not understood; a key below one that is not known is not counted again."""
        ways = dict.fromkeys(_ways(document, ()))
        left = [way for way in ways if not self._known.fullmatch("\n".join(way))]
        unknown = set(left)
        outermost = [way for way in left if not any(way[:depth] in unknown for depth in range(1, len(way)))]
        yield from told(["/".join(way) for way in outermost], len(ways), "keys")


def _ways(value: Any, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if len(above) > _DEEPEST:
        return
    if isinstance(value, dict):
        for key, below in value.items():
            yield (*above, str(key))
            yield from _ways(below, (*above, str(key)))
    elif isinstance(value, list):
        for below in value:
            if isinstance(below, dict | list):
                yield from _ways(below, above)


def _pattern(way: str) -> str:
    """Keys are lines of the text that is matched. Whatever is on the way to a known key is known, too."""
    pattern = ""
    for part in reversed(way.split("/")):
        pattern = _part(part) + (f"(?:\\n{pattern})?" if pattern else "")
    return pattern


def _part(part: str) -> str:
    if part == "**":
        return r"(?s:.+)"
    if part == "*":
        return r"[^\n]+"
    names = part.strip("{}").split(",") if part.startswith("{") else [part]
    return f"(?:{'|'.join(re.escape(name) for name in names)})"
