"""A study's interactions, put in the order in which a report shows them."""

from typing import NamedTuple

from ktrial.model.comparison import Interaction
from ktrial.model.design import level_shown
from ktrial.model.study_record import StudyRecord
from ktrial.report.text.comparisons import row_names

MEANING = (
    "What the first factor changes, while the second is at its baseline and while it is not; all else is as "
    "in the baseline. The interaction is the one divided by the other: 0 % where the two effects multiply."
)


class Row(NamedTuple):
    """One metric of one workload."""

    name: str
    interaction: Interaction


class Table(NamedTuple):
    """Two factors, each with one level besides its baseline."""

    title: str
    """`scheduler=my.patch and SLAB=y`."""
    alone: str
    """What stands above the effects with the second factor at its baseline: `my.patch with SLUB=y`."""
    beside: str
    rows: tuple[Row, ...]


def tables(record: StudyRecord) -> tuple[Table, ...]:
    """One for every two levels, in the order of the factors."""
    found: dict[tuple[object, ...], list[Interaction]] = {}
    for one in record.result.interactions:
        key = (one.first, one.first_levels, one.second, one.second_levels)
        found.setdefault(key, []).append(one)
    return tuple(_table(interactions) for interactions in found.values())


def _table(interactions: list[Interaction]) -> Table:
    first = interactions[0]
    changed = level_shown(first.first, first.first_levels[1])
    at, beside = (level_shown(first.second, level) for level in first.second_levels)
    names = row_names([(one.workload, one.metric) for one in interactions])
    rows = tuple(Row(*pair) for pair in zip(names, interactions, strict=True))
    return Table(f"{changed} and {beside}", f"with {at}", f"with {beside}", rows)
