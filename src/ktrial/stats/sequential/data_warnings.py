"""What is odd about a study's numbers. Everything is told, nothing is removed or corrected.

Each check warns at a level of 1 %, so that ten of them on good data warn about once in ten studies.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ktrial.model.comparison import Comparison
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.stats.resolution import resolution
from ktrial.stats.sequential.block_correlation import inflation, lag_one, presumed_correlation
from ktrial.stats.sequential.design import SequentialDesign
from ktrial.stats.sequential.familywise import Finding
from ktrial.stats.sequential.metric_blocks import BlockedMetric
from ktrial.stats.theil_sen import median_slope
from ktrial.stats.typical_location import typical
from ktrial.stats.verdict_rules import Claim

Array = NDArray[np.float64]

LEVEL = 0.01
FEWEST_VALUES = 8
"""Below so many values per treatment nothing is said about their distribution."""
_DRAWS = 2000
_HELD = 0.6
"""Up to this correlation of neighbouring blocks the level was found to hold."""
_FEWEST_ALIKE = 2
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
    return tuple(each for each in warnings if each is not None)


def _logs(measured: BlockedMetric) -> dict[str, Array]:
    """Treatment → logarithms of its values; empty where that has no meaning or there are too few."""
    values = {label: np.asarray(each, dtype=np.float64) for label, each in measured.values.items()}
    present = {label: each[np.isfinite(each)] for label, each in values.items()}
    if any(len(each) < FEWEST_VALUES or np.any(each <= 0) for each in present.values()):
        return {}
    return {label: np.log(each) for label, each in values.items()}


def _warn(measured: BlockedMetric, kind: WarningKind, text: str, advice: str) -> DataWarning:
    return DataWarning(kind=kind, text=f"{measured.workload}, {measured.metric.name}: {text}", advice=advice)


def failed_trials(measured: BlockedMetric) -> DataWarning | None:
    """Trials that gave no number. Their blocks are left out of the comparisons that they belong to."""
    lost = {label: sum(map(math.isnan, values)) for label, values in measured.values.items()}
    if not any(lost.values()):
        return None
    named = ", ".join(f"{label}: {count} of {measured.blocks}" for label, count in lost.items() if count)
    return _warn(
        measured,
        WarningKind.FAILED_TRIALS,
        f"trials gave no number ({named}); their blocks are not compared",
        "a treatment that fails more often is worse in a way that no ratio shows: look at those trials",
    )


def drift(measured: BlockedMetric, logs: dict[str, Array]) -> DataWarning | None:
    """Residuals (from the treatment's mean) against run order: Spearman's rank correlation."""
    if not measured.orders:
        return None
    order = np.concatenate([np.asarray(measured.orders[label], dtype=np.float64) for label in logs])
    residual = np.concatenate([each - np.nanmean(each) for each in logs.values()])
    there = np.isfinite(residual)
    # Here: to load scipy.stats takes as long as to start all the rest of ktrial.
    from scipy import stats

    correlation = stats.spearmanr(order[there], residual[there])
    if not correlation.pvalue < LEVEL:
        return None
    slope = median_slope(order[there], residual[there])
    whole = math.expm1(slope * (order[there].max() - order[there].min()))
    return _warn(
        measured,
        WarningKind.DRIFT,
        f"the machine drifted by about {whole * 100:+.2g} % from the first trial to the last",
        "blocks divide it out of the verdicts; the values of single treatments hold for this study only",
    )


def autocorrelation(
    measured: BlockedMetric, treatment: str, *, independent: bool = False
) -> DataWarning | None:
    """Neighbouring blocks' log ratios, with what is made of it."""
    differences = measured.log_ratios(treatment)
    if len(differences) < FEWEST_VALUES:
        return None
    n = len(differences)
    r, p = lag_one(differences)
    if p >= LEVEL:
        return None
    return _warn(
        measured,
        WarningKind.AUTOCORRELATION,
        f"{treatment}: neighbouring {measured.rows} are alike (correlation {r:+.2f}): "
        f"{_made_of_it(r, n, independent)}",
        "make the trials independent: a boot each, a longer pause between them, or larger blocks",
    )


def _made_of_it(r: float, blocks: int, independent: bool) -> str:
    if r < 0 or independent:
        return f"the interval is too {'wide' if r < 0 else 'narrow'}"
    presumed = presumed_correlation(np.asarray(r), np.asarray(float(blocks)))
    wider = float(inflation(presumed, np.asarray(float(blocks))))
    held = "" if presumed < _HELD else f"; beyond a correlation of {_HELD:g} that may not be enough"
    return f"the standard error is taken {wider:.1f} times as large for it{held}"


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
        "a difference is claimed only where both show it; what those trials met is worth a look of its own",
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
    for label, each in logs.items():
        values = np.sort(each[np.isfinite(each)])
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
    whole = ((ordered - total / n) ** 2).sum(axis=1, keepdims=True)
    # A single value apart is an outlier, not a mode.
    between = np.where((count >= 2) & (count <= n - 2), between, 0.0)
    at = between.argmax(axis=1)
    best = np.take_along_axis(between, at[:, None], axis=1)
    return (best / np.maximum(whole - best, 1e-300))[:, 0], at + 1


@lru_cache(maxsize=256)
def _split_limit(count: int) -> float:
    """What normal values exceed with a probability of LEVEL; by simulation, the same every time."""
    rng = np.random.default_rng(20260101 + count)
    normal = np.sort(rng.standard_normal((_DRAWS, count)), axis=1)
    return float(np.quantile(best_split(normal)[0], 1 - LEVEL))


def unequal_variances(measured: BlockedMetric, logs: dict[str, Array]) -> DataWarning | None:
    """Brown and Forsythe's test (JASA 69, 1974): Levene's, about medians."""
    arms = [each[np.isfinite(each)] for each in logs.values()]
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
    values = [value for each in measured.values.values() for value in each if not math.isnan(value)]
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
        f"{one.workload}, {one.metric}, {one.treatment} ({finding.decided_at} blocks)"
        for one, finding in zip(comparisons, findings, strict=False)
        if finding.claim in (Claim.ABOVE, Claim.BELOW)
        and finding.decided_at is not None
        and (design.last is None or finding.decided_at < design.last)
    ]
    if not early:
        return []
    text = f"the study stopped as soon as a difference was certain: {'; '.join(early)}"
    advice = (
        "that makes the difference look larger than it is; for its size, run fresh blocks of a fixed number: "
        "ktrial run STUDY --confirm 20"
    )
    return [DataWarning(kind=WarningKind.EARLY_STOPPING, text=text, advice=advice)]
