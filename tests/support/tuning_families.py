"""Random functions for simulated searches: families of what kernels' knobs do, drawn anew with each seed.

A problem has 8 to 12 knobs of random kinds (switches, choices, percentages, small counts, wide ranges), in
random order; a few of them act, most do nothing. Families say how they act:

- `together`: two knobs that do something only where both are set right;
- `ranges`: two ranges whose best values lie inside;
- `valley`: two ranges that must go along with each other, and a knob that acts only beside one choice;
- `limited`: a choice that says where a wide range is best, and an order or a guard that the best touches;
- `many`: several small effects, some of them harmful;
- `idle`: nothing does anything.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ktrial.model.comparison import Verdict
from ktrial.model.tuning import Dimension, Goal, Guard, Objective, Observation, Order, Purpose, Range, Space
from ktrial.model.workload import Direction, Metric, Mode
from ktrial.optimize.encoding import Encoding, coordinate, value_at
from ktrial.optimize.evaluation_log import Ask
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign
from ktrial.stats.sequential.interim_analysis import look

METRIC, MEMORY = "rate", "memory"


OBJECTIVE = Objective(metric=METRIC, direction=Direction.HIGHER, unit="1/s")


_NOISES = (0.02, 0.03, 0.04, 0.05)


_OUTLIERS = 0.02


Truth = Callable[["At"], float]


class At:
    """A configuration, as the formulas read it."""

    def __init__(self, space: Space, configuration: Mapping[str, str]) -> None:
        self._space, self._configuration = space, configuration

    def place(self, name: str) -> float:
        """0 to 1 in the knob's range."""
        span = self._space[name].range
        assert span is not None
        return coordinate(span, float(self.value(name)))

    def value(self, name: str) -> str:
        """As the kernel has it."""
        return self._space.value(self._configuration, name)


@dataclass
class Problem:
    """One random function: an evaluator of ktrial.optimize."""

    family: str
    seed: int
    space: Space
    goal: Goal
    acts: Truth
    """The logarithm of the level."""
    acting: tuple[str, ...]
    """Knobs that do anything."""
    noise: float
    outliers: float
    memory: Truth | None = None
    noise_free: bool = False
    at_once: int = 1
    perturbations: int = 1
    mode: Mode = Mode.TIMED
    asked: list[Ask] = field(default_factory=list)

    def log_gain(self, configuration: Mapping[str, str]) -> float:
        """The logarithm of the true ratio to the baseline."""
        return self.acts(At(self.space, configuration)) - self._level

    @cached_property
    def _level(self) -> float:
        return self.acts(At(self.space, {}))

    def keeps(self, configuration: Mapping[str, str]) -> bool:
        """Whether all constraints and guards are met."""
        values = {MEMORY: self.memory(At(self.space, configuration))} if self.memory else {}
        guards = all(each.keeps(values[each.metric]) for each in self.goal.guards)
        return guards and self.space.holds(configuration)

    def idle(self, configuration: Mapping[str, str]) -> list[str]:
        """Its knobs without which it would be as good (within 0.01 %)."""
        whole = self.log_gain(configuration)
        rests = {name: {k: v for k, v in configuration.items() if k != name} for name in configuration}
        return [name for name, rest in rests.items() if abs(self.log_gain(rest) - whole) < 1e-4]

    @cached_property
    def optimum(self) -> float:
        """The largest log gain there is, by walks from many places along the knobs that act."""
        return max(0.0, *(self._walked(start) for start in self._starts())) if self.acting else 0.0

    def _starts(self) -> Iterator[dict[str, str]]:
        rng, encoding = np.random.default_rng(7), Encoding(self.space)
        drawn = [encoding.draw(rng) for _ in range(1500)]
        rests = [{k: v for k, v in each.items() if k in self.acting} for each in drawn]
        kept = [each for each in rests if self.keeps(each)]
        return iter(sorted(kept, key=self.log_gain)[-8:])

    def _walked(self, here: dict[str, str]) -> float:
        best = self.log_gain(here)
        while True:
            before = best
            for name in self.acting:
                for value in _values(self.space[name]):
                    near = self.space.only_changes({**here, name: value})
                    if self.log_gain(near) > best + 1e-9 and self.keeps(near):
                        here, best = near, self.log_gain(near)
            if best - before < 1e-6:
                return best

    def measure(self, batch: Sequence[Ask]) -> Iterator[Observation]:
        """See Evaluator."""
        for ask in batch:
            self.asked.append(ask)
            yield Observation(**ask.model_dump(), values=self.values(ask), seconds=1.0)

    def values(self, ask: Ask) -> dict[str, float]:
        """One run's."""
        rng = np.random.default_rng([self.seed, ask.order, 11])
        shaken = self.noise * rng.standard_normal()
        if rng.random() < self.outliers:
            shaken -= 0.25
        exact = self.noise_free
        at = At(self.space, ask.configuration)
        level = self.log_gain(ask.configuration) + (0.0003 * ask.perturbation if exact else shaken)
        rest = {MEMORY: self.memory(at)} if self.memory else {}
        return {METRIC: 1000.0 * math.exp(level), **rest}


