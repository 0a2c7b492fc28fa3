"""A search over settings: what may be changed, what is wanted, what was measured, what came of it.

A configuration names the dimensions whose values differ from their defaults; the empty one is the baseline.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from operator import eq, ge, gt, le, lt
from typing import Literal, TypeAlias

from pydantic import Field, model_validator

from ktrial.model.base import Model
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import Direction, Mode

Configuration: TypeAlias = dict[str, str]
"""Dimension's name → its value, for all that differ from their defaults."""
Relation: TypeAlias = Literal["<", "<=", "==", ">=", ">"]

_RELATIONS = {"<": lt, "<=": le, "==": eq, ">=": ge, ">": gt}


def related(left: float, relation: Relation, right: float) -> bool:
    """Whether the relation holds."""
    return bool(_RELATIONS[relation](left, right))


class Cost(StrEnum):
    """What it takes to change a dimension, the cheapest first."""

    RUN_TIME = "run-time"
    BOOT = "boot"
    BUILD = "build"
    KERNEL = "kernel"

    @property
    def rank(self) -> int:
        """0 for the cheapest."""
        return list(Cost).index(self)


class Range(Model):
    """Numbers from low to high, both included."""

    low: float
    high: float
    integer: bool = True
    """Whole numbers only."""
    log: bool = False
    """What matters is the factor between two values, not their difference."""
    step: float | None = None
    """Only low, low + step, low + 2·step…; None: every number (every whole one)."""

    @model_validator(mode="after")
    def _sensible(self) -> "Range":
        if not self.low < self.high:
            raise ValueError("a range runs from a lower to a higher value")
        if self.log and self.low <= 0:
            raise ValueError("a logarithmic range begins above zero")
        if self.step is not None and self.step <= 0:
            raise ValueError("a step is above zero")
        if self.integer and any(edge != int(edge) for edge in (self.low, self.high)):
            raise ValueError("a range of whole numbers has whole numbers at its ends")
        return self


class Dimension(Model):
    """One thing that the search may change: a knob, a boot parameter, an option, or the kernel."""

    name: str
    cost: Cost = Cost.RUN_TIME
    range: Range | None = None
    choices: tuple[str, ...] = ()
    """The values that it may have, where they are no range."""
    default: str
    """The value in force without the search, which ablation takes it back to; it is always allowed, also
    where it lies outside the range."""
    back: tuple[str, str] | None = None
    """Knob and value whose writing brings the default back, where writing the default does not: a limit in
    bytes is 0 as soon as the ratio in its place is written, and takes no 0."""
    unit: str = ""
    summary: str = ""

    @model_validator(mode="after")
    def _one_of_both(self) -> "Dimension":
        if (self.range is None) is not bool(self.choices):
            raise ValueError(f"{self.name} has either a range or choices")
        if self.choices and set(self.choices) == {self.default}:
            raise ValueError(f"{self.name} has no value but its default")
        return self


class Order(Model):
    """A relation between two dimensions' values: `vm.dirty_background_ratio < vm.dirty_ratio`."""

    left: str
    relation: Relation
    right: str
    """A dimension's name, or a number."""
    in_force: dict[str, str] = Field(default_factory=dict)
    """The side that is not searched → its value on the system, which stays what it is."""

    def __str__(self) -> str:
        return f"{self._side(self.left)} {self.relation} {self._side(self.right)}"

    def _side(self, name: str) -> str:
        return f"{name} ({self.in_force[name]} in force)" if name in self.in_force else name


class OnlyOneOf(Model):
    """Of these dimensions at most one differs from its default: the kernel resets the others with it."""

    names: tuple[str, ...] = Field(min_length=2)

    def __str__(self) -> str:
        return f"only one of {', '.join(self.names)}"


Constraint: TypeAlias = Order | OnlyOneOf


