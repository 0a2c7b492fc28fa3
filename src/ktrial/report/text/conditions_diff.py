"""What differs around two profiles, as lines of a report: levels, options, settings, counters."""

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from ktrial.format import number_format
from ktrial.format.sanitize import one_line, shortened
from ktrial.model.attribution import Differences, OptionDifference, ValueDifference
from ktrial.report.text.kconfig_option import followers_of, option_change

_MOST = 12
"""Lines of each kind; what is left is counted."""
_VALUE_COLUMNS = 32
CAUSES = "Suspected causes, not measured: settings whose metrics moved as they say (explain --prove measures)"
_PLACES = ("/proc/sys/", "/sys/")


class Section(NamedTuple):
    """What differs, of one kind."""

    title: str
    lines: tuple[str, ...]
    left_out: int
    """How many more there are."""


def sections(differences: Differences, measured: Container[str] = ()) -> tuple[Section, ...]:
    """The kinds in which something differs, and what could not be compared.

    `measured`: files of settings, options and boot parameters that were taken back: nothing suspects them.
    """
    owned = [_option(one) for one in differences.options if one.owners and one.option not in measured]
    changed = [one for one in differences.values if None not in (one.before, one.after)]
    kinds = (
        _section(CAUSES, causes(differences, measured)),
        _section("Levels", [f"{one.factor}: {one.before} → {one.after}" for one in differences.levels]),
        _section("Boot parameters", list(_boot(differences))),
        _section(
            "Suspected, not measured: options of the configuration that own these functions by their names",
            owned,
        ),
        _section("Settings, as the kernels boot", [_value(one) for one in changed]),
        _section(
            "Counters, an operation",
            [
                f"{one.counter}: {number_format.number(one.before)} → {number_format.number(one.after)}"
                for one in differences.counters
            ],
        ),
        _section("Not compared", list(differences.unknown)),
    )
    return tuple(kind for kind in kinds if kind.lines)


def causes(differences: Differences, measured: Container[str] = ()) -> list[str]:
    """`block/nullb1/queue/read_ahead_kb: 128 → 8192: average read size 128 → 2,340.6`: one line a setting."""
    return [
        f"{_value(one)}: {_governed(one)}"
        for one in differences.values
        if one.governs and one.path not in measured
    ]


def _governed(one: ValueDifference) -> str:
    return ", ".join(
        f"{metric.metric} {number_format.number(metric.before)} → {number_format.number(metric.after)}"
        for metric in one.governs
    )


def _section(title: str, lines: Sequence[str]) -> Section:
    return Section(title, tuple(map(one_line, lines[:_MOST])), max(0, len(lines) - _MOST))


def _boot(differences: Differences) -> Iterator[str]:
    yield from (f"{number_format.MINUS}{one}" for one in differences.boot_before)
    yield from (f"+{one}" for one in differences.boot_after)


def _option(one: OptionDifference) -> str:
    owner = f" ({one.owners[0]})" if one.owners else ""
    return f"{option_change(one)}{followers_of(one)}{owner}"


def _value(one: ValueDifference) -> str:
    path = next((one.path.removeprefix(place) for place in _PLACES if one.path.startswith(place)), one.path)
    return f"{path}: {_text(one.before)} → {_text(one.after)}"


def _text(value: str | None) -> str:
    return shortened(value or "", _VALUE_COLUMNS) or '""'