def _values(dimension: Dimension) -> list[str]:
    if dimension.range is None:
        return [dimension.default, *dimension.choices]
    return [value_at(dimension.range, place) for place in np.linspace(0, 1, 65)]


def problem(family: str, seed: int) -> Problem:
    """The function of a family that belongs to a seed."""
    rng = np.random.default_rng([seed, sorted(_FAMILIES).index(family), 23])
    return drawn(family, seed, rng, _FAMILIES[family])


def drawn(family: str, seed: int, rng: np.random.Generator, acts_of: "Callable[[Maker], Truth]") -> Problem:
    """A function, with knobs that do nothing beside those that act."""
    made = Maker(rng)
    acts = acts_of(made)
    while len(made.knobs) < made.count:
        made.knob()
    if family == "idle":
        made.acting.clear()
    order = [int(at) for at in rng.permutation(len(made.knobs))]
    space = Space(dimensions=tuple(made.knobs[at] for at in order), constraints=tuple(made.constraints))
    return Problem(
        family=family,
        seed=seed,
        space=space,
        goal=Goal(objectives=(OBJECTIVE,), guards=tuple(made.guards), workload=family),
        acts=acts,
        acting=tuple(made.acting),
        noise=float(rng.choice(_NOISES)),
        outliers=_OUTLIERS if rng.random() < 0.5 else 0.0,
        memory=made.memory,
    )


class Maker:
    """Draws knobs."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.count = int(rng.integers(8, 13))
        self.knobs: list[Dimension] = []
        self.acting: list[str] = []
        self.constraints: list[Order] = []
        self.guards: list[Guard] = []
        self.memory: Truth | None = None

    def uniform(self, low: float, high: float) -> float:
        return float(self.rng.uniform(low, high))

    def knob(self) -> str:
        return self.span() if self.rng.random() < 0.5 else self.choice()

    def span(self, log: bool | None = None) -> str:
        """A range; its default is anywhere but at the very ends."""
        rng, name = self.rng, f"k{len(self.knobs)}"
        wide = rng.random() < 0.5 if log is None else log
        low, high = (
            (1, int(rng.choice([1024, 16384, 1_000_000])))
            if wide
            else (0, int(rng.choice([8, 20, 100, 200])))
        )
        span = Range(low=low, high=high, log=wide)
        default = value_at(span, self.uniform(0.1, 0.9))
        self.knobs.append(Dimension(name=name, range=span, default=default))
        return name

    def choice(self, fewest: int = 2) -> str:
        """A switch, or a choice of up to five."""
        rng, name = self.rng, f"k{len(self.knobs)}"
        count = int(rng.choice([each for each in (2, 2, 3, 4, 5) if each >= fewest]))
        values = tuple("abcde"[:count])
        self.knobs.append(Dimension(name=name, choices=values, default=values[0]))
        return name

    def default_place(self, name: str) -> float:
        one = next(each for each in self.knobs if each.name == name)
        assert one.range is not None
        return coordinate(one.range, float(one.default))

    def away(self, name: str, low: float = 0.25) -> float:
        """A place in the knob's range that is not near its default."""
        while True:
            place = self.uniform(0.1, 0.9)
            if abs(place - self.default_place(name)) >= low:
                return place

    def other(self, name: str) -> str:
        """A value that is not the default."""
        one = next(each for each in self.knobs if each.name == name)
        return str(self.rng.choice([each for each in one.choices if each != one.default]))

    def minor(self, most: int = 2) -> Truth:
        """Up to so many knobs that do a little by themselves."""
        parts: list[Truth] = []
        for _ in range(int(self.rng.integers(0, most + 1))):
            parts.append(self.main(self.uniform(0.01, 0.04) * (1 if self.rng.random() < 0.6 else -1)))
        return lambda at: sum(part(at) for part in parts)

    def main(self, size: float) -> Truth:
        """One knob that acts by itself: a bump, a slope or a choice."""
        name = self.knob()
        self.acting.append(name)
        if self.knobs[-1].range is None:
            good = self.other(name)
            return lambda at: size * (at.value(name) == good)
        kind, best, width = self.rng.random(), self.away(name), self.uniform(0.2, 0.4)
        if kind < 0.4:
            sign = 1 if self.rng.random() < 0.5 else -1
            return lambda at: size * sign * at.place(name)
        return lambda at: size * bump((at.place(name) - best) / width)

    def set_right(self, name: str) -> Truth:
        """1 where the knob is set right, 0 where it is not, as by default."""
        if self.knobs[[each.name for each in self.knobs].index(name)].range is None:
            good = self.other(name)
            return lambda at: float(at.value(name) == good)
        default = self.default_place(name)
        if self.rng.random() < 0.4:
            best, width = self.away(name), self.uniform(0.08, 0.15)
            return lambda at: bump((at.place(name) - best) / width)
        up = default < 0.5
        edge = self.uniform(0.55, 0.7) if up else self.uniform(0.3, 0.45)
        sharp = self.uniform(0.01, 0.06)
        return lambda at: 1 / (1 + math.exp(-(1 if up else -1) * (at.place(name) - edge) / sharp))


