"""How verdicts fare on a generator's numbers: ktrial's, and those of four other rules on the same ones.

Asked of each study: whether a difference is claimed where the typical block has none; whether arms are called
equivalent that differ by the margin; whether the interval at the study's end holds what is true; whether a
treatment that takes 2 % longer is found. The others get as many runs as ktrial took on average.

- Welch's t on logarithms; Mann and Whitney's test with the normal approximation, as benchstat has it from so
  many runs on; criterion's rule: Welch's t of the runs against those of two samples that are drawn from all
  of them; each at 5 %, one look, no pairs, failed trials dropped.
- The sequential t: a mixture SPRT after every block (`critical_t`), of paired log ratios.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from tests.support.adversarial_noise import GENERATORS, effects

from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Direction, Metric
from ktrial.stats.resolution import NO_ROUNDING, Rounding
from ktrial.stats.sequential.boots import BootClusters
from ktrial.stats.sequential.boundaries import FEWEST_BLOCKS, critical_t
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign
from ktrial.stats.sequential.interim_analysis import look
from ktrial.stats.sequential.repeated_intervals import Intervals, blocks_until, claims
from ktrial.stats.verdict_rules import Claim

Array = NDArray[np.float64]
BLOCKS = 60
MARGIN = 0.01
LARGER = math.log(1.02)
"""The effect that power is asked for."""
MOST_FALSE = 0.055
LEAST_COVERAGE = 0.94
LEAST_WARNED = 0.9
_WARNED_OF = 400
"""Studies of a generator that are looked through for warnings."""
_OF_FEW_BLOCKS = (WarningKind.EARLY_STOPPING, WarningKind.RARE_TRIALS_UNSEEN)
"""Warnings that say nothing odd of the numbers, but that there are few of them."""
_LEVEL = 0.05
_RESAMPLES = 200
_RESAMPLED_STUDIES = 500
_AT_ONCE = 400
"""Studies that are judged at a time: so that their averages fit into a cache."""
DESIGN = SequentialDesign(margin=MARGIN)
SECONDS = Metric(name="time", unit="s", direction=Direction.LOWER)


@dataclass(frozen=True)
class Shares:
    """Of so many studies of one generator."""

    studies: int
    false: float
    """A difference is claimed where the typical block has none."""
    equivalent: float
    """Equivalent, where the typical block differs by the margin."""
    covered: float
    """The interval at the end holds the true effect."""
    found: float
    """A treatment that takes 2 % longer is called worse."""
    blocks: float
    """On average, where there is no effect."""
    blocks_to_find: float
    """On average, where there is one of 2 %."""
    others: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Rule → false differences, and how often 2 % are found, at as many blocks."""
    warned: float = 0.0
    """Studies that told what is odd about their numbers; of generators that are beyond a limit."""

    def error(self, share: float) -> float:
        """The standard error of a share; one of none is told as that of half a study."""
        share = min(max(share, 0.5 / self.studies), 1 - 0.5 / self.studies)
        return math.sqrt(share * (1 - share) / self.studies)

    def beyond(self, slack: float = 0.0) -> tuple[str, ...]:
        """Which limits do not hold, by more than so many standard errors of a share at the limit."""
        false, covered = (
            slack * math.sqrt(limit * (1 - limit) / self.studies) for limit in (MOST_FALSE, LEAST_COVERAGE)
        )
        broken = {
            "false differences": self.false > MOST_FALSE + false,
            "false equivalence": self.equivalent > MOST_FALSE + false,
            "coverage": self.covered < LEAST_COVERAGE - covered,
        }
        return tuple(limit for limit, is_broken in broken.items() if is_broken)


def score(name: str, studies: int, *, design: SequentialDesign = DESIGN, others: bool = False) -> Shares:
    """Shares of a generator's studies; the same every time."""
    generator, effect = GENERATORS[name], effects(name).typical
    design = SequentialDesign(
        margin=design.margin, alpha=design.alpha, looks=design.looks, independent=generator.independent
    )
    seed = int.from_bytes(name.encode()) % 2**32
    baseline, treatment = generator.draw(np.random.default_rng(seed), studies, BLOCKS)
    treatment = treatment - effect
    rounding = _rounding(baseline, treatment, generator.step)
    ratios = _ratios(baseline, treatment)
    same, at_margin, larger = (
        _judged(ratios + moved, design, rounding, moved, generator.boot_length)
        for moved in (0.0, math.log1p(MARGIN), LARGER)
    )
    beside: dict[str, tuple[float, float]] = {}
    if others:
        runs = [max(FEWEST_BLOCKS, round(float(judged.blocks.mean()))) for judged in (same, larger)]
        beside = {
            rule: (
                float((verdicts(baseline[:, : runs[0]], treatment[:, : runs[0]]) != 0).mean()),
                float((verdicts(baseline[:, : runs[1]], treatment[:, : runs[1]] + LARGER) > 0).mean()),
            )
            for rule, verdicts in OTHERS.items()
        }
        beside["sequential t"] = (
            float((sequential_t(ratios) != 0).mean()),
            float((sequential_t(ratios + LARGER) > 0).mean()),
        )
    shares = Shares(
        studies=studies,
        false=float(np.isin(same.claims, (Claim.ABOVE, Claim.BELOW)).mean()),
        equivalent=float((at_margin.claims == Claim.EQUIVALENT).mean()),
        covered=float(same.holds.mean()),
        found=float((larger.claims == Claim.ABOVE).mean()),
        blocks=float(same.blocks.mean()),
        blocks_to_find=float(larger.blocks.mean()),
        others=beside,
    )
    if not shares.beyond():
        return shares
    return Shares(**{**vars(shares), "warned": _warned(baseline, treatment, same.blocks, design)})


