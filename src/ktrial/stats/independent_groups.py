"""Independent groups compared: analysis of variance, pairs of means, ratios.

From run counts, means and standard deviations: Fisher's and Welch's one-way analysis of variance, Welch's t
for one pair of means and Games and Howell's procedure among several, and the ratio of two means with its
interval.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ktrial.format.labels import ESTIMANDS
from ktrial.model.comparison import FEWEST_BLOCKS, Estimand
from ktrial.model.imported import Anova, Group, Pair, Rounded, Summary
from ktrial.model.workload import Direction
from ktrial.stats.resolution import FEWEST_ALIKE, Rounding, resolution, rounding
from ktrial.stats.sequential import estimands
from ktrial.stats.sequential.repeated_intervals import typical

_STRAIGHT = 1e-6
"""Below so small a skewness the statistic is the edge, to ten digits."""
ENOUGH_RUNS = 10
"""Of fewer, rare spikes in one group do not make more false differences than there should be."""


# A group's run count, mean and standard deviation, from its runs or from what was printed of them, and the
# intervals of the last two.


@dataclass(frozen=True)
class Moments:
    """Of one group; `runs` and `sd` are None where nothing tells them."""

    label: str
    mean: float
    sd: float | None
    runs: int | None
    recovered: bool = False
    """Whether the run count was computed from SD and standard error."""

    @property
    def testable(self) -> bool:
        """Whether there is a spread, from at least two runs."""
        return self.sd is not None and self.runs is not None and self.runs >= 2

    @property
    def known(self) -> tuple[int, float]:
        """Runs and standard deviation. Raises ValueError where they are not known."""
        if self.sd is None or self.runs is None or self.runs < 2:
            raise ValueError(f"{self.label}: there is no spread")
        return self.runs, self.sd

    @property
    def squared_error(self) -> float:
        """Variance of the mean."""
        runs, sd = self.known
        return sd * sd / runs


def one_way(groups: Sequence[Moments]) -> Anova:
    """Fisher's: equal variances assumed. Raises ValueError: one group, one run, or no spread in any."""
    from scipy import stats

    of_groups = _known(groups)
    total = sum(runs for runs, _, _ in of_groups)
    grand = sum(runs * mean for runs, mean, _ in of_groups) / total
    between = sum(runs * (mean - grand) ** 2 for runs, mean, _ in of_groups)
    within = sum((runs - 1) * sd * sd for runs, _, sd in of_groups)
    if not within:
        raise ValueError("no group has any spread to compare the means with")
    df_between, df_within = len(of_groups) - 1, total - len(of_groups)
    f = (between / df_between) / (within / df_within)
    return Anova(
        f=f,
        between=df_between,
        within=df_within,
        p=float(stats.f.sf(f, df_between, df_within)),
        ss_between=between,
        ss_within=within,
    )


def welch(groups: Sequence[Moments]) -> Anova:
    """Welch's (Biometrika 38, 1951): variances may differ. Raises ValueError as above, or for an SD of 0."""
    from scipy import stats

    of_groups = _known(groups)
    if any(sd == 0 for _, _, sd in of_groups):
        raise ValueError("a group without any spread has no weight in Welch's test")
    k = len(of_groups)
    weighted = [(runs / sd**2, runs, mean) for runs, mean, sd in of_groups]
    total = sum(weight for weight, _, _ in weighted)
    grand = sum(weight * mean for weight, _, mean in weighted) / total
    lack = sum((1 - weight / total) ** 2 / (runs - 1) for weight, runs, _ in weighted)
    numerator = sum(weight * (mean - grand) ** 2 for weight, _, mean in weighted) / (k - 1)
    f = numerator / (1 + 2 * (k - 2) / (k * k - 1) * lack)
    within = (k * k - 1) / (3 * lack)
    return Anova(f=f, between=k - 1, within=within, p=float(stats.f.sf(f, k - 1, within)))


