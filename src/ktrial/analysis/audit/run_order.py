"""Run order that goes together with the treatment, so that drift and effect cannot be told apart."""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ktrial.model.imported import Family, Imported
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.stats.independent import moments

_FEWEST_LEVELS = 4
"""Below, an order that happens to be sorted says little."""
_FEWEST_MEANS = 5
_SUFFIXES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "": 1.0}
_NUMBER = re.compile(r"([-+]?[0-9]*\.?[0-9]+(?:e[-+]?[0-9]+)?) ?([a-zµ%]{0,2})", re.IGNORECASE)


def confounded_orders(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """Levels in ascending or descending order, or means; groups that ran one after another."""
    for file in files:
        told: set[tuple[str, ...]] = set()
        for family in file.families:
            labels = tuple(group.label for group in family.groups)
            if family.blocked or labels in told:
                continue
            told.add(labels)
            yield from list(_sorted_levels(file.source, family)) or _sorted_means(file.source, family)
            yield from _one_after_another(file.source, family)


def _sorted_levels(source: str, family: Family) -> Iterator[DataWarning]:
    levels = [_number(group.label) for group in family.groups]
    known = [level for level in levels if level is not None]
    if len(known) < _FEWEST_LEVELS or len(known) < len(levels):
        return
    rising, falling = known == sorted(known), known == sorted(known, reverse=True)
    if rising == falling:
        return
    way = "ascending" if rising else "descending"
    chance = math.factorial(len(known))
    first, last = family.groups[0].label, family.groups[-1].label
    yield DataWarning(
        kind=WarningKind.ORDER_CONFOUNDED,
        text=f"{source}: {family.name}: the {len(known)} levels stand in {way} order ({first} … {last}), "
        f"which a random order does once in {chance}: what changed with time looks like an effect",
        advice="run the levels in blocks, each once a block, in random order, and publish the run order",
    )


def _sorted_means(source: str, family: Family) -> Iterator[DataWarning]:
    """Means that rise or fall from each row to the next, where the levels do not."""
    means = [moments(group).mean for group in family.groups]
    if len(means) < _FEWEST_MEANS or means not in (sorted(means), sorted(means, reverse=True)):
        return
    way = "rise" if means[0] < means[-1] else "fall"
    yield DataWarning(
        kind=WarningKind.ORDER_CONFOUNDED,
        text=f"{source}: {family.name}: the means {way} from every row to the next ({means[0]:g} … "
        f"{means[-1]:g}), which they do by chance once in {math.factorial(len(means)) // 2}: if the rows "
        "stand in run order, this is what a drift looks like",
        advice="a table that was sorted by its means says nothing here; else run the levels in blocks",
    )


def _one_after_another(source: str, family: Family) -> Iterator[DataWarning]:
    order = family.run_order
    changes = sum(before != after for before, after in pairwise(order))
    groups = len(set(order))
    if groups < 2 or len(order) == groups or changes > groups - 1:
        return
    yield DataWarning(
        kind=WarningKind.ORDER_CONFOUNDED,
        text=f"{source}: {family.name}: all runs of one group came before all of the next "
        f"({' … '.join(dict.fromkeys(order))}): whatever changed in between looks like an effect",
        advice="run the groups in blocks, each once a block, in random order",
    )


def _number(label: str) -> float | None:
    """The number in `0.10s`, `24ms`, `100000` or `latency_ns=6000000`; None where there is not just one."""
    match = _NUMBER.fullmatch(label.rpartition("=")[2].strip())
    if not match:
        return None
    unit = match[2].lower()
    return float(match[1]) * _SUFFIXES[unit] if unit in _SUFFIXES else None
