"""What came of a regression check: plain data, for texts, reports and JSON."""

from dataclasses import dataclass
from enum import StrEnum

from ktrial.model.attribution import Explanation
from ktrial.model.comparison import Comparison
from ktrial.model.fidelity import FidelityTable
from ktrial.model.kernel import Reach
from ktrial.model.profile import Profile
from ktrial.model.regression import MeasuredVersion, TrackedRegression
from ktrial.model.warnings import DataWarning


class Decision(StrEnum):
    """What a check says about one metric, or about the kernel."""

    WITHIN = "within"
    ACCEPTED = "accepted"
    """Beyond the limit, by no more than somebody has accepted."""
    BEYOND = "beyond"
    UNDECIDED = "undecided"
    """The limit lies inside the spread over the perturbations."""
    NOT_RUN = "not-run"
    """The kernel did not build or boot, or a workload failed on it."""
    NOT_EXECUTED = "not-executed"
    """Within the limit, and no function that differs ran in the workload: it cannot tell."""
    SAME_CODE = "same-code"
    """Within the limit, and both kernels have the same code: there is nothing to compare."""


@dataclass(frozen=True)
class CheckedMetric:
    """One metric of one workload."""

    comparison: Comparison
    limit: float
    decision: Decision
    reason: str = ""
    """Why it is undecided; what was accepted."""
    secondary: bool = False
    """Not the workload's first metric: its name goes with the workload's."""
    explanation: Explanation | None = None
    """What the difference is made of, where it is beyond and profiles were stored."""
    locking_share: float = 0.0
    """Of a change, also for the better: what functions that lock memory have of it."""
    profiles: tuple[Profile, Profile] | None = None
    """What it was explained by: the baseline's, and the kernel's under test."""
    regression: TrackedRegression | None = None
    """The regression that this is, where it is beyond, or was."""


@dataclass(frozen=True)
class RegressionCheck:
    """What came of a check."""

    kernel: str
    release: str
    """`uname -r` of the kernel under test, with its commit where it was built from a git tree."""
    baseline: str
    decision: Decision
    rows: tuple[CheckedMetric, ...] = ()
    problem: str = ""
    """Why the kernel did not run, in one sentence."""
    console: str = ""
    """The end of the guest's console, where it did not run."""
    warnings: tuple[DataWarning, ...] = ()
    """What is to be said about the kernel: its patches, and whether it is the baseline's at all."""
    kernels: tuple[MeasuredVersion, MeasuredVersion] | None = None
    """The baseline's kernel and the one under test; None where nothing was compared."""
    study_id: int = 0
    """The study of the kernel under test."""
    reach: Reach | None = None
    """Whether functions ran that differ between the two kernels' images; None where nothing tells that."""
    telling: tuple[str, ...] | None = None
    """Other workloads in which functions run that differ, by their labels; None where nobody has looked."""
    fidelity: tuple[FidelityTable, ...] = ()
    """What the store knows of counted changes and time."""
    on_several: "RegressionCheck | None" = None
    """The same workloads on several CPUs in simulated time, where tasks wait for each other."""
    cpus: int = 1
    """The guest's CPUs."""

    @property
    def reached(self) -> tuple[str, ...]:
        """Workloads, by their labels, in which a function ran that differs; empty where nothing tells it."""
        return self.reach.ran if self.reach else ()

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Its own, and that of several CPUs."""
        return (self.decision, self.on_several.decision) if self.on_several else (self.decision,)
