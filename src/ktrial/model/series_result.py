"""What came of a series: a cell for each patch and workload, and sums that are exact.

A cell's number is the difference in instructions per operation (a fraction, never rounded) between the step
and the one before that was measured, both under the perturbation that changes nothing. So the cells of a
column add up to the difference from base to tip to the last instruction. Whether a difference matters is
decided as `ktrial check` decides it, over all perturbations.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from ktrial.model.attribution import Explanation, FunctionDifference, rests_on_locks
from ktrial.model.base import digest
from ktrial.model.comparison import Verdict
from ktrial.model.kernel import Build, Kernel, PatchSeries, SeriesPatch, Ways
from ktrial.model.profile import Profile, called
from ktrial.model.regression_check import CheckedMetric, Decision
from ktrial.model.study import Measurement
from ktrial.model.workload import WorkloadUse

INSIDE = frozenset({Verdict.EQUIVALENT, Verdict.IDENTICAL})
"""Verdicts of a metric that stays inside the margin."""

_SYSTEM_CALL = re.compile(r"^__(?:x64|ia32|ia32_compat|se|do)_sys_")
"""How the kernel begins the names of a system call's functions (arch/x86/include/asm/syscall_wrapper.h)."""


@dataclass(frozen=True)
class SeriesCell:
    """One patch in one workload; or all of them, from base to tip."""

    number: int
    """Of the patch; 0: base to tip."""
    workload: str
    before: Fraction
    """Instructions per operation; of a workload or a machine that counts none, its first metric."""
    after: Fraction
    checked: tuple[CheckedMetric, ...] = ()
    """Its metrics, as a check decides them; the first one is the workload's own."""
    explanation: Explanation | None = None
    """What the difference is made of; None where there is none, or no profile."""
    changed: tuple[str, ...] = ()
    """Functions that the patch changes."""
    profiles: tuple[Profile, Profile] | None = None
    """Before and after, where there is more to say than ≈."""
    is_idle: bool = False
    """Whether no function that the patch changes ran in it, by the profiles, and it changes no data."""
    on_several: tuple[CheckedMetric, ...] = ()
    """Its metrics on several CPUs in simulated time, where tasks wait for each other; none where they were
    not measured.
    """
    cpus: int = 1
    """The CPUs of those."""

    @property
    def difference(self) -> Fraction:
        """Instructions per operation, more or fewer."""
        return self.after - self.before

    @property
    def ratio(self) -> float | None:
        """After over before; None after zero."""
        return float(self.after / self.before) if self.before else None

    @property
    def is_inside(self) -> bool:
        """Whether every metric stays inside the margin."""
        return all(metric.comparison.verdict in INSIDE for metric in self.checked)

    @property
    def is_open(self) -> bool:
        """Whether its number may be one of the layout: under other perturbations it is another one."""
        return bool(self.checked) and self.checked[0].comparison.verdict is Verdict.INCONCLUSIVE

    @property
    def decision(self) -> Decision:
        """The worst of its metrics', on one CPU and on several."""
        present = {metric.decision for metric in (*self.checked, *self.on_several)}
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
        """Whether there is more to say than ≈: beyond the margin, on one CPU or on several, or in a function
        that the patch changes.
        """
        several = any(metric.comparison.verdict not in INSIDE for metric in self.on_several)
        return not self.is_inside or several or self.own != 0

    @property
    def rests_on_locks(self) -> bool:
        """Whether so much of its difference is in functions that lock memory that one CPU says little."""
        return self.explanation is not None and rests_on_locks(self.explanation.locking_share)

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
        telling = [row for row in differing if abs(row[1]) > least or self.is_changed(row[0])]
        return sorted(telling, key=lambda row: not self.is_changed(row[0]))[:most]


@dataclass(frozen=True)
class Choice:
    """A workload that was chosen, and why."""

    use: WorkloadUse
    functions: tuple[str, ...]
    """Functions that the series changes, or that read what it changes, and that it executes; the most
    instructions first."""
    share: float
    """Their part of all its instructions."""


@dataclass(frozen=True)
class Selection:
    """The workloads that can tell of a change."""

    changed: tuple[str, ...]
    """All functions that the series changes, by name."""
    readers: tuple[str, ...] = ()
    """Others that read the data which it changes: workloads are chosen by these, too."""
    chosen: tuple[Choice, ...] = ()
    left_out: tuple[Choice, ...] = ()
    """Workloads that execute some too, and found no place."""

    @property
    def not_executed(self) -> tuple[str, ...]:
        """Functions that no workload at hand executes on the base."""
        return left_idle(self.changed, {name for choice in self.chosen for name in choice.functions})