@dataclass(frozen=True)
class _Judged:
    """Each study's end."""

    claims: NDArray[np.int8]
    blocks: NDArray[np.int64]
    holds: NDArray[np.bool_]


def _judged(
    ratios: Array, design: SequentialDesign, rounding: Rounding, truth: float, boot_length: int = 0
) -> _Judged:
    """As a study of one comparison goes: it ends with its first claim, or at the last look."""
    looked = design.looked_at(BLOCKS)
    edges = design.edges(1, looked)
    codes = np.full(len(ratios), Claim.NONE, dtype=np.int8)
    taken = np.full(len(ratios), looked[-1])
    holds = np.zeros(len(ratios), dtype=np.bool_)
    for look_at, edge in zip(looked, edges, strict=True):
        going = np.flatnonzero(codes == Claim.NONE)
        for some in np.array_split(going, max(1, len(going) // _AT_ONCE)):
            until = blocks_until(ratios[some], look_at, rounding, independent=design.independent)
            interval = until.interval(edge)
            if boot_length:
                boots = BootClusters(ratios[some], *_own_boots(boot_length))
                low, high = boots.wider(interval.low, interval.high, look_at, edge)
                interval = Intervals(interval.mean, low, high)
            codes[some] = claims(interval, design.margin)
            holds[some] = (interval.low <= truth) & (truth <= interval.high)
        taken[going[codes[going] != Claim.NONE]] = look_at
    return _Judged(codes, taken, holds)


def _own_boots(length: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the baseline's boots and of the treatment's, one a block."""
    return tuple(f"A{block // length}" for block in range(BLOCKS)), tuple(
        f"B{block // length}" for block in range(BLOCKS)
    )


def _ratios(baseline: Array, treatment: Array) -> Array:
    """Failed trials are the worst there is; where both failed there is no difference."""
    with np.errstate(invalid="ignore"):
        ratios = treatment - baseline
    return np.where(np.isnan(ratios), 0.0, ratios)


def _rounding(baseline: Array, treatment: Array, step: float) -> Rounding:
    """Of the first study, whose numbers have the same steps as those of all."""
    if not step:
        return NO_ROUNDING
    # What a study of equal arms hides; with an effect the treatment's steps are as much wider.
    return _metric(baseline[0], treatment[0]).rounding("A", "B")


def _metric(baseline: Array, treatment: Array) -> BlockedMetric:
    failed = {"A": tuple(np.isinf(baseline).tolist()), "B": tuple(np.isinf(treatment).tolist())}
    values = {
        label: tuple(np.where(np.isinf(arm), np.nan, np.round(np.exp(arm), 9)).tolist())
        for label, arm in (("A", baseline), ("B", treatment))
    }
    return BlockedMetric("suite", SECONDS, "A", values, failed=failed)


def _warned(baseline: Array, treatment: Array, blocks: NDArray[np.int64], design: SequentialDesign) -> float:
    """The share of studies that tell something about their numbers, at their end."""
    ends = list(zip(baseline, treatment, blocks.tolist(), strict=True))[:_WARNED_OF]
    told = [
        any(
            warning.kind not in _OF_FEW_BLOCKS
            for warning in look([_metric(below[:end], above[:end])], design, final=True).warnings
        )
        for below, above, end in ends
    ]
    return sum(told) / len(told)


# Other rules. Each, of two arms of shape (studies, runs): +1 where the treatment is slower, -1 faster, or 0.


def welch(baseline: Array, treatment: Array) -> Array:
    """Welch's t test at 5 %; values that are infinite are left out."""
    statistic, freedom = _welch_t(baseline, treatment)
    return np.where(np.abs(statistic) > stats.t.isf(_LEVEL / 2, freedom), np.sign(statistic), 0.0)


def _welch_t(baseline: Array, treatment: Array) -> tuple[Array, Array]:
    means, parts, degrees = [], [], []
    for arm in (baseline, treatment):
        present = np.where(np.isinf(arm), np.nan, arm)
        count = np.maximum(np.isfinite(present).sum(axis=-1), 2)
        means.append(np.nan_to_num(np.nanmean(present, axis=-1)))
        parts.append(np.maximum(np.nan_to_num(np.nanvar(present, axis=-1)) / (count - 1), 1e-300))
        degrees.append(count - 1)
    total = parts[0] + parts[1]
    freedom = total**2 / (parts[0] ** 2 / degrees[0] + parts[1] ** 2 / degrees[1])
    return (means[1] - means[0]) / np.sqrt(total), freedom


def mann_whitney(baseline: Array, treatment: Array) -> Array:
    """Mann and Whitney's U at 5 %, normal approximation with ties and continuity."""
    both = np.concatenate([baseline, treatment], axis=1)
    kept = np.isfinite(both)
    ranks = stats.rankdata(both, axis=1)
    first, second = kept[:, : baseline.shape[1]].sum(axis=1), kept[:, baseline.shape[1] :].sum(axis=1)
    total = first + second
    of_second = np.where(kept, ranks, 0.0)[:, baseline.shape[1] :].sum(axis=1)
    above = of_second - second * (second + 1) / 2 - first * second / 2
    spread = np.where(kept, (ranks - (total[:, None] + 1) / 2) ** 2, 0.0).sum(axis=1)
    error = np.sqrt(np.maximum(first * second * spread / np.maximum(total * (total - 1), 1), 1e-300))
    return np.where(
        np.maximum(np.abs(above) - 0.5, 0.0) / error > stats.norm.isf(_LEVEL / 2), np.sign(above), 0
    )


def criterion(baseline: Array, treatment: Array) -> Array:
    """Two samples are drawn from all runs, again and again: how often is |t| as large as that of the arms?

    Of 500 studies at most.
    """
    rng = np.random.default_rng(3)
    signs = []
    for below, above in zip(baseline[:_RESAMPLED_STUDIES], treatment[:_RESAMPLED_STUDIES], strict=True):
        below, above = below[np.isfinite(below)], above[np.isfinite(above)]
        observed = float(_welch_t(below, above)[0])
        drawn = rng.choice(np.concatenate([below, above]), size=(_RESAMPLES, len(below) + len(above)))
        resampled, _ = _welch_t(drawn[:, : len(below)], drawn[:, len(below) :])
        signs.append(np.sign(observed) * ((np.abs(resampled) >= abs(observed)).mean() < _LEVEL))
    return np.asarray(signs)


OTHERS = {"Welch": welch, "Mann–Whitney": mann_whitney, "criterion": criterion}


def sequential_t(ratios: Array) -> Array:
    """Mixture SPRT of the mean log ratio after every block; failed blocks count as 0."""
    ratios = np.where(np.isinf(ratios), 0.0, ratios)
    count = np.arange(1, ratios.shape[1] + 1)
    mean = np.cumsum(ratios, axis=1) / count
    about = np.maximum(np.cumsum(ratios**2, axis=1) - count * mean**2, 1e-300)
    t = mean * np.sqrt(count * np.maximum(count - 1, 1) / about)
    edges = np.array([critical_t(int(n)) if n >= FEWEST_BLOCKS else math.inf for n in count])
    beyond = np.abs(t) > edges
    first = beyond.argmax(axis=1)
    rows = np.arange(len(t))
    return np.where(beyond[rows, first], np.sign(t[rows, first]), 0.0)


ASKED_FOR_POWER = (
    "scipy: norm",
    "modes: two modes",
    "scipy: cauchy",
    "scipy: lognorm",
    "scipy: pareto",
    "skew: 1 + 5 % lognorm",
    "skew: 1 + 5 % lomax",
)
"""For which power is compared with fixed numbers of runs, half of ktrial's most."""


def power_beside(name: str, studies: int) -> tuple[float, dict[str, float]]:
    """How often 2 % are found within 60 blocks, and by the others with 30 runs of each arm."""
    generator, effect = GENERATORS[name], effects(name).typical
    seed = int.from_bytes(name.encode()) % 2**32 + 1
    baseline, treatment = generator.draw(np.random.default_rng(seed), studies, BLOCKS)
    treatment = treatment - effect + LARGER
    is_found = _judged(_ratios(baseline, treatment), DESIGN, NO_ROUNDING, LARGER).claims == Claim.ABOVE
    half = BLOCKS // 2
    beside = {
        rule: float((verdicts(baseline[:, :half], treatment[:, :half]) > 0).mean())
        for rule, verdicts in OTHERS.items()
    }
    return float(is_found.mean()), beside


def worst(scores: Mapping[str, Shares]) -> Sequence[str]:
    """Names of the generators, those with the largest share of false differences first."""
    return sorted(scores, key=lambda name: -scores[name].false)
