"""Levels of factors: which of them a study's treatments have, and what they are called. Plain data only.

Whoever has to start at once asks here, about a study as the store keeps it.
"""

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

LevelValue = int | float | str
Row = tuple[LevelValue, ...]
"""A level of each factor, in their order."""
Levels = dict[str, LevelValue]
"""Factor name → level."""

AS_IT_IS = "as it is"
"""A level of settings, boot parameters, modules and options: nothing is written, given, loaded or changed.
Labels leave it out."""

_BETWEEN = " · "
_OPTIONS = re.compile(r"[A-Z][A-Z0-9_]*=")
"""A level that names configuration options: `SLAB=y`."""


class FactorLevels(NamedTuple):
    """A factor's name, what it may be, and what it is in the baseline."""

    name: str
    levels: Sequence[LevelValue]
    baseline: LevelValue


def combinations(
    factors: Sequence[FactorLevels], design: str, listed: Iterable[Mapping[str, LevelValue]]
) -> tuple[Levels, ...]:
    """The levels of every treatment, each once: the baseline first, the others in the order of factors and
    levels.

    `design`: a value of `model.design.Design`; `listed`: what its `listed` names.
    """
    names = [factor.name for factor in factors]
    baseline = tuple(factor.baseline for factor in factors)
    rows = [baseline, *_others(factors, baseline, design, listed)]
    every = (dict(zip(names, row, strict=True)) for row in rows)
    return tuple({_key(levels): levels for levels in every}.values())


def count(factors: Sequence[FactorLevels], design: str, listed: Iterable[Mapping[str, LevelValue]]) -> int:
    """How many `combinations` there are: without making them, where that can be told."""
    levels = [{repr(one) for one in factor.levels} for factor in factors]
    baseline = [repr(factor.baseline) for factor in factors]
    match design:
        case "full-factorial":
            is_among = all(one in own for one, own in zip(baseline, levels, strict=True))
            return math.prod(map(len, levels)) + (not is_among)
        case "one-factor-at-a-time":
            return 1 + sum(len(own - {one}) for one, own in zip(baseline, levels, strict=True))
        case _:
            return len(combinations(factors, design, listed))


def _others(
    factors: Sequence[FactorLevels], baseline: Row, design: str, listed: Iterable[Mapping[str, LevelValue]]
) -> Iterator[Row]:
    match design:
        case "full-factorial":
            yield from itertools.product(*(factor.levels for factor in factors))
        case "one-factor-at-a-time":
            for place, factor in enumerate(factors):
                for level in factor.levels:
                    yield (*baseline[:place], level, *baseline[place + 1 :])
        case "listed":
            for row in listed:
                yield tuple(row.get(factor.name, factor.baseline) for factor in factors)
        case _:
            raise ValueError(f"there is no design {design!r}")


def _key(levels: Levels) -> tuple[tuple[str, str], ...]:
    """1, 1.0 and "1" are three levels."""
    return tuple((name, repr(level)) for name, level in levels.items())


def label(levels: Mapping[str, LevelValue]) -> str:
    """What the treatment with these levels is called."""
    changed = (level_shown(name, level) for name, level in levels.items() if level != AS_IT_IS)
    return _BETWEEN.join(changed) or AS_IT_IS


def parts(label: str) -> list[str]:
    """The levels that a treatment's label names."""
    return label.split(_BETWEEN)


def told_apart(label: str, baseline: str) -> str:
    """What of a treatment's label the baseline's has not: enough to know it by, and shorter."""
    common = set(baseline.split(_BETWEEN))
    return _BETWEEN.join(part for part in label.split(_BETWEEN) if part not in common) or label


def level_shown(name: str, level: LevelValue) -> str:
    """A factor's level in a treatment's label: `vm.swappiness=60`, `SLAB=y`, `debian:6.1`."""
    if name == "scheduler":
        level = re.sub(r"^/\S*/", "", str(level))
    if name in {"kernel", "memory"} or _OPTIONS.match(str(level)):
        return str(level)
    if name == "cpus":
        return f"{level} CPU{'' if level == 1 else 's'}"
    return f"{name}={level}" if level != "" else f"{name}=(not given)"


def use_label(workload: str, parameters: Mapping[str, LevelValue]) -> str:
    """`hackbench(groups=2)`: a workload's name, with the parameters that were set."""
    if not parameters:
        return workload
    inside = ", ".join(f"{key}={value}" for key, value in sorted(parameters.items()))
    return f"{workload}({inside})"
