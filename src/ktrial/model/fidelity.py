"""How well exact mode's changes foretell those of real time. Plain data."""

from ktrial.model.base import Model
from ktrial.model.comparison import Verdict


class Change(Model):
    """One treatment's ratio to the baseline, with its interval and its own statistics' verdict."""

    ratio: float
    low: float
    high: float
    verdict: Verdict

    @property
    def decided(self) -> bool:
        """Better or worse, by more than the margin."""
        return self.verdict in (Verdict.BETTER, Verdict.WORSE)


class FidelityPair(Model):
    """One treatment in one workload, on both machines."""

    workload: str
    metric: str
    treatment: str
    time: Change
    exact: dict[str, Change]
    """By what exact mode counts: `instructions`, and other metrics by their names."""


class Interval(Model):
    """A figure with its 95 % interval: bootstrap over treatments. None where it cannot be had."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Fidelity(Model):
    """How one count of exact mode follows real time. Figures are of the pairs that both have decided."""

    count: str
    pairs: int
    """Those that have both numbers."""
    undecided_in_time: int
    undecided_in_exact: int
    """Of those that real time has decided."""
    decided: int
    same_sign: int
    spearman: Interval
    pearson: Interval
    rms_error: float | None
    """Root mean square of the differences of log ratios: 0.01 is 1 %."""
    slope: float | None
    """Log ratio in time for each of the count: least squares through no change."""
    disagreements: tuple[FidelityPair, ...] = ()

    @property
    def sentence(self) -> str:
        """What may be cited."""
        return (
            f"by {self.count}, decided changes had the sign of real time in {self.same_sign} of "
            f"{self.decided} cases; of {self.pairs} in all, real time left {self.undecided_in_time} undecided"
        )


class FidelityResult(Model):
    """Two studies of the same treatments and workloads: one counts, one takes time."""

    exact_study: int
    timed_study: int
    timed_machine: str
    all: tuple[Fidelity, ...]
    held_out: tuple[Fidelity, ...]
    """The half of the treatments that the seed leaves out of whatever is fitted."""
    seed: int
    pairs: tuple[FidelityPair, ...]
    left_out: tuple[str, ...]
    """Treatments and workloads with no number on one of the machines, each with the reason."""
