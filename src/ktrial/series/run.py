"""Run a series: build forward, choose workloads by what was changed, measure each step, compare."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise

from ktrial.analysis.attribution.decomposition import explain
from ktrial.analysis.missing_data import failures
from ktrial.experiment.regression_check import DEFAULT_LIMIT, raised, rows_of
from ktrial.experiment.single_kernel import Measurement, Runs, failed
from ktrial.fault_points import fault_point
from ktrial.kernels.image.function_files import function_files
from ktrial.model.kernel import Build, Kernel
from ktrial.model.patch_series import PatchSeries
from ktrial.model.profile import Profile
from ktrial.model.study_record import StudyRecord
from ktrial.model.workload import WorkloadUse
from ktrial.series.building import Forward
from ktrial.series.errors import NothingMeasured
from ktrial.series.measuring import (
    NULL_CONTROL,
    Coverage,
    boots_in,
    counted_by_function,
    coverage,
    profile_in,
    trials_of,
)
from ktrial.series.patch_alone import Alone, OneByOne
from ktrial.series.result import SeriesCell, SeriesResult
from ktrial.series.selection import Selection, executed_in, selected
from ktrial.series.steps import Step, measured

Limits = Mapping[str, float]


@dataclass(frozen=True)
class SeriesRun:
    """What is to be run."""

    series: PatchSeries
    plain: Build
    how: Measurement
    """Without workloads: they are chosen."""
    runs: Runs
    tell: Callable[[str], None]
    candidates: tuple[WorkloadUse, ...] = ()
    """Workloads to choose from, where none are asked for."""
    each_alone: bool = False
    """Whether each patch is measured alone on the base too."""
    limits: Callable[[Sequence[WorkloadUse]], Limits] = lambda uses: {
        one.label: DEFAULT_LIMIT for one in uses
    }

    def run(self) -> SeriesResult:
        """Without what each patch costs alone. Raises as `run_all`."""
        return self.run_all()[0]

    def run_all(self) -> tuple[SeriesResult, tuple[Alone, ...]]:
        """Everything. Raises KernelError where the base cannot be had, NothingMeasured, and as
        `session.run`.
        """
        boots = boots_in(self.how, self.runs)
        builder = self.runs.sources.builder
        steps = Forward(self.series, self.plain, builder, boots, self._progress, self.tell).steps()
        base = steps[0].kernel
        assert base is not None, "without a base nothing was built"
        changed = [name for one in steps for name in one.functions]
        if not any(one.is_own for one in steps[1:]):
            return self._without_change(steps), ()
        known = self._coverage(base, changed)
        selection = selected(changed, known.profiles)
        uses = self.how.workloads or self._uses(selection, known)
        fault_point("series.selected")
        how = replace(self.how, workloads=uses)
        comparing = _Comparing(self, how, tuple(steps), selection, known)
        result = comparing.result()
        if not self.each_alone:
            return result, ()
        self.tell("each patch alone on the base")
        build = self.runs.sources.builder.build
        one_by_one = OneByOne(self.series, self.plain, build, boots, comparing.against_base, self._progress)
        return result, one_by_one.of(steps, result.cells)

    def _without_change(self, steps: list[Step]) -> SeriesResult:
        """The result where no patch makes another image: nothing is measured."""
        return SeriesResult(
            self.series, self.plain, self.how, tuple(steps), Selection(()), bool(self.how.workloads)
        )

    def _coverage(self, base: Kernel, changed: Sequence[str]) -> Coverage:
        if self.how.workloads or not changed:
            return Coverage()
        self.tell(f"base: what {len(self.candidates)} workloads execute")
        return coverage(base, self.candidates, counted_by_function(self.how), self.runs)

    def _uses(self, selection: Selection, known: Coverage) -> tuple[WorkloadUse, ...]:
        """Those that were chosen, and the null control; without profiles, all that run."""
        if known.profiles:
            uses = [one.use for one in selection.chosen]
        else:
            uses = [one for one in self.candidates if one.label not in known.failed]
        return tuple({one.label: one for one in (*uses, NULL_CONTROL)}.values())

    def _progress(self, what: str, done: int = 0, total: int = 0) -> None:
        self.runs.observer.kernel_progress(self.series.origin, what, done, total)


@dataclass
class _Comparing:
    """Measures the steps, and compares each with the one before."""

    asked: SeriesRun
    how: Measurement
    steps: tuple[Step, ...]
    selection: Selection
    known: Coverage
    _executed: set[str] = field(default_factory=set)
    _counted: bool = False

    def result(self) -> SeriesResult:
        names = ", ".join(one.label for one in self.how.workloads)
        self.asked.tell(f"measuring in {names}")
        for _, profile in self.known.profiles:
            self._execute(profile)
        records = [(one, self._record(one)) for one in measured(self.steps)]
        problems = {one.number: why for one, record in records if (why := _problem(record))}
        if records[0][0].number in problems:
            raise NothingMeasured(problem=problems[0])
        whole = [pair for pair in records if pair[0].number not in problems]
        limits = self.asked.limits(self.how.workloads)
        cells = [
            cell
            for before, after in pairwise(whole)
            for cell in self._cells(before, after, after[0].number, limits)
        ]
        totals = self._cells(whole[0], whole[-1], 0, limits) if len(whole) > 1 else []
        return SeriesResult(
            self.asked.series,
            self.asked.plain,
            self.how,
            self.steps,
            self.selection,
            bool(self.asked.how.workloads),
            tuple(cells),
            tuple(totals),
            frozenset(self._executed),
            self._counted,
            tuple(limits.items()),
            (
                *(f"patch {number} was not measured: {why}" for number, why in problems.items()),
                *(f"{one.text}: {one.advice}" for one in raised(limits)),
            ),
        )

    def against_base(self, step: Step) -> list[SeriesCell]:
        """The cells of a kernel against the base; none where a workload fails on it."""
        base = self.steps[0]
        records = [(one, self._record(one)) for one in (base, step)]
        if _problem(records[1][1]):
            return []
        return self._cells(records[0], records[1], step.number, self.asked.limits(self.how.workloads))

    def _record(self, step: Step) -> StudyRecord:
        assert step.kernel is not None, "only such steps are measured"
        if step.patch:
            self.asked.tell(f"{step.number}/{len(self.steps) - 1} {step.patch.subject}: measuring")
        else:
            self.asked.tell("base: measuring")
        record = trials_of(step.kernel, self.how, self.asked.runs)
        fault_point("series.step_measured")
        for use in self.how.workloads:
            if profile := profile_in(record, use.label, self.asked.runs):
                self._execute(profile)
        return record

    def _execute(self, profile: Profile) -> None:
        self._counted = True
        self._executed.update(executed_in(profile, frozenset(self.selection.changed)))

    def _cells(
        self, before: tuple[Step, StudyRecord], after: tuple[Step, StudyRecord], number: int, limits: Limits
    ) -> list[SeriesCell]:
        return [self._cell(use, before, after, number, limits) for use in self.how.workloads]

    def _cell(
        self,
        use: WorkloadUse,
        before: tuple[Step, StudyRecord],
        after: tuple[Step, StudyRecord],
        number: int,
        limits: Limits,
    ) -> SeriesCell:
        labels = (f"step {before[0].number}", f"step {after[0].number}")
        rows = rows_of(use, limits.get(use.label, DEFAULT_LIMIT), labels, before[1], after[1])
        old, new = (profile_in(one, use.label, self.asked.runs) for one in (before[1], after[1]))
        explanation = None
        if old and new:
            values = [Fraction(one.region.instructions, one.operations) for one in (old, new)]
            if values[0] != values[1] and before[0].kernel and after[0].kernel:
                files = [function_files(one) for one in (before[0].kernel, after[0].kernel)]
                explanation = explain(old, new, *files)
        else:
            values = [_value(one, use.label) for one in (before[1], after[1])]
        changed = after[0].functions if number else self.selection.changed
        cell = SeriesCell(number, use.label, values[0], values[1], tuple(rows), explanation, changed)
        return replace(cell, profiles=(old, new)) if old and new and cell.is_told else cell


def _problem(record: StudyRecord) -> str:
    wrong = failed(record)
    return failures(wrong, record.planned) if wrong else ""


def _value(record: StudyRecord, label: str) -> Fraction:
    """The workload's first metric under the perturbation that changes nothing."""
    first = min(record.trials, key=lambda one: one.planned.perturbation.number)
    return next((Fraction(one.value) for one in first.samples if one.workload == label), Fraction(0))