def _known(groups: Sequence[Moments]) -> list[tuple[int, float, float]]:
    if len(groups) < 2:
        raise ValueError("an analysis of variance needs two groups")
    return [(group.known[0], group.mean, group.known[1]) for group in groups]


def welch_df(first: Moments, second: Moments) -> float:
    """Welch and Satterthwaite's degrees of freedom, not rounded. Raises ValueError: no spread at all."""
    squares = first.squared_error, second.squared_error
    if not any(squares):
        raise ValueError(f"{first.label} and {second.label} have no spread at all")
    parts = (
        square * square / (group.known[0] - 1) for square, group in zip(squares, (first, second), strict=True)
    )
    return float(sum(squares) ** 2 / sum(parts))


def games_howell(first: Moments, second: Moments, groups: int, confidence: float = 0.95) -> Pair:
    """`first` - `second` among so many groups (Games and Howell, Journal of Educational Statistics 1, 1976).

    Tukey and Kramer's interval on Welch's degrees of freedom: q / sqrt(2) standard errors. All pairs'
    intervals hold together. Raises ValueError where a group has no spread.
    """
    from scipy import stats

    error = math.sqrt(first.squared_error + second.squared_error)
    df = welch_df(first, second)
    difference = first.mean - second.mean
    t = abs(difference) / error
    if groups == 2:  # the studentized range of two is sqrt(2)·|t|
        half, p = float(stats.t.ppf((1 + confidence) / 2, df)) * error, 2 * stats.t.sf(t, df)
    else:
        half = float(stats.studentized_range.ppf(confidence, groups, df)) / math.sqrt(2) * error
        p = min(1.0, max(0.0, stats.studentized_range.sf(t * math.sqrt(2), groups, df)))
    return Pair(
        group=first.label,
        against=second.label,
        difference=difference,
        standard_error=error,
        df=df,
        low=difference - half,
        high=difference + half,
        p=float(p),
    )


@dataclass(frozen=True)
class Ratio:
    """treatment / baseline."""

    ratio: float
    low: float
    high: float


def ratio(
    baseline: Group,
    treatment: Group,
    confidence: float,
    estimand: Estimand = Estimand.TYPICAL,
    direction: Direction = Direction.LOWER,
) -> Ratio:
    """The ratio and its interval.

    From runs: geometric means, Welch's t on the logarithms, with what the resolution of the numbers hides;
    with ten runs a group or more the interval holds that of the typical runs, too. From summaries: means,
    whose logarithm has a standard deviation of SD / mean (the delta method; Rice, Mathematical Statistics
    and Data Analysis, 4.6), the same to within half of the variation coefficient squared.

    Of all trials together: means, from runs too, with an interval that is longer where runs are skewed (Hall,
    JRSS B 54, 1992), as in blocks. Of the worst tenth (which `direction` tells): quantiles
    between order statistics, from runs only. Raises ValueError where a mean or value is not above zero, where
    nothing tells how much a group scatters, or where there are too few runs.
    """
    if estimand is Estimand.TAIL:
        return _ratio_of_tails(baseline, treatment, confidence, direction)
    is_typical = estimand is Estimand.TYPICAL
    from scipy import stats

    step = resolution([np.asarray(group.values, dtype=np.float64) for group in (baseline, treatment)])
    below, above = (_logarithm(group, step, of_mean=not is_typical) for group in (baseline, treatment))
    if not is_typical:
        _check_runs(estimand, below, above)
    difference = above.mean - below.mean
    error = math.sqrt(above.squared_error + below.squared_error)
    quantile = float(stats.t.ppf((1 + confidence) / 2, welch_df(above, below)))
    slope = 0.0 if is_typical else _skewness_of_difference(baseline, treatment)
    beyond = (
        max(quantile, _without_skewness(slope, quantile)),
        max(quantile, -_without_skewness(slope, -quantile)),
    )
    ends = [difference - beyond[0] * error, difference + beyond[1] * error]
    if is_typical and min(len(baseline.values), len(treatment.values)) >= ENOUGH_RUNS:
        first, second = (typical(np.log(np.asarray(group.values))) for group in (baseline, treatment))
        difference_of_typical = float(second[0] - first[0])
        reach = quantile * math.hypot(float(first[1]), float(second[1]))
        ends += [difference_of_typical - reach, difference_of_typical + reach]
    hidden = sum(_rounding(group, step).bias for group in (baseline, treatment))
    return Ratio(math.exp(difference), math.exp(min(ends) - hidden), math.exp(max(ends) + hidden))