def bump(distance: float) -> float:
    return math.exp(-0.5 * distance**2)


def _together(made: Maker) -> Truth:
    names = tuple(made.choice(3) if made.rng.random() < 0.5 else made.span() for _ in range(2))
    made.acting += names
    first, second = (made.set_right(name) for name in names)
    gain, alone = made.uniform(0.1, 0.25), made.uniform(0.0, 0.04) * (made.rng.random() < 0.4)
    rest = made.minor(1)

    def acts(at: At) -> float:
        one, two = first(at), second(at)
        return gain * one * two - alone * (one + two - 2 * one * two) + rest(at)

    return acts


def _ranges(made: Maker) -> Truth:
    names = (made.span(), made.span())
    made.acting += names
    best, width = [made.away(name, 0.15) for name in names], [made.uniform(0.15, 0.4) for _ in names]
    gain, product, rest = made.uniform(0.08, 0.2), made.rng.random() < 0.5, made.minor(1)

    def acts(at: At) -> float:
        far = [(at.place(name) - best[i]) / width[i] for i, name in enumerate(names)]
        if product:
            return gain * bump(math.hypot(*far)) + rest(at)
        return -0.5 * gain * (min(far[0] ** 2, 4) + min(far[1] ** 2, 4)) / 2 + rest(at)

    return acts


def _valley(made: Maker) -> Truth:
    one, two, mode, inner = made.span(), made.span(), made.choice(), made.knob()
    made.acting += (one, two, mode, inner)
    width, gain = made.uniform(0.08, 0.2), made.uniform(0.15, 0.3)
    start = (made.default_place(one), made.default_place(two))
    slope = 1.0 if (start[0] < 0.5) == (start[1] < 0.5) else -1.0
    ahead = 1.0 if start[0] < 0.5 else -1.0
    best = made.uniform(0.25, 0.45)
    wanted, right, more = made.other(mode), made.set_right(inner), made.uniform(0.04, 0.1)
    choice, loss = made.uniform(-0.02, 0.04), made.uniform(0.1, 0.25)

    def acts(at: At) -> float:
        along = ahead * (at.place(one) - start[0])
        across = (at.place(two) - start[1]) - slope * (at.place(one) - start[0])
        ridge = bump(across / width)
        total = gain * ridge * bump((along - best) / 0.3) - loss * (1 - ridge)
        if at.value(mode) == wanted:
            total += choice + more * right(at)
        return total

    return acts


