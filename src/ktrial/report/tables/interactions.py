"""The tables of interactions: one for every two factors, each with one level besides its baseline."""

from dataclasses import replace
from typing import NamedTuple

from ktrial.format.table import Column, Field, Table, change, interval, name, table, verdict
from ktrial.model.comparison import Interaction
from ktrial.model.design import level_shown
from ktrial.model.study import StudyRecord
from ktrial.report.text.study_summary import row_names

MEANING = (
    "What the first factor changes, while the second is at its baseline and while it is not; all else is as "
    "in the baseline. The interaction is the one divided by the other: 0 % where the two effects multiply."
)


class InteractionTable(NamedTuple):
    """What the first of two factors changes, beside each level of the second."""

    title: str
    """`scheduler=my.patch and SLAB=y`."""
    table: Table


class InteractionRow(NamedTuple):
    """One metric of one workload."""

    name: str
    interaction: Interaction


def tables(record: StudyRecord) -> tuple[InteractionTable, ...]:
    """One for every two levels, in the order of the factors."""
    by_levels: dict[tuple[object, ...], list[Interaction]] = {}
    for one in record.result.interactions:
        key = (one.first, one.first_levels, one.second, one.second_levels)
        by_levels.setdefault(key, []).append(one)
    return tuple(_of(interactions) for interactions in by_levels.values())


def _of(interactions: list[Interaction]) -> InteractionTable:
    first = interactions[0]
    changed = level_shown(first.first, first.first_levels[1])
    at, other = (level_shown(first.second, level) for level in first.second_levels)
    names = row_names([(one.workload, one.metric) for one in interactions])
    rows = [InteractionRow(*pair) for pair in zip(names, interactions, strict=True)]
    made = table(_fields(f"with {at}", f"with {other}"), rows, "matrix interactions")
    return InteractionTable(f"{changed} and {other}", replace(made, stacks=True))


def _fields(alone: str, with_other: str) -> tuple[Field[InteractionRow], ...]:
    return (
        Field(Column("workload", "workload", wraps=True), lambda it: name(it.name)),
        Field(
            Column("effect", alone, numeric=True, named=True),
            lambda it: change(it.interaction.effect),
        ),
        Field(
            Column("effect_beside", with_other, numeric=True, named=True),
            lambda it: change(it.interaction.effect_beside),
        ),
        Field(
            Column("ratio", "interaction", numeric=True),
            lambda it: change(it.interaction.ratio, verdict=it.interaction.verdict),
        ),
        Field(
            Column("interval", "interval", "%", numeric=True),
            lambda it: interval(it.interaction.low, it.interaction.high),
        ),
        Field(
            Column("verdict", "verdict"),
            lambda it: verdict(
                it.interaction.verdict,
                notes=(it.interaction.reason,) if it.interaction.reason else (),
            ),
        ),
    )
