"""What differs around two profiles, as lines of a report: levels, options, settings, counters."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ktrial.model.differences import Differences, OptionDifference
from ktrial.model.kernel_values import ValueDifference
from ktrial.report import figures
from ktrial.report.printable import one_line, shortened

_MOST = 12
"""Lines of each kind; what is left is counted."""
_VALUE_COLUMNS = 32
_PLACES = ("/proc/sys/", "/sys/")


class Section(NamedTuple):
    """What differs, of one kind."""

    title: str
    lines: tuple[str, ...]
    left_out: int
    """How many more there are."""


def sections(found: Differences) -> tuple[Section, ...]:
    """The kinds in which something differs, and what could not be compared."""
    owned = [_option(one) for one in found.options if one.owners]
    changed = [one for one in found.values if None not in (one.before, one.after)]
    kinds = (
        _section("Levels", [f"{one.factor}: {one.before} → {one.after}" for one in found.levels]),
        _section("Boot parameters", list(_boot(found))),
        _section("Configuration: options that plausibly own these functions", owned),
        _section("Settings, as the kernels boot", [_value(one) for one in changed]),
        _section(
            "Counters, an operation",
            [
                f"{one.counter}: {figures.number(one.before)} → {figures.number(one.after)}"
                for one in found.counters
            ],
        ),
        _section("Not compared", list(found.unknown)),
    )
    return tuple(kind for kind in kinds if kind.lines)


def _section(title: str, lines: Sequence[str]) -> Section:
    return Section(title, tuple(map(one_line, lines[:_MOST])), max(0, len(lines) - _MOST))


def _boot(found: Differences) -> Iterator[str]:
    yield from (f"{figures.MINUS}{one}" for one in found.boot_before)
    yield from (f"+{one}" for one in found.boot_after)


def _option(one: OptionDifference) -> str:
    """`+LRU_GEN (mm)`: set in the second only; `−NR_CPUS=64`: in the first only; `HZ 250 → 1000`."""
    name = one.option.removeprefix("CONFIG_")
    owner = f" ({one.owners[0]})" if one.owners else ""
    if one.before is not None and one.after is not None:
        return f"{name} {_text(one.before)} → {_text(one.after)}{owner}"
    sign, value = (figures.MINUS, one.before) if one.after is None else ("+", one.after)
    return f"{sign}{name}{owner}" if value == "y" else f"{sign}{name}={_text(value)}{owner}"


def _value(one: ValueDifference) -> str:
    path = next((one.path.removeprefix(place) for place in _PLACES if one.path.startswith(place)), one.path)
    return f"{path}: {_text(one.before)} → {_text(one.after)}"


def _text(value: str | None) -> str:
    return shortened(value or "", _VALUE_COLUMNS) or '""'
