"""Kernel files that were read at several moments, as series over time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ktrial.model.trial import Series, SeriesKind

Texts = Mapping[str, str]
"""File → its text at one moment. A file that this kernel does not have is not in it."""


@dataclass(frozen=True)
class Reading:
    """One number at one moment."""

    name: str
    value: float
    unit: str = ""
    kind: SeriesKind = SeriesKind.COUNTER


def numbers(text: str) -> dict[str, tuple[float, ...]]:
    """A line's first word, without its colon → the numbers after it; equal first words are added up.

    As the guest's agent reads files of counters (crates/probes/src/counters.rs).
    """
    rows: dict[str, tuple[float, ...]] = {}
    for line in text.splitlines():
        words = line.split()
        values = tuple(float(word) for word in words[1:] if is_number(word))
        if values:
            name = words[0].removesuffix(":")
            rows[name] = _added(rows.get(name, ()), values)
    return rows


def is_number(word: str) -> bool:
    """Whether it is a decimal number, as the kernel writes them."""
    return word.removeprefix("-").replace(".", "", 1).isdecimal() and word.isascii()


def _added(sums: tuple[float, ...], values: tuple[float, ...]) -> tuple[float, ...]:
    length = max(len(sums), len(values))
    padded = (row + (0.0,) * (length - len(row)) for row in (sums, values))
    return tuple(map(sum, zip(*padded, strict=True)))


def series(moments: Sequence[Iterable[Reading]]) -> tuple[Series, ...]:
    """Readings at several moments as series, sorted by name; those that never change are left out.

    What is not there at a moment is what it was before, and 0 where it never was: a cache that is new.
    """
    known: dict[str, Reading] = {}
    values: dict[str, list[float]] = {}
    for place, readings in enumerate(moments):
        for one in readings:
            known.setdefault(one.name, one)
            own = values.setdefault(one.name, [0.0] * place)
            own += [own[-1] if own else 0.0] * (place - len(own))
            own.append(one.value)
    return tuple(
        _series(known[name], values[name], len(moments))
        for name in sorted(known)
        if len(set(values[name])) > 1
    )


def _series(of: Reading, values: list[float], moments: int) -> Series:
    whole = values + values[-1:] * (moments - len(values))
    first = whole[0] if of.kind is SeriesKind.COUNTER else 0.0
    return Series(name=of.name, unit=of.unit, kind=of.kind, values=tuple(each - first for each in whole))
