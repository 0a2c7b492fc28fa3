"""A group's run count, mean and standard deviation, from its runs or from what was printed of them, and the
intervals of the last two.
"""

import math
import statistics
from dataclasses import dataclass

from ktrial.model.imported import Group, Rounded, Summary


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
