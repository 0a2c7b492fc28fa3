"""How well exact mode's changes foretell those of real time. Plain data."""

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.comparison import Verdict
from ktrial.model.workload import Direction


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

    study: str
    exact_study: int
    """The id of the one that counts."""
    workload: str
    metric: str
    direction: Direction
    treatment: str
    """What it changes."""
    label: str
    baseline: str
    """Both as the study has them."""
    time: Change
    exact: dict[str, Change]
    """By what exact mode counts: `instructions`, and other metrics by their names."""
    costs: dict[str, float] = Field(default_factory=dict)
    """What modelled cycles moved by, per operation: by kind of cost. Empty where none were modelled."""


class Interval(Model):
    """A figure with its 95 % interval: bootstrap over treatments. None where it cannot be had."""

    value: float | None
    low: float | None = None
    high: float | None = None


class SizeBand(Model):
    """Pairs whose counted change is about so large: what may be cited of a change of that size."""

    low: float
    high: float | None
    """Of the ratio, or of its inverse where it is below 1: 1.03 to 1.1. None: no end."""
    decided: int
    """By real time, of those that the count has decided."""
    same_sign: int
    undecided: int
    """In real time."""


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
    bands: tuple[SizeBand, ...] = ()
    disagreements: tuple[FidelityPair, ...] = ()

    @property
    def sentence(self) -> str:
        """What may be cited."""
        return (
            f"by {self.count}, decided changes had the sign of real time in {self.same_sign} of "
            f"{self.decided} cases; of {self.pairs} in all, real time left {self.undecided_in_time} undecided"
        )


class CountBands(Model):
    """One count of exact mode: how often changes by it had the sign of real time, by their size."""

    count: str
    bands: tuple[SizeBand, ...]


class FidelityTable(Model):
    """What of a fidelity result may be cited: it is kept in the store."""

    studies: tuple[tuple[int, int], ...]
    """Ids in the store: the one that counts, the one in real time."""
    names: tuple[str, ...]
    """Of those in real time."""
    machine: str
    """Their kinds."""
    cpu_models: tuple[str, ...]
    counts: tuple[CountBands, ...]


class FidelityCitation(Model):
    """What is known of changes of about one size."""

    count: str
    band: SizeBand
    machine: str
    cpu_models: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """For people."""
        low, high = (self.band.low - 1) * 100, self.band.high
        size = f"{low:.0f} % and more" if high is None else f"{low:.0f} to {(high - 1) * 100:.0f} %"
        cpus = f", {', '.join(self.cpu_models)}" if self.cpu_models else ""
        where = f"on machines like this one ({self.machine}{cpus}; {', '.join(self.names)})"
        if not self.band.decided:
            left = f"real time decided none of {self.band.undecided}"
            return f"{where} nothing is known of changes of {size} by {self.count}: {left}"
        right = f"the right sign in {self.band.same_sign} of {self.band.decided} cases"
        remark = f"; real time left {self.band.undecided} undecided" if self.band.undecided else ""
        return f"{where} changes of {size} by {self.count} had {right}{remark}"


NO_FIDELITY = (
    "how far such a change is one of time is not known: this store has no result of ktrial fidelity that says"
)
"""Of a count that people take for time, where nothing can be cited."""


class FittedCosts(Model):
    """Constants of a machine that were fitted to one half of the treatments, and what came of it."""

    like: str
    """The machine that the fit began with."""
    operations: int
    """Operations of the half that was fitted: baselines and treatments."""
    gigahertz: float
    """Modelled cycles in a nanosecond, over all of these: what makes times cycles."""
    before: dict[str, float]
    after: dict[str, float]
    """Cost → cycles. `classes` is a factor on the costs of dear instructions, interrupts and devices."""
    error_before: float
    error_after: float
    """Of the half that was fitted: root mean square of log(predicted / measured) of absolute times."""
    held_out: Fidelity
    """Of the other half, by the fitted constants; the figures of the constants before are beside it."""
    held_out_before: Fidelity


class WorkloadCost(Model):
    """What an operation of one built-in workload costs in the baseline, on both machines."""

    workload: str
    metric: str
    time: float
    """In nanoseconds."""
    exact: dict[str, float]
    """By what exact mode counts, as in a pair."""


class CrossSection(Model):
    """How one count stands to real time over workloads, not over changes."""

    count: str
    workloads: int
    spearman: Interval
    """Bootstrap over workloads."""
    scatter: float | None
    """Geometric standard deviation of the time for one of the count: a factor. None: too few."""

    @property
    def sentence(self) -> str:
        """What may be said of workloads that differ in nothing but what they do."""
        if self.scatter is None or self.spearman.value is None:
            return f"by {self.count}, {self.workloads} workloads are too few to set beside each other"
        return (
            f"by {self.count}, {self.workloads} workloads have real time's order with a rank correlation "
            f"of {self.spearman.value:.3f}, and their time for one of it scatters {self.scatter:.2f}-fold"
        )


class FidelityResult(Model):
    """Studies of the same treatments and workloads: one of each two counts, the other takes time."""

    studies: tuple[tuple[int, int], ...]
    """Ids in the store: the one that counts, the one in real time."""
    timed_machine: str
    all: tuple[Fidelity, ...]
    held_out: tuple[Fidelity, ...]
    """The half of the treatments that the seed leaves out of whatever is fitted."""
    seed: int
    pairs: tuple[FidelityPair, ...]
    left_out: tuple[str, ...]
    """Treatments and workloads with no number on one of the machines, each with the reason."""
    workloads: tuple[WorkloadCost, ...] = ()
    """Built-in ones whose operation has a time, in the baseline."""
    across: tuple[CrossSection, ...] = ()
    """Those workloads beside each other, by each count."""
    fitted: FittedCosts | None = None
