"""A machine that is a formula: 12 mixed knobs, 3 interactions, noise, outliers, drift; for simulations.

The knobs are shaped like a kernel's: wide logarithmic ranges with a peak somewhere, percentages, switches,
choices, two that do nothing at all, defaults that are sensible and not best. The best configuration is 27 %
above the default; most random ones are below it.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ktrial.model.tuning import Dimension, Goal, Objective, Observation, Order, Range, Space
from ktrial.model.workload import Direction, Mode
from ktrial.optimize.evaluation_log import Ask

METRIC = "rate"
BASE = 1000.0
GOAL = Goal(
    objectives=(Objective(metric=METRIC, direction=Direction.HIGHER, unit="1/s"),), workload="formula"
)


def _span(name: str, low: float, high: float, default: str, *, log: bool = False) -> Dimension:
    return Dimension(name=name, range=Range(low=low, high=high, log=log), default=default)


def _choice(name: str, default: str, *others: str) -> Dimension:
    return Dimension(name=name, choices=(default, *others), default=default)


SPACE = Space(
    dimensions=(
        _span("read_ahead_kb", 4, 16384, "128", log=True),
        _span("latency_ns", 100_000, 100_000_000, "6000000"),
        _span("nr_migrate", 1, 1024, "32", log=True),
        _span("dirty_ratio", 1, 90, "20"),
        _span("dirty_background_ratio", 1, 80, "10"),
        _span("swappiness", 0, 200, "60"),
        _span("rt_runtime_us", 10_000, 1_000_000, "950000"),
        _choice("scheduler", "mq-deadline", "none", "kyber", "bfq"),
        _choice("thp", "madvise", "always", "never"),
        _choice("autogroup", "1", "0"),
        _choice("watchdog", "1", "0"),
        _choice("timer_migration", "1", "0"),
    ),
    constraints=(Order(left="dirty_background_ratio", relation="<", right="dirty_ratio"),),
)

NOTHING = ("rt_runtime_us", "timer_migration")
"""Knobs that do nothing, whatever the others are."""


def log_gain(configuration: Mapping[str, str]) -> float:
    """Logarithm of the true ratio to the baseline."""
    return _raw(configuration) - _raw({})


def _raw(configuration: Mapping[str, str]) -> float:
    at = {each.name: configuration.get(each.name, each.default) for each in SPACE.dimensions}
    ahead, latency, migrate = (
        math.log2(float(at[name])) for name in ("read_ahead_kb", "latency_ns", "nr_migrate")
    )
    dirty, behind, swap = (
        float(at[name]) for name in ("dirty_ratio", "dirty_background_ratio", "swappiness")
    )
    total = 0.07 / (1 + math.exp(-(ahead - 9.0)))
    total += 0.06 * _peak(latency, math.log2(24e6), 1.7)
    total += 0.03 * _peak(migrate, 7.0, 2.0)
    total += 0.05 * _peak(dirty, 60.0, 25.0)
    total += 0.015 * _peak(behind, 25.0, 20.0)
    total -= 0.02 * ((swap - 20.0) / 100.0) ** 2
    total += {"mq-deadline": 0.0, "none": 0.03, "kyber": 0.01, "bfq": -0.05}[at["scheduler"]]
    total += {"madvise": 0.0, "always": 0.03, "never": -0.015}[at["thp"]]
    total += {"1": 0.0, "0": -0.015}[at["autogroup"]] + {"1": 0.0, "0": 0.01}[at["watchdog"]]
    # Three interactions: read-ahead pays without a scheduler; huge pages swap badly; short slices migrate.
    total += 0.03 / (1 + math.exp(-(ahead - 10.0))) if at["scheduler"] == "none" else 0.0
    total -= 0.06 * swap / 200.0 if at["thp"] == "always" else 0.0
    total -= 0.02 * math.tanh((latency - math.log2(6e6)) / 2) * math.tanh((migrate - 5.0) / 2)
    return total


def _peak(value: float, best: float, width: float) -> float:
    return math.exp(-0.5 * ((value - best) / width) ** 2)


def nothing(configuration: Mapping[str, str]) -> float:
    """An A/A space: no knob does anything."""
    del configuration
    return 0.0


@dataclass
class Formula:
    """See Measuring. Counts its runs."""

    noise: float
    seed: int
    truth: Callable[[Mapping[str, str]], float] = log_gain
    outliers: float = 0.03
    drift: float = 0.0
    """Rise of the level over 65 runs."""
    one_sided: bool = False
    """Whether outliers are always slow runs; else as many are fast."""
    noise_free: bool = False
    at_once: int = 1
    perturbations: int = 1
    mode: Mode = Mode.TIMED
    asked: list[Ask] = field(default_factory=list)

    def measure(self, batch: Sequence[Ask]) -> Iterator[Observation]:
        """See Measuring."""
        for ask in batch:
            self.asked.append(ask)
            yield Observation(**ask.model_dump(), values={METRIC: self.value(ask)}, seconds=1.0)

    def value(self, ask: Ask) -> float:
        """One run's."""
        rng = np.random.default_rng([self.seed, ask.order, ask.perturbation])
        shaken = self.noise * rng.standard_normal()
        if rng.random() < self.outliers:
            shaken += 0.25 * (-1 if self.one_sided or rng.random() < 0.5 else 1)
        level = self.drift * ask.order / 65
        return BASE * math.exp(self.truth(ask.configuration) + shaken + level)


def best() -> tuple[dict[str, str], float]:
    """The best configuration and its true log gain, by walking each knob in turn from many starts."""
    from ktrial.optimize.encoding import Encoding

    ground = Encoding(SPACE)
    rng = np.random.default_rng(5)
    highest: tuple[dict[str, str], float] = ({}, 0.0)
    for _ in range(20):
        here = ground.draw(rng)
        gain, before = log_gain(here), -math.inf
        while gain > before + 1e-6:
            before = gain
            for name in SPACE.names:
                here = max([here, *ground.neighbours(here, name)], key=log_gain)
            gain = log_gain(here)
        if gain > highest[1]:
            highest = here, gain
    return highest