class Space(Model):
    """All that may be changed, and which values go together."""

    dimensions: tuple[Dimension, ...]
    constraints: tuple[Constraint, ...] = ()

    def __getitem__(self, name: str) -> Dimension:
        """The dimension of this name. Raises KeyError."""
        dimension = next((dimension for dimension in self.dimensions if dimension.name == name), None)
        if dimension is None:
            raise KeyError(name)
        return dimension

    @property
    def names(self) -> tuple[str, ...]:
        """Of all dimensions, in their order."""
        return tuple(dimension.name for dimension in self.dimensions)

    def value(self, configuration: Mapping[str, str], name: str) -> str:
        """What the dimension is in this configuration: its value, or its default."""
        return configuration[name] if name in configuration else self[name].default

    def only_changes(self, values: Mapping[str, str]) -> Configuration:
        """Without the dimensions that are at their defaults; in the order of the space."""
        return {
            dimension.name: values[dimension.name]
            for dimension in self.dimensions
            if values.get(dimension.name, dimension.default) != dimension.default
        }

    def holds(self, configuration: Mapping[str, str]) -> bool:
        """Whether every constraint is met. The baseline always holds: it is in force."""
        return not configuration or not any(self.broken(configuration))

    def broken(self, configuration: Mapping[str, str]) -> Iterator[Constraint]:
        """The constraints that the configuration does not meet."""
        for constraint in self.constraints:
            if isinstance(constraint, OnlyOneOf):
                if sum(name in configuration for name in constraint.names) > 1:
                    yield constraint
            elif not self._ordered(constraint, configuration):
                yield constraint

    def _ordered(self, order: Order, configuration: Mapping[str, str]) -> bool:
        values = {**order.in_force, **configuration}
        left, right = (self._number(text, values) for text in (order.left, order.right))
        # What is no number (`cubic`, a kernel's `auto`) has no order.
        return left is None or right is None or related(left, order.relation, right)

    def _number(self, text: str, configuration: Mapping[str, str]) -> float | None:
        shown = configuration.get(text) or next(
            (dimension.default for dimension in self.dimensions if dimension.name == text), text
        )
        try:
            return float(shown)
        except ValueError:
            return None


class Objective(Model):
    """A metric to make better."""

    metric: str
    direction: Direction
    unit: str = ""


class Guard(Model):
    """A limit that must be kept: `p99 <= 20`."""

    metric: str
    relation: Relation
    bound: float
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.metric} {self.relation} {self.bound:g}{self.unit and ' '}{self.unit}"

    def keeps(self, value: float) -> bool:
        """Whether the value is within the limit."""
        return related(value, self.relation, self.bound)


class Goal(Model):
    """What is wanted: one objective, or two that are weighed against each other, within limits."""

    objectives: tuple[Objective, ...] = Field(min_length=1, max_length=2)
    guards: tuple[Guard, ...] = ()
    margin: float = 0.01
    """The smallest relative change that matters."""
    workload: str = ""
    """What is measured, as reports call it."""


class Budget(Model):
    """What the whole search may spend, whichever ends first."""

    runs: int | None = Field(default=None, ge=1)
    seconds: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _some(self) -> "Budget":
        if self.runs is None and self.seconds is None:
            raise ValueError("a budget has runs or seconds")
        return self


class Purpose(StrEnum):
    """What a run is for, in the order of the search."""

    CALIBRATE = "calibrate"
    """The baseline, several times, before anything is changed: the noise."""
    EXPLORE = "explore"
    CONTEND = "contend"
    ABLATE = "ablate"
    CONFIRM = "confirm"


class Observation(Model):
    """One run of one configuration."""

    configuration: Configuration
    values: dict[str, float] = Field(default_factory=dict)
    """Metric → value; empty where it failed."""
    failure: str = ""
    """Why there are no values, in one sentence; empty where it ran."""
    refused: str = ""
    """The dimension whose value the kernel did not take; empty where it took all."""
    seconds: float = 0.0
    """What it took, with changing the settings."""
    order: int
    """Running number in the search, from 0: that of the ask which it answers."""
    purpose: Purpose
    block: int | None = None
    """Of contenders, ablation and confirmation: runs of one block are compared with each other."""
    perturbation: int = 0
    """In noise-free mode: which of the seeded changes that must not matter; 0 is none."""


class Effect(Model):
    """What one knob (or several together) does to the objective: value with it / value without it.

    All else is as in the answer. Where the objective is better when lower, a gain is below 1.
    """

    names: tuple[str, ...]
    """One name; two, where they were taken back together."""
    values: tuple[str, ...]
    ratio: float
    low: float | None = None
    high: float | None = None
    """The interval of the ratio (95 %) where fresh runs gave one; None for what the model expects."""
    runs: int = 0
    """Runs in ablation that this rests on; 0: on the search's model alone."""
    reason: str = ""
    """Why it was kept or dropped, in one sentence."""


