"""Generators of studies' numbers, most of them not ktrial's own: for the suite that verdicts are scored by.

A generator is one small function. It draws what the trials of two arms took, as logarithms (0.01 is 1 %),
block by block. Its effects are those of the treatment on a typical block (the pseudomedian of the log ratio,
failed trials the worst rank) and in total (the logarithm of the ratio of the arms' arithmetic means). Where
the arms are alike both are 0; else they are computed from 200,000 blocks, with a standard error of 0.3 % of a
log ratio's spread. A score moves the treatment by its typical effect first, so that this is what is asked.

Distributions of scipy have the interquartile range of normal values with a standard deviation of 1 %, and
numbers above the location are slow ones. Traces are of tests/data/noise_traces.json, with their sources.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import signal, stats
from tests.support.places import DATA

Array = NDArray[np.float64]
Arms = tuple[Array, Array]
"""Logarithms of the baseline's and of the treatment's trials, of shape (studies, blocks) each; infinite where
a trial failed."""
Draw = Callable[[np.random.Generator, int, int], Arms]
ONE_PERCENT = 0.01
_QUARTILES = 2 * 0.6745 * ONE_PERCENT
_BLOCKS, _STUDIES, _PAIRINGS = 50, 4000, 20


@dataclass(frozen=True)
class Generator:
    """One way in which a machine's numbers scatter."""

    family: str
    draw: Draw
    alike: bool = True
    """Whether nothing tells the arms apart but their names, so that there is no effect at all."""
    step: float = 0.0
    """Of the clock, as a part of what a trial takes; 0 where it is fine."""
    independent: bool = False
    """Whether blocks have nothing in common by design, as the study says."""
    boot_length: int = 0
    """Blocks of a boot, which is that of one arm; 0 where no boot is told."""


def normal(rng: np.random.Generator, studies: int, blocks: int, spread: float = ONE_PERCENT) -> Array:
    """One arm."""
    return spread * rng.standard_normal((studies, blocks))


# Both arms have one distribution: scipy's.


