"""Two groups whose runs all counted the same: allocations, bytes, page faults.

Such numbers are no measurements that a print made coarse: nothing scatters behind them. What is left to
chance is which runs came into which group. If both groups were of one kind, and the runs of two counts, all n
of one count would fall into one group and all m of the other into the other one with a probability of at most
2 / C(n + m, n): Fisher's exact test (Statistical Methods for Research Workers, 1934, § 21.02).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

from ktrial.stats.verdict_rules import Claim


@dataclass(frozen=True)
class Counted:
    """What two groups of counts say that are each the same in every run."""

    claim: Claim
    ratio: float | None
    """Treatment / baseline; None where one of both counts nothing."""
    sentence: str


def constant_counts(
    baseline: Sequence[float], treatment: Sequence[float], unit: str, margin: float, alpha: float
) -> Counted | None:
    """None where a number is no whole one, or a group has different ones.

    No claim is made, not even that both are the same, of runs that could not show a difference at `alpha`.
    """
    if not (_is_constant(baseline) and _is_constant(treatment)):
        return None
    below, above = baseline[0], treatment[0]
    ratio = 1.0 if below == above else above / below if below and above else None
    runs = len(baseline), len(treatment)
    if 2 / comb(sum(runs), runs[0]) > alpha:
        counts = f"{_count(below, unit)} and {_count(above, unit)}" if below != above else _count(below, unit)
        few = f"{runs[0]} and {runs[1]} runs that count {counts} are too few"
        return Counted(Claim.NONE, ratio, f"{few}: it takes {fewest_runs(alpha)} in each group")
    if below == above:
        return Counted(Claim.EQUIVALENT, ratio, f"every run of both counts {_count(below, unit)}")
    sentence = f"every run counts {_count(above, unit)}, and every run of the baseline {_count(below, unit)}"
    if ratio is not None and 1 / (1 + margin) <= ratio <= 1 + margin:
        return Counted(Claim.EQUIVALENT, ratio, sentence)
    return Counted(Claim.ABOVE if above > below else Claim.BELOW, ratio, sentence)


def fewest_runs(alpha: float) -> int:
    """In each group, of which all of one and all of the other count alike: for a verdict at this level."""
    return next(runs for runs in range(2, 1000) if 2 / comb(2 * runs, runs) <= alpha)


def _is_constant(values: Sequence[float]) -> bool:
    return bool(values) and len(set(values)) == 1 and values[0] >= 0 and float(values[0]).is_integer()


def _count(value: float, unit: str) -> str:
    return f"{value:.0f} {unit}".rstrip()