def _skewness_of_difference(baseline: Group, treatment: Group) -> float:
    """Of the difference of two relative means; 0 of summaries."""
    if not (baseline.values and treatment.values):
        return 0.0
    second, third = 0.0, 0.0
    for group, sign in ((baseline, -1), (treatment, 1)):
        values = np.asarray(group.values, dtype=np.float64)
        apart = values / values.mean() - 1
        second += float((apart**2).mean()) / len(values)
        third += sign * float((apart**3).mean()) / len(values) ** 2
    return third / second**1.5 if second > 0 else 0.0


def _without_skewness(slope: float, edge: float) -> float:
    """The t statistic that without its skewness (Hall's cubic transformation) lies as far out as the edge."""
    if abs(slope) < _STRAIGHT:
        return edge
    return 3 / slope * (float(np.cbrt(1 + slope * (edge - slope / 6))) - 1)


def unseen_share(baseline: Group, treatment: Group, direction: Direction) -> float | None:
    """The share of runs up to which spikes are not ruled out; None of summaries."""
    if not (baseline.values and treatment.values):
        return None
    shares = []
    for group in (baseline, treatment):
        values = np.asarray(group.values, dtype=np.float64)
        seen = int(estimands.spikes(values, higher_is_worse=direction is Direction.LOWER).sum())
        shares.append(estimands.unseen_share(len(values), seen))
    return max(shares)


def _check_runs(estimand: Estimand, *groups: Moments) -> None:
    fewest = FEWEST_BLOCKS[estimand]
    for group in groups:
        if group.runs is not None and group.runs < fewest:
            few = f"{group.runs} runs are too few for a verdict on {ESTIMANDS[estimand]}"
            raise ValueError(f"{group.label}: {few}: it takes {fewest}")


def _ratio_of_tails(baseline: Group, treatment: Group, confidence: float, direction: Direction) -> Ratio:
    """Each group's quantile has half of the error (Bonferroni), as in blocks."""
    for group in (baseline, treatment):
        if not group.values:
            raise ValueError(f"{group.label}: a summary does not tell its slowest trials")
    _check_runs(Estimand.TAIL, moments(baseline), moments(treatment))
    if min(*baseline.values, *treatment.values) <= 0:
        raise ValueError("a ratio needs values above zero")
    higher_is_worse = direction is Direction.LOWER
    below, above = (
        (
            estimands.quantile_bounds(np.asarray(group.values), 1 - confidence, higher_is_worse),
            float(estimands.quantile(np.asarray(group.values), higher_is_worse)),
        )
        for group in (baseline, treatment)
    )
    return Ratio(above[1] / below[1], above[0][0] / below[0][1], above[0][1] / below[0][0])


def _logarithm(group: Group, step: float, *, of_mean: bool) -> Moments:
    """Of the geometric mean; `of_mean`, or of a summary: of the mean."""
    if group.values and not of_mean:
        if min(group.values) <= 0:
            raise ValueError("a ratio needs values above zero")
        runs = len(group.values)
        if 1 < runs < FEWEST_ALIKE and len(set(group.values)) == 1:
            # Of a few runs that are all alike nothing tells how much the next one may differ.
            raise ValueError(
                f"{group.label}: all {runs} runs are alike, so that nothing tells how much it scatters"
            )
        logs = np.log(np.asarray(group.values))
        least = math.sqrt(_rounding(group, step).variance)
        sd = max(float(logs.std(ddof=1)), least) if runs > 1 else None
        return Moments(group.label, float(logs.mean()), sd, runs)
    plain = moments(group)
    count, sd = plain.known
    if plain.mean <= 0:
        raise ValueError("a ratio needs values above zero")
    if sd <= 0:
        problem = "its standard deviation is given as 0, so that nothing tells how much it scatters"
        raise ValueError(f"{group.label}: {problem}")
    return Moments(group.label, math.log(plain.mean), sd / plain.mean, count)