def _limited(made: Maker) -> Truth:
    choice, wide = made.choice(3), made.span(log=True)
    made.acting += (choice, wide)
    values = made.knobs[-2].choices
    best = {value: made.uniform(0.1, 0.9) for value in values}
    height = {value: made.uniform(0.0, 0.15) for value in values}
    height[values[0]], width = 0.0, made.uniform(0.15, 0.35)
    limit = _ordered(made) if made.rng.random() < 0.5 else _guarded(made, wide)

    def acts(at: At) -> float:
        value = at.value(choice)
        return height[value] + 0.12 * bump((at.place(wide) - best[value]) / width) + limit(at)

    return acts


def _ordered(made: Maker) -> Truth:
    """Two percentages; the lower one is the better the higher it is, and has to stay below the other."""
    lower, upper = f"k{len(made.knobs)}", f"k{len(made.knobs) + 1}"
    for name, default in ((lower, "10"), (upper, "30")):
        made.knobs.append(Dimension(name=name, range=Range(low=1, high=100), default=default))
    made.constraints.append(Order(left=lower, relation="<", right=upper))
    made.acting += (lower, upper)
    gain, best = made.uniform(0.05, 0.15), made.uniform(0.4, 0.7)
    return lambda at: gain * at.place(lower) - 0.3 * (at.place(upper) - best) ** 2


def _guarded(made: Maker, wide: str) -> Truth:
    """Memory grows with a range and with another one that pays: the guard is active at the best."""
    name = made.span()
    made.acting.append(name)
    start = made.default_place(name)
    gain, bound = made.uniform(0.06, 0.15), made.uniform(1.1, 1.5)
    made.memory = lambda at: 1.0 + (at.place(name) - start) + 0.3 * at.place(wide)
    made.guards.append(Guard(metric=MEMORY, relation="<=", bound=max(bound, 1.05 + 0.3)))
    return lambda at: gain * at.place(name)


def _many(made: Maker) -> Truth:
    sizes = [made.uniform(0.015, 0.07) * (1 if made.rng.random() < 0.7 else -1) for _ in range(6)]
    parts = [made.main(size) for size in sizes]
    return lambda at: sum(part(at) for part in parts)


def _idle(made: Maker) -> Truth:
    del made
    return lambda at: 0.0 * len(at.__dict__)


_FAMILIES: dict[str, Callable[[Maker], Truth]] = {
    "together": _together,
    "ranges": _ranges,
    "valley": _valley,
    "limited": _limited,
    "many": _many,
    "idle": _idle,
}


FAMILIES = tuple(_FAMILIES)


# More families of random functions (see tuning_families), on which the search was not developed.
#
# - `bottleneck`: three wide ranges; the gain is what the tightest of them lets through;
# - `either`: two knobs of which either is enough, and both together cost; a small range beside them;
# - `trap`: a range with a small hill near its default and a higher one far away, and choices that mostly har
# - `nested`: a switch lets a choice act, and that choice lets a range act;
# - `opposed`: two choices whose best values depend on each other (a table with one good cell), two slopes;
# - `oblique`: two ranges that have to keep a proportion, which may be any, and not quite that of the default


def _bottleneck(made: Maker) -> Truth:
    names = [made.span(log=True) for _ in range(3)]
    made.acting += names
    ups = [made.default_place(name) < 0.5 for name in names]
    reach, gain, rest = [made.uniform(0.25, 0.6) for _ in names], made.uniform(0.12, 0.3), made.minor(1)
    start = [made.uniform(0.3, 1.0) for _ in names]

    def acts(at: At) -> float:
        through = []
        for i, name in enumerate(names):
            moved = at.place(name) - made.default_place(name)
            through.append(start[i] + max(-0.5, min(1.0, (moved if ups[i] else -moved) / reach[i])))
        return gain * min(*through, 1.3) + rest(at)

    return acts


def _either(made: Maker) -> Truth:
    names = [made.choice() if made.rng.random() < 0.5 else made.span() for _ in range(2)]
    made.acting += names
    one, two = (made.set_right(name) for name in names)
    gain, cost, rest = made.uniform(0.08, 0.2), made.uniform(0.0, 0.06), made.main(made.uniform(0.03, 0.06))

    def acts(at: At) -> float:
        first, second = one(at), two(at)
        return gain * max(first, second) - cost * first * second + rest(at)

    return acts