class Importance(Model):
    """How much of what the search saw goes back to one dimension."""

    name: str
    share: float
    """Of the variance of the objective's logarithm over the space, 0 to 1, interactions included."""
    low: float
    high: float


class TunedInteraction(Model):
    """Whether two dimensions' effects multiply: value at four corners, by the search's model."""

    first: str
    first_values: tuple[str, str]
    """Its default, and the answer's (or best) value."""
    second: str
    second_values: tuple[str, str]
    corners: tuple[float, float, float, float]
    """Relative to the baseline: neither changed, the first, the second, both."""
    ratio: float
    """both / (first · second): 1 where the effects multiply."""
    low: float | None = None
    high: float | None = None
    """None: the model gives no interval. Answers of an older ktrial have one, which was too narrow."""


class FrontPoint(Model):
    """One configuration of a Pareto front: none is better in both objectives."""

    configuration: Configuration
    ratios: tuple[float, float]
    """Of each objective to the baseline's, with the noise of its runs."""
    runs: int
    comparisons: tuple[Comparison, ...] = ()
    """From the confirmation, where this one was confirmed."""


class Finalist(Model):
    """A configuration that was confirmed on fresh runs, in blocks that it shared with the others."""

    configuration: Configuration
    comparison: Comparison
    """With the baseline: what fresh runs show, with what was expected. All intervals hold together."""
    fresh: float | None = None
    """The ratio of the objective that fresh runs alone show."""
    expected: float | None = None
    """The ratio that the runs of the search let expect."""
    broken: tuple[str, ...] = ()
    """Guards that it did not keep, and failed runs, each in a sentence."""


class Tuned(Model):
    """A search's whole answer."""

    space: Space
    goal: Goal
    budget: Budget
    seed: int
    mode: Mode = Mode.TIMED
    baseline: dict[str, float]
    """Metric → geometric mean (for guards: median) of the baseline's runs."""
    observations: tuple[Observation, ...]
    """All that was measured, in the order of asking."""
    drift: tuple[float, ...] = ()
    """For each observation: the level of the machine then, relative to its mean, as the baseline shows it."""
    candidate: Configuration = Field(default_factory=dict)
    """What the search found and ablation left: what confirmation judged. Empty: nothing was worth it."""
    confirmed: Configuration | None = None
    """The answer: the candidate where confirmation found it better, within all guards; else None."""
    comparisons: tuple[Comparison, ...] = ()
    """Confirmation: what fresh runs show, with what those of the search let expect; the objectives first."""
    finalists: tuple[Finalist, ...] = ()
    """All that were confirmed beside each other, the answer among them. None in noise-free mode, and with two
    objectives (see `front`)."""
    kept: tuple[Effect, ...] = ()
    dropped: tuple[Effect, ...] = ()
    importance: tuple[Importance, ...] = ()
    """The largest share first."""
    interactions: tuple[TunedInteraction, ...] = ()
    front: tuple[FrontPoint, ...] = ()
    """Of two objectives."""
    noise: float
    """Standard deviation of the logarithm of one run of one configuration: 0.02 is about 2 %; 0 in
    noise-free mode."""
    smallest_effect: float
    """The smallest relative gain that this budget's confirmation finds in 80 of 100 searches."""
    seen: float | None = None
    """The best ratio that any single run of the search showed: what a tuner that believes it would report."""
    seconds: float = 0.0
    answer: str
    """One sentence."""
    warnings: tuple[DataWarning, ...] = ()

    @property
    def comparison(self) -> Comparison | None:
        """Confirmation's, for the first objective."""
        return self.comparisons[0] if self.comparisons else None

    @property
    def undecided(self) -> Configuration:
        """The candidate, where fresh runs let expect a gain that they could neither show nor rule out.

        Empty in noise-free mode, where the same runs would say the same again.
        """
        comparison = self.comparison
        if self.confirmed or not self.noise or comparison is None or comparison.ratio is None:
            return {}
        verdicts = {comparison.verdict for comparison in self.comparisons}
        broken = any(
            finalist.broken for finalist in self.finalists if finalist.configuration == self.candidate
        )
        gains = comparison.ratio > 1 if comparison.direction is Direction.HIGHER else comparison.ratio < 1
        if broken or not gains or comparison.verdict is not Verdict.INCONCLUSIVE or Verdict.WORSE in verdicts:
            return {}
        return self.candidate