def left_idle(changed: Iterable[str], executed: Collection[str]) -> tuple[str, ...]:
    """The changed functions that did not run.

    A system call's body is compiled into each way into it (`__do_sys_getppid` into `__x64_sys_getppid` and
    `__ia32_sys_getppid`): where one of them ran, the call did.
    """
    calls = {_SYSTEM_CALL.sub("", name) for name in executed if _SYSTEM_CALL.match(name)}
    return tuple(
        function
        for function in changed
        if function not in executed
        and not (_SYSTEM_CALL.match(function) and _SYSTEM_CALL.sub("", function) in calls)
    )


@dataclass(frozen=True)
class OptionStep:
    """One option that is not the same after a patch."""

    option: str
    """Without `CONFIG_`."""
    before: str | None
    """None: it is not set, or the source does not have it."""
    after: str | None
    brought: bool = False
    """Whether the patch brings it."""

    def __str__(self) -> str:
        """`SCHED_FOO=y (new)`, `HZ: 250 → 1000`."""
        before, after = self.before or "n", self.after or "n"
        return f"{self.option}={after} (new)" if self.brought else f"{self.option}: {before} → {after}"


class StepState(StrEnum):
    """What became of a step."""

    BUILT = "built"
    """It is another kernel than the one before."""
    NOT_COMPILED = "not compiled"
    """It changes nothing that this configuration compiles: nothing is built where a build tree tells that."""
    SAME_IMAGE = "same image"
    """It was built, and loads the same bytes as the one before, line numbers of warnings apart."""
    NOT_CONFIGURED = "not configurable"
    """An option that is asked for cannot be set yet: the first patch with which it can is the base."""
    NOT_APPLIED = "does not apply"
    NOT_BUILT = "does not build"
    NOT_BOOTED = "does not boot"

    @property
    def is_broken(self) -> bool:
        """Whether there is no kernel to measure."""
        return self in _BROKEN