def _trap(made: Maker) -> Truth:
    name = made.span()
    made.acting.append(name)
    start = made.default_place(name)
    far = made.away(name, 0.35)
    near = start + (0.15 if far > start else -0.15)
    low, high = made.uniform(0.03, 0.06), made.uniform(0.1, 0.25)
    choices = [made.choice(3) for _ in range(3)]
    made.acting += choices
    worth = [
        {value: 0.0 if at == 0 else made.uniform(-0.12, 0.05) for at, value in enumerate("abcde")}
        for _ in choices
    ]

    def acts(at: At) -> float:
        place = at.place(name)
        hills = max(low * bump((place - near) / 0.08), high * bump((place - far) / 0.12))
        return hills + sum(each[at.value(choice)] for each, choice in zip(worth, choices, strict=True))

    return acts


def _nested(made: Maker) -> Truth:
    switch, choice, span = made.choice(), made.choice(3), made.span()
    made.acting += (switch, choice, span)
    on, wanted = made.other(switch), made.other(choice)
    right = made.set_right(span)
    first, second, third = made.uniform(-0.02, 0.05), made.uniform(0.04, 0.12), made.uniform(0.05, 0.15)
    rest = made.minor(2)

    def acts(at: At) -> float:
        total = rest(at)
        if at.value(switch) == on:
            total += first
            if at.value(choice) == wanted:
                total += second + third * right(at)
        return total

    return acts


def _opposed(made: Maker) -> Truth:
    one, two = made.choice(3), made.choice(3)
    made.acting += (one, two)
    cells = {(a, b): made.uniform(-0.06, 0.04) for a in "abcde" for b in "abcde"}
    cells["a", "a"] = 0.0
    cells[made.other(one), made.other(two)] = made.uniform(0.1, 0.22)
    slopes = [made.span(), made.span()]
    made.acting += slopes
    sizes = [made.uniform(0.02, 0.08) * (1 if made.rng.random() < 0.5 else -1) for _ in slopes]

    def acts(at: At) -> float:
        slope = sum(size * at.place(name) for size, name in zip(sizes, slopes, strict=True))
        return cells[at.value(one), at.value(two)] + slope

    return acts


def _oblique(made: Maker) -> Truth:
    one, two = made.span(), made.span()
    made.acting += (one, two)
    width, gain, loss = made.uniform(0.08, 0.25), made.uniform(0.12, 0.3), made.uniform(0.05, 0.2)
    start = made.default_place(one), made.default_place(two)
    sign = 1.0 if (start[0] < 0.5) == (start[1] < 0.5) else -1.0
    slope, ahead = sign * 2 ** made.uniform(-1.2, 1.2), 1.0 if start[0] < 0.5 else -1.0
    best, beside = made.uniform(0.2, 0.45), made.uniform(-0.15, 0.15) * (made.rng.random() < 0.5)
    rest = made.minor(2)

    def acts(at: At) -> float:
        along = at.place(one) - start[0]
        ridge = bump((at.place(two) - start[1] - slope * along - beside) / width)
        return gain * ridge * bump((ahead * along - best) / 0.3) - loss * (1 - ridge) + rest(at)

    return acts


_UNSEEN: dict[str, Callable[[Maker], Truth]] = {
    "bottleneck": _bottleneck,
    "either": _either,
    "trap": _trap,
    "nested": _nested,
    "opposed": _opposed,
    "oblique": _oblique,
}


UNSEEN = tuple(_UNSEEN)


def unseen(family: str, seed: int) -> Problem:
    """The function of such a family that belongs to a seed."""
    return drawn(family, seed, np.random.default_rng([seed, UNSEEN.index(family), 29]), _UNSEEN[family])


# What is to be had at all: an oracle that tells idle knobs from those that act, with noisy runs.
#
# It is spared the search: it knows the best value of every knob, that effects add up, how often knobs act,
# how large their effects are (as of the family `many` of tuning_families: 1.5 to 7 %, three of ten
# harmful), and the noise. Its runs are a balanced design of all knobs at two levels, which tells each
# effect with the standard error 2 σ / √runs, the least that there is. It decides by Bayes' rule: a knob
# stays where its expected gain is above a price times the probability that it is idle.