def of_scipy(name: str, *shapes: float) -> Draw:
    """Both arms alike, of one of scipy's distributions."""
    frozen = getattr(stats, name)(*shapes)
    scale = _QUARTILES / float(frozen.ppf(0.75) - frozen.ppf(0.25))

    def draw(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
        both = np.asarray(frozen.rvs(size=(2, studies, blocks), random_state=rng)) * scale
        return both[0], both[1]

    return draw


SCIPY: dict[str, tuple[float, ...]] = {
    "norm": (), "t 3": (3,), "t 2": (2,), "cauchy": (), "levy": (), "laplace": (), "logistic": (),
    "hypsecant": (), "uniform": (), "triang": (0.9,), "arcsine": (), "lognorm": (1.0,), "lognorm 2": (2.0,),
    "gamma": (2,), "expon": (), "weibull_min": (0.7,), "gumbel_r": (), "invweibull": (3,), "pareto": (2,),
    "pareto 1": (1,), "lomax": (2,), "genpareto": (0.5,), "skewnorm": (8,), "exponnorm": (3,),
    "beta": (0.5, 2), "chi2": (1,), "invgauss": (2,), "johnsonsu": (2, 1), "loggamma": (0.5,),
    "levy_stable": (1.5, 0), "halfcauchy": (), "kappa3": (1,),
}  # fmt: skip
"""Name, with a number behind it where it is there twice → shapes."""


# Both arms alike: numpy's counts, modes, clocks, and what neighbours have in common.


def stretched(name: str, *shapes: float, share: float = 0.05) -> Draw:
    """What a trial takes is 1 and so large a share of values of one of scipy's distributions."""
    frozen = getattr(stats, name)(*shapes)

    def draw(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
        both = np.log1p(share * np.asarray(frozen.rvs(size=(2, studies, blocks), random_state=rng)))
        return both[0], both[1]

    return draw


def counted(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
    """Poisson: 5,000 events, counted for a fixed time."""
    both = np.log(rng.poisson(5000, (2, studies, blocks)) / 5000)
    return both[0], both[1]


def overdispersed(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
    """Negative binomial: counts that scatter by 2 %."""
    both = np.log(rng.negative_binomial(2500, 0.2, (2, studies, blocks)) / 10_000)
    return both[0], both[1]


def stalls(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
    """Zipf: each trial waits for a millisecond as often as that says, in a second."""
    waits = np.minimum(rng.zipf(2.2, (2, studies, blocks)), 10_000)
    both = np.log1p(0.001 * waits) + 0.002 * rng.standard_normal((2, studies, blocks))
    return both[0], both[1]


def modes(*shares: float, apart: float = 0.02, width: float = 0.004) -> Draw:
    """Modes at equal distances with these shares, in both arms."""

    def draw(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
        both = apart * rng.choice(len(shares), p=shares, size=(2, studies, blocks))
        both = both + width * rng.standard_normal((2, studies, blocks))
        return both[0], both[1]

    return draw


def staying_modes(stay: float, apart: float = 0.02) -> Draw:
    """Each arm has a slow mode in half of its trials, in runs: with `stay` a trial has the last one's."""

    def draw(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
        changes = rng.random((2, studies, blocks)) > stay
        first = rng.integers(2, size=(2, studies, 1))
        slow = (np.cumsum(changes, axis=2) + first) % 2
        both = apart * slow + 0.004 * rng.standard_normal((2, studies, blocks))
        return both[0], both[1]

    return draw


def boots(spread: float, length: int, *, own: bool) -> Draw:
    """Boots of `length` blocks, with `spread` between them.

    `own`: each arm has its own, so that a boot is that of one arm; else what a boot does is the same to both.
    """

    def draw(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
        count = -(-blocks // length)
        levels = spread * rng.standard_normal((2, studies, count))
        levels = np.repeat(levels, length, axis=2)[..., :blocks]
        levels = levels if own else np.broadcast_to(levels[:1], levels.shape)
        return (
            levels[0] + normal(rng, studies, blocks, 0.005),
            levels[1] + normal(rng, studies, blocks, 0.005),
        )

    return draw


def on_a_level(level: Draw) -> Draw:
    """Normal, 0.9 %, on levels that blocks share between the arms."""

    def draw(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
        of_slots, _ = level(rng, studies, 2 * blocks)
        noisy = of_slots + normal(rng, studies, 2 * blocks, 0.009)
        first = rng.random((studies, blocks)) < 0.5
        before, after = noisy[:, ::2], noisy[:, 1::2]
        return np.where(first, before, after), np.where(first, after, before)

    return draw


def walk(rng: np.random.Generator, studies: int, slots: int) -> Arms:
    """A random walk of 0.3 % a trial."""
    level = np.cumsum(0.003 * rng.standard_normal((studies, slots)), axis=1)
    return level, level


def trend(rng: np.random.Generator, studies: int, slots: int) -> Arms:
    """A rise of 0.1 % a trial: a laptop that warms up."""
    level = np.broadcast_to(0.001 * np.arange(slots), (studies, slots))
    return level, level


def waves(rng: np.random.Generator, studies: int, slots: int) -> Arms:
    """3 % up and down in sixteen trials: a job of cron's."""
    phase = rng.random((studies, 1))
    level = 0.03 * np.sin(2 * math.pi * (np.arange(slots) / 16 + phase))
    return level, level


def step_in_the_middle(rng: np.random.Generator, studies: int, slots: int) -> Arms:
    """5 % from a random trial on: somebody else moved in."""
    level = np.where(np.arange(slots) >= rng.integers(slots, size=(studies, 1)), 0.05, 0.0)
    return level, level


def bursts(rng: np.random.Generator, studies: int, slots: int) -> Arms:
    """One trial in thirty begins a burst: 20 % slower, and less from trial to trial."""
    begun = np.where(rng.random((studies, slots)) < 1 / 30, 0.2, 0.0)
    level: Array = signal.lfilter([1.0], [1.0, -0.7], begun, axis=1)
    return level, level


def like_the_last(*memory: float) -> Draw:
    """Autoregressive: an arm's trial is like its last ones, whatever the other arm does."""
    weights = [1.0, *(-weight for weight in memory)]

    def draw(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
        fresh = ONE_PERCENT * rng.standard_normal((2, studies, blocks + 100))
        both = signal.lfilter([1.0], weights, fresh, axis=2)[..., 100:]
        return both[0], both[1]

    return draw


def wandering(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
    """Each arm's level wanders by 0.5 % (0.97 of it stays from block to block), under 1 % of noise."""
    level = signal.lfilter([1.0], [1.0, -0.97], 0.00122 * rng.standard_normal((2, studies, blocks + 200)))
    both = level[..., 200:] + ONE_PERCENT * rng.standard_normal((2, studies, blocks))
    return both[0], both[1]


def clock(step: float, spread: float = ONE_PERCENT) -> Draw:
    """Normal, read from a clock with such steps, which stand anywhere."""

    def draw(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
        values = 1 + spread * rng.standard_normal((2, studies, blocks)) + step * rng.random((studies, 1))
        both = np.log(np.maximum(np.round(values / step), 1.0) * step)
        return both[0], both[1]

    return draw


def failing_at_random(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
    """One trial in ten fails, in both arms."""
    both = ONE_PERCENT * rng.standard_normal((2, studies, blocks))
    both[rng.random(both.shape) < 0.1] = math.inf
    return both[0], both[1]


# One arm is another one than the other.


def with_a_tail(share: float, size: float, spread: float = ONE_PERCENT, *, baseline: bool = False) -> Draw:
    """Normal; so large a share of one arm's trials take so much longer."""

    def draw(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
        hit = math.log1p(size) * (rng.random((studies, blocks)) < share)
        plain, spiked = normal(rng, studies, blocks, spread), normal(rng, studies, blocks, spread) + hit
        return (spiked, plain) if baseline else (plain, spiked)

    return draw


def waiting(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
    """Normal; the treatment waits for an exponential time, 2 % on average."""
    return normal(rng, studies, blocks), normal(rng, studies, blocks) + rng.exponential(
        0.02, (studies, blocks)
    )


def unlike(baseline: Draw, treatment: Draw) -> Draw:
    """The baseline of one generator, the treatment of another."""

    def draw(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
        return baseline(rng, studies, blocks)[0], treatment(rng, studies, blocks)[1]

    return draw


def of_spread(times: float) -> Draw:
    """Normal, 1 % the baseline; the treatment scatters so many times as much."""

    def draw(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
        return normal(rng, studies, blocks), normal(rng, studies, blocks, times * ONE_PERCENT)

    return draw


def failing_slowest(share: float) -> Draw:
    """Arms alike, but the treatment's slowest trials fail: no number is left of them."""
    limit = float(stats.norm.isf(share))

    def draw(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
        treated = rng.standard_normal((studies, blocks))
        return normal(rng, studies, blocks), np.where(treated > limit, math.inf, ONE_PERCENT * treated)

    return draw


# What was measured, replayed.


@cache
def traces() -> dict[str, list[Array]]:
    """Name → groups of runs in their order, as logarithms about their group's median."""
    recorded = json.loads((DATA / "noise_traces.json").read_text())
    return {
        name: [np.log(np.asarray(group) / np.median(group)) for group in trace["groups"]]
        for name, trace in recorded.items()
    }


def shuffled(name: str) -> Draw:
    """Runs of a trace in any order, with replacement."""

    def draw(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
        both = rng.choice(np.concatenate(traces()[name]), size=(2, studies, blocks))
        return both[0], both[1]

    return draw


def in_order(name: str) -> Draw:
    """A trace from a random run on, two runs a block; a coin says which of them is the treatment's."""

    def draw(rng: np.random.Generator, studies: int, blocks: int) -> Arms:
        values = np.concatenate(traces()[name])
        start = rng.integers(len(values), size=(studies, 1))
        runs = values[(start + np.arange(2 * blocks)) % len(values)]
        first = rng.random((studies, blocks)) < 0.5
        before, after = runs[:, ::2], runs[:, 1::2]
        return np.where(first, before, after), np.where(first, after, before)

    return draw


_REPLAYED = ("pgbench mean latency", "pgbench largest latency", "perf bench sched messaging", "gzip of 8 MB")


def _generators() -> dict[str, Generator]:
    alike: dict[str, dict[str, Draw]] = {
        "scipy": {name: of_scipy(name.partition(" ")[0], *shapes) for name, shapes in SCIPY.items()},
        "skew": {
            "1 + 5 % lognorm": stretched("lognorm", 1.0),
            "1 + 5 % lomax": stretched("lomax", 1.5),
            "1 + 5 % expon": stretched("expon"),
            "1 + 2 % lognorm 2": stretched("lognorm", 2.0, share=0.02),
        },
        "counts": {"poisson": counted, "negative binomial": overdispersed, "zipf stalls": stalls},
        "traces": {f"{name}, shuffled": shuffled(name) for name in traces()}
        | {f"{name}, in order": in_order(name) for name in _REPLAYED},
        "modes": {
            "two modes": modes(0.7, 0.3),
            "three modes": modes(0.5, 0.3, 0.2),
            "a rare mode": modes(0.93, 0.07, apart=0.1),
            "modes that stay (0.7)": staying_modes(0.7),
            "modes that stay (0.9)": staying_modes(0.9),
        },
        "boots": {
            "ten blocks a boot, the arms' own": boots(0.005, 10, own=True),
            "five blocks a boot, the arms' own": boots(0.005, 5, own=True),
            "ten blocks a boot, shared": boots(0.02, 10, own=False),
            "a boot each": boots(0.009, 1, own=True),
        },
        "drift": {
            "random walk": on_a_level(walk),
            "trend": on_a_level(trend),
            "waves": on_a_level(waves),
            "a step in the middle": on_a_level(step_in_the_middle),
            "bursts": on_a_level(bursts),
        },
        "memory": {
            "AR 0.2": like_the_last(0.2),
            "AR 0.4": like_the_last(0.4),
            "AR 0.6": like_the_last(0.6),
            "AR 0.8": like_the_last(0.8),
            "AR −0.5": like_the_last(-0.5),
            "AR 0.3, 0.3": like_the_last(0.3, 0.3),
            "wandering": wandering,
        },
        "failures": {"one in ten, both arms": failing_at_random},
    }
    apart: dict[str, dict[str, Draw]] = {
        "one arm's tail": {
            "+10 % in 5 %": with_a_tail(0.05, 0.1),
            "+30 % in 2 %": with_a_tail(0.02, 0.3),
            "+50 % in 10 %": with_a_tail(0.1, 0.5),
            "+100 % in 10 %": with_a_tail(0.1, 1.0),
            "+10 % in 30 %": with_a_tail(0.3, 0.1),
            "+100 % in 2 %, sd 0.2 %": with_a_tail(0.02, 1.0, 0.002),
            "+10 % in 10 % of the baseline": with_a_tail(0.1, 0.1, baseline=True),
            "exponential waits": waiting,
            "lognorm 2 beside norm": unlike(of_scipy("norm"), of_scipy("lognorm", 2.0)),
            "pareto 1 beside norm": unlike(of_scipy("norm"), of_scipy("pareto", 1)),
        },
        "unequal noise": {
            "3 times": of_spread(3),
            "10 times": of_spread(10),
            "a fifth": of_spread(0.2),
            "t 2 beside norm": unlike(of_scipy("norm"), of_scipy("t", 2)),
            "two modes beside norm": unlike(of_scipy("norm"), modes(0.7, 0.3)),
            "slow mode in 30 % and 50 %": unlike(modes(0.7, 0.3), modes(0.5, 0.5)),
        },
        "failures": {
            "the treatment's slowest 16 %": failing_slowest(0.16),
            "the treatment's slowest 25 %": failing_slowest(0.25),
        },
    }
    made = {
        f"{family}: {name}": Generator(family, draw, alike=is_alike)
        for families, is_alike in ((alike, True), (apart, False))
        for family, draws in families.items()
        for name, draw in draws.items()
    }
    for step, spread in ((0.02, 0.01), (0.005, 0.01), (0.01, 0.002), (0.004, 0.004)):
        name = f"clocks: steps of {step * 100:g} %, sd {spread * 100:g} %"
        made[name] = Generator("clocks", clock(step, spread), step=step)
    for name, length in (("ten blocks a boot, the arms' own", 10), ("five blocks a boot, the arms' own", 5)):
        untold = made[f"boots: {name}"]
        made[f"boots: {name}, told"] = Generator(untold.family, untold.draw, boot_length=length)
    for name in ("scipy: norm", "one arm's tail: +10 % in 30 %"):
        made[f"{name}, independent by design"] = Generator(
            made[name].family, made[name].draw, made[name].alike, independent=True
        )
    return made


GENERATORS = _generators()
"""Name, with its family before the colon → the generator."""


@dataclass(frozen=True)
class Effects:
    """Of a generator's treatment, as log ratios."""

    typical: float
    total: float
    """Infinite where trials fail; NaN where the arithmetic mean does not settle."""


@cache
def effects(name: str) -> Effects:
    """Exactly 0 where the arms are alike, else from 200,000 blocks."""
    generator = GENERATORS[name]
    if generator.alike:
        return Effects(0.0, 0.0)
    rng = np.random.default_rng(47)
    baseline, treatment = (arm.ravel() for arm in generator.draw(rng, _STUDIES, _BLOCKS))
    ratios = treatment - baseline
    middles = [float(np.median((ratios + rng.permutation(ratios)) / 2)) for _ in range(_PAIRINGS)]
    with np.errstate(over="ignore"):
        means = np.exp(np.minimum(treatment, 50.0)).mean(), np.exp(baseline).mean()
    total = math.inf if np.isinf(treatment).any() else math.log(means[0] / means[1])
    heaviest = np.exp(np.minimum(treatment, 50.0)).max() / np.exp(np.minimum(treatment, 50.0)).sum()
    return Effects(float(np.mean(middles)), math.nan if math.isfinite(total) and heaviest > 0.01 else total)