@dataclass(frozen=True)
class Step:
    """The base, or one patch."""

    patch: SeriesPatch | None
    """None: the base."""
    state: StepState
    kernel: Kernel | None = None
    """What is measured; of a step without an own image, the one before. None where it is broken."""
    build: Build | None = None
    """What was compiled last, up to here."""
    why: str = ""
    """Why there is no kernel, or no own one, in one sentence."""
    left_out: bool = False
    """Whether the steps after it go on without this patch."""
    mended_by: int | None = None
    """The number of the patch with which it works again."""
    options: tuple[OptionStep, ...] = ()
    functions: tuple[str, ...] = ()
    """Functions whose code is not the same as in the step before."""
    copies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of a name that several functions have: which of them those are (`init_once (inode.c)`)."""
    data: tuple[str, ...] = ()
    """Variables and tables of the same kind."""
    readers: tuple[str, ...] = ()
    """Functions whose code names one of those; of those that share a name, which."""
    is_compared: bool = True
    """Whether its code could be compared with that of the step before."""
    notes: tuple[str, ...] = field(default=())
    cpu_seconds: float | None = None
    """What compiling it took of the processors, beyond what the step before had compiled; None where nothing
    was compiled, or nothing counted it."""

    @property
    def number(self) -> int:
        """0 for the base."""
        return self.patch.number if self.patch else 0

    @property
    def is_own(self) -> bool:
        """Whether it has a kernel that the step before has not."""
        return self.patch is None or self.state is StepState.BUILT

    @property
    def each_function(self) -> tuple[str, ...]:
        """The functions that differ, each by a name of its own."""
        return tuple(own for name in self.functions for own in self.copies.get(name, (name,)))

    @property
    def only_moves(self) -> bool:
        """Whether its kernel has the functions and data of the one before, at other addresses."""
        same = self.is_compared and not self.functions and not self.data
        return self.patch is not None and self.state is StepState.BUILT and same


@dataclass(frozen=True)
class SeriesResult:
    """Everything that a run of a series found."""

    series: PatchSeries
    plain: Build
    """Of the base."""
    measurement: Measurement
    steps: tuple[Step, ...]
    """The base, then one for each patch."""
    selection: Selection
    asked: bool = False
    """Whether the user named the workloads."""
    cells: tuple[SeriesCell, ...] = ()
    totals: tuple[SeriesCell, ...] = ()
    """From base to tip, measured as such: one for each workload."""
    executed: frozenset[str] = frozenset()
    """Functions that the series changes, or that read its data, and that ran in what was measured, on the
    base or on a step."""
    shared_names: tuple[str, ...] = ()
    """Names that several functions have, of which one ran, where no profile tells which: none of them counts
    as executed."""
    counted: bool = True
    """Whether there were profiles: without, nobody knows what is executed."""
    limits: tuple[tuple[str, float], ...] = ()
    """Label of a workload → the largest change for the worse that is allowed."""
    notes: tuple[str, ...] = ()
    built_again: tuple[int, ...] = ()
    """Patches whose kernels were built from nothing, too, and are the same bit by bit."""
    ways: Mapping[str, Ways] = field(default_factory=dict)
    """How those can be reached that ran nowhere, by name."""
    booted: frozenset[str] | None = None
    """Functions that the series changes and that a boot executes; None: nobody looked."""

    def cell(self, number: int, workload: str) -> SeriesCell | None:
        """The cell of a patch and a workload; None where the patch has no kernel of its own."""
        return next((cell for cell in self.cells if (cell.number, cell.workload) == (number, workload)), None)

    @property
    def not_executed(self) -> tuple[str, ...]:
        """Functions that the series changes, and that ran nowhere."""
        return left_idle(self.selection.changed, self.executed)

    @property
    def only_booted(self) -> tuple[str, ...]:
        """Of those the ones that only a boot executes, which is not measured: by what ran, else by where the
        kernel keeps them.
        """
        at_boot = {name for name, way in self.ways.items() if way.at_boot}
        known = at_boot if self.booted is None else self.booted
        return tuple(name for name in self.not_executed if name in known)

    @property
    def executed_elsewhere(self) -> dict[str, tuple[str, ...]]:
        """Functions that ran nowhere → the workloads that execute them and were not measured."""
        elsewhere = {
            function: tuple(
                choice.use.label for choice in self.selection.left_out if function in choice.functions
            )
            for function in self.not_executed
        }
        return {function: labels for function, labels in elsewhere.items() if labels}

    @property
    def numbers_digest(self) -> str:
        """SHA-256 of all that was measured, and of what it was measured on, without paths.

        Whoever builds the same with the same compiler and measures it in exact mode gets the same.
        """
        base = self.steps[0].kernel
        cells = [
            (cell.number, cell.workload, str(cell.before), str(cell.after), *map(_values, cell.on_several))
            for cell in (*self.cells, *self.totals)
        ]
        steps = [
            (step.number, step.patch.subject, step.state.value, [*map(str, step.options)])
            for step in self.steps
            if step.patch
        ]
        about = [base.release, base.config_digest, base.origin.compiler] if base else []
        return digest([about, self.measurement.settings.model_dump(mode="json"), steps, cells])

    @property
    def broken(self) -> tuple[Step, ...]:
        """Patches without a kernel."""
        return tuple(step for step in self.steps if step.state.is_broken)

    @property
    def decision(self) -> Decision:
        """Of the whole: beyond where one patch is or all together are; else undecided, or not run.

        Not executed where no function that a patch changes ran: then it cannot tell.
        """
        present = {cell.decision for cell in (*self.cells, *self.totals)}
        for decision in (Decision.BEYOND, Decision.UNDECIDED):
            if decision in present:
                return decision
        if self.broken:
            return Decision.NOT_RUN
        return Decision.NOT_EXECUTED if self.is_idle else Decision.WITHIN

    @property
    def is_idle(self) -> bool:
        """Whether patches were measured, and none of the functions that they change ran."""
        return bool(self.cells) and all(cell.is_idle for cell in self.cells)


def _values(metric: CheckedMetric) -> str:
    return f"{metric.comparison.baseline_value!r} {metric.comparison.value!r}"


_BROKEN = {StepState.NOT_APPLIED, StepState.NOT_BUILT, StepState.NOT_BOOTED}


@dataclass(frozen=True)
class Alone:
    """One patch without the others."""

    number: int
    why: str = ""
    """Why it cannot be measured alone, in one sentence; empty where it was."""
    cells: tuple[SeriesCell, ...] = ()
    """Against the base."""
    depends: tuple[str, ...] = ()
    """Workloads in which it costs something else than among the others."""