Array = NDArray[np.float64]


KNOBS, ACTING, HELPFUL = 10, 0.35, 0.7


SMALLEST, LARGEST = 0.015, 0.07


NOISES = (0.02, 0.03, 0.04, 0.05)


_GRID = 23


_FUNCTIONS = 20_000


class Decided(NamedTuple):
    """Means over functions."""

    idle: float
    """Idle knobs in an answer; answers without a knob are not counted."""
    regret: float
    """Log gain that is missed."""


class Knowledge(NamedTuple):
    """Of every knob of every function, what the oracle knows, and the truth; shape (functions, knobs)."""

    effects: Array
    expected: Array
    """Posterior mean of the effect."""
    idle: Array
    """Posterior probability that there is none."""


def known(runs: int, seed: int = 1) -> Knowledge:
    """After so many runs."""
    rng = np.random.default_rng(seed)
    shape = (_FUNCTIONS, KNOBS)
    sizes = rng.uniform(SMALLEST, LARGEST, shape) * np.where(rng.random(shape) < HELPFUL, 1, -1)
    effects = np.where(rng.random(shape) < ACTING, sizes, 0.0)
    errors = 2 * rng.choice(NOISES, (_FUNCTIONS, 1)) / np.sqrt(runs)
    seen = effects + errors * rng.standard_normal(shape)
    idle = (1 - ACTING) * np.exp(-0.5 * (seen / errors) ** 2)
    total, weighted = idle.copy(), np.zeros(shape)
    for size in np.linspace(SMALLEST, LARGEST, _GRID):
        for effect, share in ((size, HELPFUL), (-size, 1 - HELPFUL)):
            likely = ACTING * share / _GRID * np.exp(-0.5 * ((seen - effect) / errors) ** 2)
            total, weighted = total + likely, weighted + likely * effect
    return Knowledge(effects, weighted / total, idle / total)


def decided(knowledge: Knowledge, price: float) -> Decided:
    """What comes of a price (a log gain) of an idle knob."""
    stays = (knowledge.expected > 0) & (knowledge.expected > price * knowledge.idle)
    missed = np.clip(knowledge.effects, 0, None).sum(axis=1) - (knowledge.effects * stays).sum(axis=1)
    idle = (stays & (knowledge.effects == 0)).sum(axis=1)[stays.any(axis=1)]
    return Decided(float(idle.mean()), float(missed.mean()))


def at_idle(knowledge: Knowledge, most: float) -> Decided:
    """The smallest regret with so many idle knobs in an answer at most: bisection of the price."""
    low, high = 0.0, 1.0
    if (free := decided(knowledge, low)).idle <= most:
        return free
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if decided(knowledge, middle).idle <= most else (middle, high)
    return decided(knowledge, high)


# `ktrial tune revalidate` of what a simulated search left undecided: the same blocks, looks and verdicts.

BLOCKS = 30
"""At most, as the command has it."""


_RATE = Metric(name=METRIC, unit="1/s", direction=Direction.HIGHER)


_FIRST_ORDER = 1000
"""Beyond all runs of the search: their noise is another."""


def gains_in_more_blocks(on: Problem, configuration: Mapping[str, str]) -> bool:
    """Whether fresh blocks show that it is better than the baseline."""
    design = SequentialDesign(margin=on.goal.margin)
    values: dict[str, list[float]] = {"before": [], "candidate": []}
    wanted: int | None = 1
    while wanted is not None:
        while len(values["before"]) < min(wanted, BLOCKS):
            for label, one in (("before", {}), ("candidate", dict(configuration))):
                order = _FIRST_ORDER + sum(map(len, values.values()))
                ask = Ask(configuration=one, purpose=Purpose.CONFIRM, order=order)
                values[label].append(on.values(ask)[METRIC])
        done = len(values["before"])
        blocked = {label: tuple(each) for label, each in values.items()}
        said = look(
            [BlockedMetric("bench", _RATE, "before", blocked, primary=True)], design, final=done >= BLOCKS
        )
        wanted = None if done >= BLOCKS else said.next_look
    return any(each.verdict is Verdict.BETTER for each in said.comparisons)
