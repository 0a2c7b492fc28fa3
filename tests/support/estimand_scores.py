"""How verdicts on all trials together, and on the slow ones, fare on the suite's generators.

A verdict is about `total`, the ratio of arithmetic means, or about `tail`, the ratio of the 0.9 quantiles.
The treatment is moved first so that this is the same in both arms: exactly where the arms are alike, else by
the effect in 200,000 blocks. Generators of which trials fail have no such ratio and are left out, as are
means that do not settle; logarithms are cut where their cubes are no numbers any more.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from tests.support.adversarial_noise import GENERATORS, effects
from tests.support.making import SECONDS

from ktrial.model.comparison import Estimand
from ktrial.stats.resolution import NO_ROUNDING, Rounding
from ktrial.stats.sequential.boots import BootClusters
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign
from ktrial.stats.sequential.estimands import QUANTILE, PairedArms
from ktrial.stats.sequential.repeated_intervals import Intervals, blocks_until, claims
from ktrial.stats.verdict_rules import Claim

Array = NDArray[np.float64]
BLOCKS, MARGIN = 60, 0.01
_STUDIES, _BLOCKS = 4000, 50
_LARGEST = 200.0


@dataclass(frozen=True)
class AboutShares:
    """Of so many studies of one generator, about one estimand."""

    studies: int
    false: float
    """A difference is claimed where there is none."""
    covered: float
    """The interval at the study's end holds what is true."""


def judgeable(estimand: Estimand) -> list[str]:
    """Names of the generators of which the estimand has a value."""
    return [name for name in GENERATORS if _effect(name, estimand) is not None]


def score_about(name: str, estimand: Estimand, studies: int) -> AboutShares:
    """Shares of a judgeable generator's studies; the same every time."""
    arms, effect = _drawn(name, studies), _effect(name, estimand)
    assert effect is not None
    numbers = np.exp(np.stack([arms[0], arms[1] - effect], axis=1))
    generator = GENERATORS[name]
    usual = SequentialDesign(margin=MARGIN, estimand=estimand, independent=generator.independent)
    design = usual.up_to(BLOCKS)
    rounding = _rounding(numbers[0]) if generator.step else NO_ROUNDING
    codes, holds = np.full(studies, Claim.NONE, dtype=np.int8), np.zeros(studies, dtype=np.bool_)
    for look_at, edge in zip(design.looks, design.edges(1), strict=True):
        going = np.flatnonzero(codes == Claim.NONE)
        of_going = PairedArms(numbers[going], numbers[going])
        until = blocks_until(of_going, look_at, rounding, independent=design.independent, estimand=estimand)
        interval = until.interval(edge)
        if length := generator.boot_length:
            named = (tuple(f"{label}{block // length}" for block in range(look_at)) for label in "AB")
            ratios = np.log(of_going.low[:, 1, :look_at] / of_going.low[:, 0, :look_at])
            low, high = BootClusters(ratios, *named).wider(interval.low, interval.high, look_at, edge)
            interval = Intervals(interval.mean, low, high)
        codes[going] = claims(interval, MARGIN)
        holds[going] = (interval.low <= 0) & (interval.high >= 0)
    false = np.isin(codes, (Claim.ABOVE, Claim.BELOW))
    return AboutShares(studies, float(false.mean()), float(holds.mean()))


def _drawn(name: str, studies: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(int.from_bytes(name.encode()) % 2**32 + 2)
    baseline, treatment = GENERATORS[name].draw(rng, studies, BLOCKS)
    return np.minimum(baseline, _LARGEST), np.minimum(treatment, _LARGEST)


@cache
def _effect(name: str, estimand: Estimand) -> float | None:
    generator = GENERATORS[name]
    if generator.family == "failures":
        return None
    if generator.alike:
        return 0.0
    if estimand is Estimand.TOTAL:
        total = effects(name).total
        return total if math.isfinite(total) else None
    arms = generator.draw(np.random.default_rng(48), _STUDIES, _BLOCKS)
    below, above = (float(np.quantile(arm, QUANTILE)) for arm in arms)
    return above - below


def _rounding(numbers: Array) -> Rounding:
    values = {label: tuple(np.round(arm, 9).tolist()) for label, arm in zip("AB", numbers, strict=True)}
    return BlockedMetric("suite", SECONDS, "A", values).rounding("A", "B")