def _rounding(group: Group, step: float) -> Rounding:
    return rounding([np.asarray(group.values, dtype=np.float64)], step)


def moments(group: Group) -> Moments:
    """A group's moments. Raises ValueError where it has neither values nor a summary."""
    if group.values:
        count = len(group.values)
        sd = statistics.stdev(group.values) if count > 1 else None
        return Moments(group.label, statistics.fmean(group.values), sd, count)
    if group.summary is None:
        raise ValueError(f"{group.label}: there are no numbers")
    summary = group.summary
    runs = summary.runs if summary.runs is not None else recovered_runs(summary)
    recovered = summary.runs is None and runs is not None
    return Moments(group.label, summary.mean.value, _standard_deviation(summary, runs), runs, recovered)


def _printed(summary: Summary) -> Rounded | None:
    """The standard deviation as it was printed, in the metric's unit."""
    if summary.sd is not None or summary.sd_percent is None:
        return summary.sd
    share = abs(summary.mean.value) / 100
    return Rounded(value=summary.sd_percent.value * share, half_unit=summary.sd_percent.half_unit * share)


def _standard_deviation(summary: Summary, runs: int | None) -> float | None:
    """From the SD or from standard error and runs: whichever was printed with more digits."""
    printed, error = _printed(summary), summary.standard_error
    if error is None or runs is None:
        return printed.value if printed else None
    if printed and printed.half_unit * error.value < error.half_unit * printed.value:
        return printed.value
    return error.value * math.sqrt(runs)


def recovered_runs(summary: Summary) -> int | None:
    """The run count behind a printed SD and standard error: (SD / SE)², rounded; None where one is missing.

    With SD in per cent of the mean, as Phoronix prints it: (SD% · mean / (100 · SE))².
    """
    printed, error = _printed(summary), summary.standard_error
    if not printed or not error or not printed.value or not error.value:
        return None
    return max(1, round((printed.value / error.value) ** 2))


def possible_runs(summary: Summary) -> tuple[float, float] | None:
    """The least and the most that the run count can be, given how the numbers were rounded; None as above."""
    printed, error = _printed(summary), summary.standard_error
    if not printed or not error or not printed.value or not error.value:
        return None
    least = (max(printed.least, 0.0) / error.most) ** 2
    return least, (printed.most / error.least) ** 2 if error.least > 0 else math.inf


def mean_interval(group: Moments, confidence: float = 0.95) -> tuple[float, float]:
    """The mean's, by Student's t with the group's own SD. Raises ValueError where there is no spread."""
    from scipy import stats

    runs, _ = group.known
    half = float(stats.t.ppf((1 + confidence) / 2, runs - 1)) * math.sqrt(group.squared_error)
    return group.mean - half, group.mean + half


def sd_interval(group: Moments, groups: int, confidence: float = 0.95) -> tuple[float, float]:
    """The standard deviation's, one of so many groups whose intervals hold together (Bonferroni).

    From chi-square with (1 - confidence) / (2 · groups) in each tail; for normal values. Raises ValueError
    where there is no spread.
    """
    from scipy import stats

    runs, sd = group.known
    tail = (1 - confidence) / (2 * groups)
    squares = (runs - 1) * sd * sd
    low, high = (float(stats.chi2.isf(share, runs - 1)) for share in (tail, 1 - tail))
    return math.sqrt(squares / low), math.sqrt(squares / high)
