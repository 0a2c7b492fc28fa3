"""Factors, levels, treatments, perturbations and the trials planned from them."""

import itertools
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, Self

from pydantic import Field

from ktrial.model.base import Model, StoredInteger, digest
from ktrial.model.kernel import BuildChange


class FactorKind(StrEnum):
    """What a factor changes."""

    KERNEL = "kernel"
    BOOT = "boot"
    SETTING = "setting"
    MEMORY = "memory"
    CPUS = "cpus"
    PARAMETER = "parameter"
    NOTHING = "nothing"
    """Levels that are names only: every arm is the same treatment (an A/A study)."""
    SCHEDULER = "scheduler"
    """Programs that load a scheduler into the running kernel (sched_ext); `default` is the kernel's own."""
    MODULE = "module"
    """A module that is loaded before the workloads run."""
    ENVIRONMENT = "environment"
    """A variable in the environment of the study's commands."""
    KCONFIG = "kconfig"
    PATCH = "patch"
    SOURCE = "source"
    COMPILER_FLAGS = "compiler-flags"


BUILD_KINDS = frozenset({FactorKind.KCONFIG, FactorKind.PATCH, FactorKind.SOURCE, FactorKind.COMPILER_FLAGS})
"""Kinds that change how the treatment's kernel is built."""


# Levels of factors: which of them a study's treatments have, and what they are called. Plain data only.
#
# Whoever has to start at once asks here, about a study as the store keeps it.

LevelValue = int | float | str


class Factor(Model):
    """One thing that is changed, and the levels it takes."""

    name: str
    kind: FactorKind
    levels: tuple[LevelValue, ...]
    baseline: LevelValue
    target: str = ""
    """What is changed: the boot parameter's name, the setting's name or path, `workload.parameter`, the
    configuration's option."""
    # Left out where it is empty: a study's digest must stay what it was before there were builds.
    changes: dict[str, BuildChange] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Of the kinds that change a build: level, as text → what it changes."""

    @classmethod
    def of(cls, kind: str, levels: Sequence[LevelValue], target: str = "", name: str = "") -> Self:
        """A factor whose baseline is its first level: `Factor.of("kernel", ["debian:6.1", "debian:6.12"])`.

        `kind`: as a study file writes it. `target`: what is changed, for kinds other than `kernel`. `name`:
        else the target, or the kind. Raises ValueError, which says what is allowed.
        """
        if len(set(levels)) != len(levels) or len(levels) < 2:
            raise ValueError(f"a factor has at least two levels that differ, not {list(levels)}")
        called = name or target or kind
        values = {"name": called, "kind": kind, "levels": tuple(levels), "target": target}
        return cls.model_validate({**values, "baseline": levels[0]})


class Treatment(Model):
    """One level of every factor."""

    levels: dict[str, LevelValue]
    """Factor name → level."""

    @property
    def label(self) -> str:
        """The levels, in the study's order of factors, joined by ` · `."""
        return label(self.levels)

    @property
    def key(self) -> str:
        """The same for the same levels, whatever their order."""
        return _key(tuple((name, type(level), level) for name, level in self.levels.items()))


@lru_cache(maxsize=4096)
def _key(levels: tuple[tuple[str, type, LevelValue], ...]) -> str:
    """A study of many trials asks for the same few again and again. 1, 1.0 and True are three levels."""
    return digest({name: level for name, _, level in levels})[:16]


def level_text(level: LevelValue) -> str:
    """A level as the kernel is told it: no exponent, no `.0`."""
    if isinstance(level, float):
        return f"{level:.0f}" if level.is_integer() else format(Decimal(repr(level)), "f")
    return str(level)


class Perturbation(Model):
    """A seeded change that must not matter. Number 0 changes nothing."""

    number: int
    environment_bytes: int = 0
    """Bytes added to the environment of the workload's process."""
    start_offset: int = 0
    """Guest nanoseconds waited before the workload starts."""
    layout_seed: int = 0
    """Seed of the workload's address-space layout; 0 is the fixed layout."""


class PlannedTrial(Model):
    """One treatment under one perturbation, in one block: what the runner hands to a machine."""

    order: StoredInteger
    """Position in the study's run order, from 0."""
    block: int
    treatment: Treatment
    perturbation: Perturbation
    # Left out where they are empty: in a study without a search they mean nothing.
    purpose: str = Field(default="", exclude_if=lambda value: not value)
    """In a search, whose blocks are its asks: what the trial is for (model.tuning.Purpose)."""
    compared_in: int | None = Field(default=None, exclude_if=lambda value: value is None)
    """In a search: trials of the same number are compared with each other."""

    @property
    def key(self) -> str:
        """Identifies the trial within its study: a finished trial with this key is not run again."""
        return f"{self.treatment.key}:{self.block}:{self.perturbation.number}"


class Design(StrEnum):
    """Which combinations of levels become treatments."""

    FULL = "full-factorial"
    ONE_AT_A_TIME = "one-factor-at-a-time"
    LISTED = "listed"
    """The baseline, and the combinations that the study names one by one."""


class Plan(Model):
    """All trials of a study, in the order in which they run."""

    treatments: tuple[Treatment, ...]
    baseline: Treatment
    trials: tuple[PlannedTrial, ...] = Field(default=())
    may_end_early: bool = False
    """In real time: when every comparison is decided."""


KERNELS_OWN_SCHEDULER = ("", "default")
"""Levels that leave the kernel's own scheduler."""


def scheduler_argv(level: LevelValue) -> tuple[str, ...]:
    """The program of a level and its arguments; nothing for the kernel's own. Raises ValueError (quotes)."""
    return () if level in KERNELS_OWN_SCHEDULER else tuple(shlex.split(str(level)))


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
    return tuple({_levels_key(levels): levels for levels in every}.values())


def count(factors: Sequence[FactorLevels], design: str, listed: Iterable[Mapping[str, LevelValue]]) -> int:
    """How many `combinations` there are: without making them, where that can be told."""
    levels = [{repr(level) for level in factor.levels} for factor in factors]
    baseline = [repr(factor.baseline) for factor in factors]
    match design:
        case "full-factorial":
            is_among = all(
                level in factor_levels for level, factor_levels in zip(baseline, levels, strict=True)
            )
            return math.prod(map(len, levels)) + (not is_among)
        case "one-factor-at-a-time":
            return 1 + sum(
                len(factor_levels - {level}) for level, factor_levels in zip(baseline, levels, strict=True)
            )
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


def _levels_key(levels: Levels) -> tuple[tuple[str, str], ...]:
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


def of_label(label: str) -> tuple[str, dict[str, LevelValue]]:
    """The name and the parameters of `hackbench(groups=2)`: what `use_label` has written; numbers are such.

    Raises ValueError where what is in parentheses are no parameters.
    """
    name, parenthesis, rest = label.partition("(")
    if not parenthesis or not label.endswith(")"):
        return label, {}
    parameters: dict[str, LevelValue] = {}
    for part in filter(None, (part.strip() for part in rest[:-1].split(","))):
        key, equals, value = (text.strip() for text in part.partition("="))
        if not (key and equals and value) or key in parameters:
            raise ValueError(f"{label}: '{part}' is no parameter; write {name}(NAME=VALUE, NAME=VALUE)")
        parameters[key] = _number_or_text(value)
    return name.strip(), parameters


def _number_or_text(text: str) -> LevelValue:
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text
