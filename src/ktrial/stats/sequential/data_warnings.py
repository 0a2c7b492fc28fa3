"""What is odd about a study's numbers. Everything is told, nothing is removed or corrected.

Each check warns at a level of 1 %, so that ten of them on good data warn about once in ten studies.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ktrial.model.comparison import FEWEST_BLOCKS, Comparison, Estimand, Verdict
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.stats.resolution import resolution
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign
from ktrial.stats.sequential.estimands import unseen_share
from ktrial.stats.sequential.familywise import Finding
from ktrial.stats.sequential.repeated_intervals import (
    centred_ranks,
    correlation_over,
    inflation,
    lag_one,
    likeness,
    presumed_correlation,
    typical,
)
from ktrial.stats.verdict_rules import Claim

Array = NDArray[np.float64]
LEVEL = 0.01
FEWEST_VALUES = 8
"""Below so many values per treatment nothing is said about their distribution."""
_DRAWS = 2000
_HELD = 0.6
"""Up to this correlation of neighbouring blocks the level was found to hold."""
_OF_SEVERAL = 0.02
"""The normal level at which blocks are like several before them: some 3 % of studies, as few blocks are not
quite normal. Shared among treatments."""
_FEWEST_ALIKE = 2
_MET = 0.1
"""The share of trials with a spike that so many blocks should have met that a verdict is from."""
_MOST_PLACES = 3
_ALIKE = 1e-12
"""Two ratios that are one but for the last digits of their logarithms."""


def checks(measured: BlockedMetric, *, independent: bool = False) -> tuple[DataWarning, ...]:
    """Failed trials, drift, autocorrelation, two modes, unequal variances, coarse values, far blocks, and
    ratios without any spread.

    `independent`: the interval is not widened for what neighbouring blocks have in common.
    """
    logs = _logs(measured)
    warnings: list[DataWarning | None] = [failed_trials(measured)]
    if logs:
        warnings += [drift(measured, logs), unequal_variances(measured, logs), coarse_values(measured)]
        warnings += [bimodality(measured, logs)]
        warnings += [
            autocorrelation(measured, treatment, independent=independent) for treatment in measured.treatments
        ]
        warnings += [far_blocks(measured, treatment) for treatment in measured.treatments]
    warnings += [no_spread(measured, treatment) for treatment in measured.treatments]
    return tuple(warning for warning in warnings if warning is not None)


def _logs(measured: BlockedMetric) -> dict[str, Array]:
    """Treatment → logarithms of its values; empty where that has no meaning or there are too few."""
    values = {label: np.asarray(row, dtype=np.float64) for label, row in measured.values.items()}
    present = {label: row[np.isfinite(row)] for label, row in values.items()}
    if any(len(row) < FEWEST_VALUES or np.any(row <= 0) for row in present.values()):
        return {}
    return {label: np.log(row) for label, row in values.items()}


def _warn(measured: BlockedMetric, kind: WarningKind, text: str, advice: str) -> DataWarning:
    return DataWarning(kind=kind, text=f"{measured.workload}, {measured.metric.name}: {text}", advice=advice)


def failed_trials(measured: BlockedMetric) -> DataWarning | None:
    """Trials that gave no number. Those that failed count as the worst; of others nothing is known."""
    lost = {label: sum(map(math.isnan, values)) for label, values in measured.values.items()}
    if not any(lost.values()):
        return None
    named = ", ".join(f"{label}: {count} of {measured.blocks}" for label, count in lost.items() if count)
    return _warn(
        measured,
        WarningKind.FAILED_TRIALS,
        f"trials gave no number ({named}); one that failed counts as the worst",
        "a treatment that fails more often is worse in a way that no ratio shows: look at those trials",
    )


def drift(measured: BlockedMetric, logs: dict[str, Array]) -> DataWarning | None:
    """Residuals (from the treatment's mean) against run order: Spearman's rank correlation."""
    if not measured.orders:
        return None
    order = np.concatenate([np.asarray(measured.orders[label], dtype=np.float64) for label in logs])
    residual = np.concatenate([log - np.nanmean(log) for log in logs.values()])
    present = np.isfinite(residual)
    # Here: to load scipy.stats takes as long as to start all the rest of ktrial.
    from scipy import stats

    correlation = stats.spearmanr(order[present], residual[present])
    if not correlation.pvalue < LEVEL:
        return None
    slope = median_slope(order[present], residual[present])
    change = math.expm1(slope * (order[present].max() - order[present].min()))
    return _warn(
        measured,
        WarningKind.DRIFT,
        f"the machine drifted by about {change * 100:+.2g} % from the first trial to the last",
        "blocks divide it out of the verdicts; the values of single treatments hold for this study only",
    )


def autocorrelation(
    measured: BlockedMetric, treatment: str, *, independent: bool = False
) -> DataWarning | None:
    """Neighbouring blocks' log ratios, with what is made of it."""
    differences = measured.log_ratios(treatment)
    if len(differences) < FEWEST_VALUES:
        return None
    r, p = lag_one(differences)
    if p >= LEVEL:
        return _staying(measured, treatment, differences)
    if r < 0 or independent:
        effect = f"the interval is too {'wide' if r < 0 else 'narrow'}"
    else:
        blocks = np.asarray(float(len(differences)))
        presumed = presumed_correlation(np.asarray(r), blocks)
        held = "" if presumed < _HELD else f"; beyond a correlation of {_HELD:g} that may not be enough"
        wider = float(inflation(presumed, blocks))
        effect = f"the standard error is taken {wider:.1f} times as large for it{held}"
    return _warn(
        measured,
        WarningKind.AUTOCORRELATION,
        f"{treatment}: neighbouring {measured.rows} are alike (correlation {r:+.2f}): {effect}",
        "make the trials independent: a boot each, a longer pause between them, or larger blocks",
    )


def _staying(measured: BlockedMetric, treatment: str, differences: Array) -> DataWarning | None:
    """Log ratios that are like those of the few blocks before: what all arms share divides out of them."""
    ranks = centred_ranks(differences)
    level = _OF_SEVERAL / len(measured.treatments)
    if float(likeness(ranks)) <= -NormalDist().inv_cdf(level):
        return None
    over = ", ".join(f"{float(correlation_over(ranks, lag)):+.2f}" for lag in (1, 2, 3))
    return _warn(
        measured,
        WarningKind.AUTOCORRELATION,
        f"{treatment}: {measured.rows} are like those before them (correlation {over} over one, two and "
        f"three {measured.rows}): a verdict may be about the levels that the arms stayed at",
        "make the trials independent: a boot each, a longer pause between them, or larger blocks",
    )


def far_blocks(measured: BlockedMetric, treatment: str) -> DataWarning | None:
    """Log ratios that lie further from their median, in median absolute deviations, than normal ones do."""
    differences = measured.log_ratios(treatment)
    if len(differences) < FEWEST_VALUES:
        return None
    apart = np.abs(differences - np.median(differences))
    limit = _far_limit(len(differences)) * float(np.median(apart))
    far = np.flatnonzero(apart > limit)
    if not limit > 0 or not len(far):
        return None
    furthest = math.expm1(float(differences[far[apart[far].argmax()]]))
    middle, mean = float(typical(differences)[0]), float(differences.mean())
    return _warn(
        measured,
        WarningKind.FAR_BLOCKS,
        f"{treatment}: {len(far)} of {len(differences)} {measured.rows} lie far off "
        f"(up to {furthest * 100:+.2g} %): the mean ratio is {math.exp(mean):.4f}, "
        f"that of the typical {measured.rows.removesuffix('s')} {math.exp(middle):.4f}",
        "a verdict is about the typical block; what those trials met is worth a look of its own",
    )


@lru_cache(maxsize=256)
def _far_limit(count: int) -> float:
    """What the furthest of so many normal values exceeds with a probability of LEVEL; by simulation."""
    normal = np.random.default_rng(20260202 + count).standard_normal((_DRAWS, count))
    apart = np.abs(normal - np.median(normal, axis=1, keepdims=True))
    return float(np.quantile(apart.max(axis=1) / np.median(apart, axis=1), 1 - LEVEL))


def no_spread(measured: BlockedMetric, treatment: str) -> DataWarning | None:
    """Log ratios that are all alike."""
    below, above = measured.pairs(treatment)
    if len(below) < _FEWEST_ALIKE or np.any(below <= 0) or np.any(above <= 0):
        return None
    if float(np.ptp(np.log(above / below))) > _ALIKE:
        return None
    step = resolution([below, above])
    return _warn(
        measured,
        WarningKind.SPREAD_UNKNOWN,
        f"{treatment}: the ratio is the same in all {len(below)} {measured.rows}: the resolution of the "
        + f"numbers (steps of {step:.3g} {measured.metric.unit}".rstrip()
        + ") hides how much it scatters, and makes the interval",
        "measure for longer, or print more digits",
    )


def bimodality(measured: BlockedMetric, logs: dict[str, Array]) -> DataWarning | None:
    """Two modes: the best split in two, between over within sum of squares (Engelman and Hartigan 1969)."""
    for label, log in logs.items():
        values = np.sort(log[np.isfinite(log)])
        if values[0] == values[-1]:
            continue
        ratio, lower = best_split(values[None, :])
        if ratio[0] > _split_limit(len(values)):
            low, high = np.exp(values[: lower[0]].mean()), np.exp(values[lower[0] :].mean())
            return _warn(
                measured,
                WarningKind.BIMODAL,
                f"{label} has two modes: about {low:.4g} ({lower[0]} of {len(values)} trials) and {high:.4g}",
                "a mean of two modes describes neither; find what switches (memory layout, CPU, cache, THP)",
            )
    return None


def best_split(ordered: Array) -> tuple[Array, NDArray[np.int64]]:
    """Largest between / within sum of squares, and how many values lie below the split; rows are sorted."""
    n = ordered.shape[1]
    count = np.arange(1, n)
    sums = np.cumsum(ordered, axis=1)
    total = sums[:, -1:]
    below = sums[:, :-1]
    between = (below - count * total / n) ** 2 * n / (count * (n - count))
    about_mean = ((ordered - total / n) ** 2).sum(axis=1, keepdims=True)
    # A single value apart is an outlier, not a mode.
    between = np.where((count >= 2) & (count <= n - 2), between, 0.0)
    at = between.argmax(axis=1)
    best = np.take_along_axis(between, at[:, None], axis=1)
    return (best / np.maximum(about_mean - best, 1e-300))[:, 0], at + 1


@lru_cache(maxsize=256)
def _split_limit(count: int) -> float:
    """What normal values exceed with a probability of LEVEL; by simulation, the same every time."""
    rng = np.random.default_rng(20260101 + count)
    normal = np.sort(rng.standard_normal((_DRAWS, count)), axis=1)
    return float(np.quantile(best_split(normal)[0], 1 - LEVEL))


def unequal_variances(measured: BlockedMetric, logs: dict[str, Array]) -> DataWarning | None:
    """Brown and Forsythe's test (JASA 69, 1974): Levene's, about medians."""
    arms = [log[np.isfinite(log)] for log in logs.values()]
    from scipy import stats

    if all(np.ptp(arm) == 0 for arm in arms) or not stats.levene(*arms, center="median").pvalue < LEVEL:
        return None
    spread = ", ".join(
        f"{label} {np.std(arm, ddof=1) * 100:.2g} %" for label, arm in zip(logs, arms, strict=True)
    )
    return _warn(
        measured,
        WarningKind.UNEQUAL_VARIANCES,
        f"the treatments scatter differently ({spread})",
        "the verdicts do not need equal variances; that one treatment is less steady may be a finding itself",
    )


def coarse_values(measured: BlockedMetric) -> DataWarning | None:
    """Half of the values or more repeat: the resolution of a clock, or of a printed number, shows."""
    values = [value for row in measured.values.values() for value in row if not math.isnan(value)]
    distinct = len(set(values))
    if distinct == 1 or 2 * distinct > len(values):
        return None
    return _warn(
        measured,
        WarningKind.COARSE_VALUES,
        f"{len(values)} trials gave only {distinct} distinct values",
        "measure for longer, or print more digits: what the resolution hides widens the interval",
    )


def early_stopping(
    comparisons: Iterable[Comparison], findings: Sequence[Finding], design: SequentialDesign
) -> list[DataWarning]:
    """A difference that was found before the last look: stopping there makes it look larger than it is."""
    early = [
        f"{comparison.workload}, {comparison.metric}, {comparison.treatment} ({finding.decided_at} blocks)"
        for comparison, finding in zip(comparisons, findings, strict=False)
        if finding.claim in (Claim.ABOVE, Claim.BELOW)
        and finding.decided_at is not None
        and (design.last is None or finding.decided_at < design.last)
    ]
    if not early:
        return []
    text = f"the study stopped as soon as a difference was certain: {'; '.join(early)}"
    advice = (
        "that makes the difference look larger than it is; for its size, run fresh blocks of a fixed number: "
        f"ktrial run STUDY --confirm {_blocks_to_confirm(design)}"
    )
    return [DataWarning(kind=WarningKind.EARLY_STOPPING, text=text, advice=advice)]


def _blocks_to_confirm(design: SequentialDesign) -> int:
    return max(FEWEST_BLOCKS[Estimand.TOTAL], FEWEST_BLOCKS.get(design.estimand, 0))


def rare_trials_unseen(comparisons: Iterable[Comparison], design: SequentialDesign) -> list[DataWarning]:
    """Verdicts on typical trials from so few blocks that one trial in ten may be slow, and none was met."""
    enough = next(blocks for blocks in count(1) if unseen_share(blocks) <= _MET)
    few = [
        comparison
        for comparison in comparisons
        if comparison.unseen is not None and comparison.blocks < enough and not comparison.tails_disagree
    ]
    if not few or design.estimand is not Estimand.TYPICAL:
        return []
    widest = max(few, key=lambda comparison: comparison.unseen or 0.0)
    places = [f"{item.workload}, {item.metric}, {item.treatment}" for item in few[:_MOST_PLACES]]
    places += [f"and {len(few) - _MOST_PLACES} more"] if len(few) > _MOST_PLACES else []
    text = f"{widest.bound}; whether all trials together say the same was not tested: {'; '.join(places)}"
    advice = (
        f"{enough} blocks meet a spike that hits {_MET * 100:.0f} % of trials 95 times of 100: "
        f"ktrial run STUDY --confirm {_blocks_to_confirm(design)}"
    )
    return [DataWarning(kind=WarningKind.RARE_TRIALS_UNSEEN, text=text, advice=advice)]


def tails_disagree(comparisons: Iterable[Comparison], design: SequentialDesign) -> list[DataWarning]:
    """Verdicts on typical trials beside which all trials together say something else."""
    places = [
        f"{comparison.workload}, {comparison.metric}, {comparison.treatment}"
        for comparison in comparisons
        if comparison.tails_disagree
    ]
    if not places or design.estimand is not Estimand.TYPICAL:
        return []
    text = f"typical trials and all together say different things: {'; '.join(places)}"
    advice = 'for a verdict on all together: estimand = "total" in [timed], in 60 blocks or more'
    return [DataWarning(kind=WarningKind.TAILS_DISAGREE, text=text, advice=advice)]


# The slope of a line through noise: Theil and Sen's, the median of the slopes between every two points.
#
# (Sen, JASA 63, 1968.) Of n points there are n(n - 1)/2 slopes: of a study with a thousand treatments 10^8,
# more than fit into memory. With r(s) = y - s·x, the slope between two points lies below s exactly where r
# has them in the other order, so that counting the pairs in the wrong order (Kendall's tau: n log n) tells
# how many slopes lie below s (Cole, Salowe, Steiger and Szemerédi, SIAM J. Comput. 18(4), 1989), and
# bisection finds the one in the middle.

_FEW = 2000
"""Points of which all slopes are made at once."""


def median_slope(x: Array, y: Array) -> float:
    """The median of the slopes between every two points. No two have the same x.

    Raises ValueError where there is one point.
    """
    if len(x) < 2:
        raise ValueError("a slope needs two points")
    order = np.argsort(x)
    x, y = x[order], y[order]
    if len(x) <= _FEW:
        first, second = np.triu_indices(len(x), 1)
        return float(np.median((y[second] - y[first]) / (x[second] - x[first])))
    pairs = len(x) * (len(x) - 1) // 2
    middle = {(pairs - 1) // 2, pairs // 2}
    return sum(_slope_of_rank(x, y, rank) for rank in middle) / len(middle)


def _slope_of_rank(x: Array, y: Array, rank: int) -> float:
    """The slope that so many others lie below."""
    most = float(np.ptp(y) / np.diff(x).min()) * (1 + 1e-9) + 1e-300
    # Coarse values have many slopes of 0: they are counted first, as bisection finds 0 last of all numbers.
    falling, level = _falling_pairs(x, y)
    if falling <= rank < falling + level:
        return 0.0
    low, high = (-most, 0.0) if rank < falling else (0.0, most)
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _falling_pairs(x, y - middle * x)[0] <= rank else (low, middle)
    return high


def _falling_pairs(x: Array, y: Array) -> tuple[int, int]:
    """How many pairs have the larger y at the smaller x, and how many have equal ones."""
    from scipy import stats

    pairs = len(x) * (len(x) - 1) // 2
    level = sum(count * (count - 1) // 2 for count in np.unique_counts(y).counts.tolist())
    if level == pairs:
        return 0, level
    tau = float(stats.kendalltau(x, y, method="asymptotic").statistic)
    return round((pairs - level - tau * math.sqrt(pairs) * math.sqrt(pairs - level)) / 2), level


# Tests that ask nothing of the distribution: permutation within blocks, for a fixed number of blocks.
#
# `max_t_permutation` adjusts for several treatments; `doubts` are verdicts that permutation does not bear
# out.


def permutation_p(measured: BlockedMetric, *, draws: int = 9999, seed: int = 1) -> dict[str, float]:
    """Treatment → its p value among all treatments of this metric, by permutation within blocks.

    Only blocks in which every trial gave a value count. It knows nothing of earlier looks. Raises ValueError
    where values are not above zero.
    """
    labels = (measured.baseline, *measured.treatments)
    values = np.array([measured.values[label] for label in labels], dtype=np.float64).T
    complete = values[np.isfinite(values).all(axis=1)]
    if np.any(complete <= 0):
        raise ValueError("a ratio needs values above zero")
    adjusted = max_t_permutation(np.log(complete), draws, seed)
    return dict(zip(measured.treatments, map(float, adjusted), strict=True))


def doubts(
    comparisons: Sequence[Comparison], measured: Sequence[BlockedMetric], alpha: float
) -> list[DataWarning]:
    """Differences that the t test finds, and permutation within blocks does not."""
    by_metric = {(blocked.workload, blocked.metric.name): blocked for blocked in reversed(measured)}
    p_values: dict[tuple[str, str], dict[str, float]] = {}
    doubtful = []
    for comparison in comparisons:
        if comparison.verdict in (Verdict.BETTER, Verdict.WORSE):
            place = (comparison.workload, comparison.metric)
            if place not in p_values:
                p_values[place] = permutation_p(_with_ratios(by_metric[place]))
            p = p_values[place][comparison.treatment]
            if p > alpha:
                doubtful.append(_doubt(comparison, p, by_metric[place].blocks))
    return doubtful


def _doubt(comparison: Comparison, p: float, blocks: int) -> DataWarning:
    return DataWarning(
        kind=WarningKind.PERMUTATION_DISAGREES,
        text=f"{comparison.workload}, {comparison.metric}, {comparison.treatment}: the t test finds a "
        f"difference, permutation within {blocks} blocks does not (p {p:.2g})",
        advice="the verdict leans on the normal distribution: run more blocks (p < 0.05 takes six at least)",
    )


def _with_ratios(measured: BlockedMetric) -> BlockedMetric:
    """Without the treatments that have values that are not above zero."""
    values = measured.values.items()
    positive = {label: row for label, row in values if not any(value <= 0 for value in row)}
    return replace(measured, values=positive)


def max_t_permutation(logs: ArrayLike, draws: int = 9999, seed: int = 1) -> Array:
    """Adjusted p values of several treatments against one baseline, by permutation within blocks.

    `logs` has the shape (blocks, 1 + treatments), the baseline first. Within a block every order of the
    treatments was equally likely, so under 'no treatment does anything' every permutation of its values is
    too; the largest |t| of all comparisons is the statistic (Westfall and Young, Resampling-Based Multiple
    Testing, 1993, algorithm 2.5, single step), and the observed order counts as one of the draws (Phipson and
    Smyth, 2010). For a number of blocks fixed beforehand: it knows nothing of earlier looks.
    """
    table = np.asarray(logs, dtype=np.float64)
    observed = _absolute_t(table[None])[0]
    rng = np.random.default_rng(seed)
    reached = np.zeros(len(observed))
    for size in _batches(draws, table.size):
        largest = _absolute_t(rng.permuted(np.broadcast_to(table, (size, *table.shape)), axis=2)).max(axis=1)
        # A hair's breadth: the same values in another order may sum to a last digit less.
        reached += (largest[:, None] >= observed * (1 - 1e-12)).sum(axis=0)
    return np.asarray((1 + reached) / (1 + draws))


def _batches(draws: int, size: int) -> list[int]:
    size_of_batch = max(1, min(draws, 2_000_000 // size))
    return [size_of_batch] * (draws // size_of_batch) + [draws % size_of_batch] * bool(draws % size_of_batch)


def _absolute_t(tables: Array) -> Array:
    """|t| of each treatment's mean difference to the baseline; shape (draws, treatments)."""
    differences = tables[:, :, 1:] - tables[:, :, :1]
    mean = differences.mean(axis=1)
    error = differences.std(axis=1, ddof=1) / np.sqrt(tables.shape[1])
    absolute = np.full_like(mean, np.inf)
    np.divide(np.abs(mean), error, out=absolute, where=error > 0)
    return np.where((error == 0) & (mean == 0), 0.0, absolute)
