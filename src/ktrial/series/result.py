"""What came of a series: a cell for each patch and workload, and sums that are exact.

A cell's number is the difference in instructions an operation (a fraction, never rounded) between the step
and the one before that was measured, both under the perturbation that changes nothing. So the cells of a
column add up to the difference from base to tip to the last instruction. Whether a difference matters is
decided as `ktrial check` decides it, over all perturbations.
"""

from dataclasses import dataclass
from fractions import Fraction

from ktrial.experiment.regression_check import CheckedMetric, Decision
from ktrial.experiment.single_kernel import Measurement
from ktrial.kernels.image.code_difference import called
from ktrial.model.attribution import Explanation, FunctionDifference
from ktrial.model.comparison import Verdict
from ktrial.model.kernel import Build
from ktrial.model.patch_series import PatchSeries
from ktrial.model.profile import Profile
from ktrial.series.selection import Selection
from ktrial.series.steps import Step

INSIDE = frozenset({Verdict.EQUIVALENT, Verdict.IDENTICAL})
"""Verdicts of a metric that stays inside the margin."""


@dataclass(frozen=True)
class SeriesCell:
    """One patch in one workload; or all of them, from base to tip."""

    number: int
    """Of the patch; 0: base to tip."""
    workload: str
    before: Fraction
    """Instructions an operation; of a workload or a machine that counts none, its first metric."""
    after: Fraction
    checked: tuple[CheckedMetric, ...] = ()
    """Its metrics, as a check decides them; the first one is the workload's own."""
    explanation: Explanation | None = None
    """What the difference is made of; None where there is none, or no profile."""
    changed: tuple[str, ...] = ()
    """Functions that the patch changes."""
    profiles: tuple[Profile, Profile] | None = None
    """Before and after, where there is more to say than ≈."""

    @property
    def difference(self) -> Fraction:
        """Instructions an operation, more or fewer."""
        return self.after - self.before

    @property
    def ratio(self) -> float | None:
        """After over before; None after zero."""
        return float(self.after / self.before) if self.before else None

    @property
    def is_inside(self) -> bool:
        """Whether every metric stays inside the margin."""
        return all(one.comparison.verdict in INSIDE for one in self.checked)

    @property
    def is_open(self) -> bool:
        """Whether its number may be one of the layout: under other perturbations it is another one."""
        return bool(self.checked) and self.checked[0].comparison.verdict is Verdict.INCONCLUSIVE

    @property
    def decision(self) -> Decision:
        """The worst of its metrics'."""
        present = {one.decision for one in self.checked}
        for decision in (Decision.BEYOND, Decision.UNDECIDED):
            if decision in present:
                return decision
        return Decision.WITHIN

    @property
    def own(self) -> Fraction:
        """What functions that the patch itself changes have of the difference."""
        if self.explanation is None:
            return Fraction(0)
        parts = (self.explanation.difference(row) for row in self.explanation.rows if self.is_changed(row))
        return sum(parts, Fraction(0))

    @property
    def is_told(self) -> bool:
        """Whether there is more to say than ≈: beyond the margin, or in a function that the patch changes."""
        return not self.is_inside or self.own != 0

    def is_changed(self, row: FunctionDifference) -> bool:
        """Whether the patch changes this function's code."""
        names = {called(name, row.module) for name in (row.function, *row.before.names, *row.after.names)}
        return not names.isdisjoint(self.changed)

    def functions(self, most: int) -> list[tuple[FunctionDifference, Fraction]]:
        """What the difference is made of: functions that the patch changes first, the heaviest first."""
        if self.explanation is None:
            return []
        rows = [(row, self.explanation.difference(row)) for row in self.explanation.rows]
        differing = [(row, part) for row, part in rows if part or self.explanation.byte_difference(row)]
        least = max((abs(part) for _, part in differing), default=Fraction(0)) / 100
        telling = [one for one in differing if abs(one[1]) > least or self.is_changed(one[0])]
        return sorted(telling, key=lambda one: not self.is_changed(one[0]))[:most]


@dataclass(frozen=True)
class SeriesResult:
    """Everything that a run of a series found."""

    series: PatchSeries
    plain: Build
    """Of the base."""
    how: Measurement
    steps: tuple[Step, ...]
    """The base, then one for each patch."""
    selection: Selection
    asked: bool = False
    """Whether the user named the workloads."""
    cells: tuple[SeriesCell, ...] = ()
    totals: tuple[SeriesCell, ...] = ()
    """From base to tip, measured as such: one for each workload."""
    executed: frozenset[str] = frozenset()
    """Functions that the series changes and that ran somewhere, on the base or on a step."""
    counted: bool = True
    """Whether there were profiles: without, nobody knows what is executed."""
    limits: tuple[tuple[str, float], ...] = ()
    """Label of a workload → the largest change for the worse that is allowed."""
    notes: tuple[str, ...] = ()

    def cell(self, number: int, workload: str) -> SeriesCell | None:
        """The cell of a patch and a workload; None where the patch has no kernel of its own."""
        return next((one for one in self.cells if (one.number, one.workload) == (number, workload)), None)

    def sum_of(self, workload: str) -> Fraction:
        """All steps of a workload together."""
        return sum((one.difference for one in self.cells if one.workload == workload), Fraction(0))

    @property
    def is_exact(self) -> bool:
        """Whether the steps add up to the difference from base to tip in every workload."""
        return all(self.sum_of(one.workload) == one.difference for one in self.totals)

    @property
    def not_executed(self) -> tuple[str, ...]:
        """Functions that the series changes, and that ran nowhere."""
        return tuple(one for one in self.selection.changed if one not in self.executed)

    @property
    def broken(self) -> tuple[Step, ...]:
        """Patches without a kernel."""
        return tuple(one for one in self.steps if one.state.is_broken)

    @property
    def decision(self) -> Decision:
        """Of the whole: beyond where one patch is or all together are; else not run, or undecided."""
        present = {one.decision for one in (*self.cells, *self.totals)}
        if Decision.BEYOND in present:
            return Decision.BEYOND
        if self.broken:
            return Decision.NOT_RUN
        return Decision.UNDECIDED if Decision.UNDECIDED in present else Decision.WITHIN
