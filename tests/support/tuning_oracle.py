"""What is to be had at all: an oracle that tells idle knobs from those that act, with noisy runs.

It is spared the search: it knows the best value of every knob, that effects add up, how often knobs act, how
large their effects are (as of the family `many` of tuning_families: 1.5 to 7 %, three of ten harmful), and
the noise. Its runs are a balanced design of all knobs at two levels, which tells each effect with the
standard error 2 σ / √runs, the least that there is. It decides by Bayes' rule: a knob stays where its
expected gain is above a price times the probability that it is idle.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
