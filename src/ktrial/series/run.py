"""Run a series: build forward, choose workloads by what was changed, measure each step, compare."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from ktrial.analysis.attribution.decomposition import explain
from ktrial.analysis.comparability import failures
from ktrial.analysis.store_queries import profile_of
from ktrial.experiment.errors import HOST_PROBLEMS
from ktrial.experiment.regression_check import DEFAULT_LIMIT, FLOOR, raised, rows_of
from ktrial.experiment.single_kernel import Measurement, Runs, failed, measure
from ktrial.fault_points import fault_point
from ktrial.format import number_format
from ktrial.kernels import Progress
from ktrial.kernels.build.make import build_seconds
from ktrial.kernels.errors import BadPatch, KernelError, PatchNotApplied
from ktrial.kernels.patch_series import as_patch
from ktrial.kernels.symbols import function_files
from ktrial.model.kernel import Build, Kernel, PatchSeries, SeriesPatch
from ktrial.model.profile import Profile
from ktrial.model.study import Study, StudyRecord
from ktrial.model.trial import Outcome
from ktrial.model.workload import WorkloadUse
from ktrial.series.building import Boots, Forward, reason, to_build
from ktrial.series.errors import NothingMeasured
from ktrial.series.result import (
    MOST_WORKLOADS,
    Selection,
    SeriesCell,
    SeriesResult,
    Step,
    StepState,
    executed_in,
    measured,
    selected,
)
from ktrial.store.store import Store

Limits = Mapping[str, float]


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


@dataclass(frozen=True)
class Coverage:
    """What workloads execute on the base."""

    profiles: tuple[tuple[WorkloadUse, Profile], ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    """Workloads that do not run on this kernel, by their labels, and why."""


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


# The numbers of a series: the profiles of its base, whether a kernel boots, and the trials of each step.

NAME, BOOT, COVERAGE = "series", "series-boot", "series-coverage"
"""What the studies of a series are called in the store."""


QUESTION = "What does this step of a series cost?"


_NULL_CONTROL = "nqueens"


NULL_CONTROL = WorkloadUse(name=_NULL_CONTROL)
"""It does no kernel work: where it changes, something other than the patch has changed."""


def boots_in(how: Measurement, runs: Runs) -> Boots:
    """What tells whether a kernel boots: one trial of the null control. Its boot serves later trials too."""
    once = replace(how, workloads=(NULL_CONTROL,), perturbations=1)

    def boots(kernel: Kernel) -> str:
        record = measure(BOOT, QUESTION, kernel, once, runs)
        wrong = [one for one in failed(record) if one.outcome is not Outcome.WORKLOAD_FAILED]
        return failures(wrong, record.planned) if wrong else ""

    return boots


def coverage(base: Kernel, uses: Iterable[WorkloadUse], how: Measurement, runs: Runs) -> Coverage:
    """The profiles of these workloads on the base, one trial each, from the store where they are there."""
    profiles: list[tuple[WorkloadUse, Profile]] = []
    not_run: dict[str, str] = {}
    for use in uses:
        alone = replace(how, workloads=(use,), perturbations=1)
        record = measure(COVERAGE, QUESTION, base, alone, runs)
        if wrong := failed(record):
            not_run[use.label] = failures(wrong, record.planned)
        elif profile := profile_in(record, use.label, runs):
            profiles.append((use, profile))
    return Coverage(tuple(profiles), not_run)


def counted_by_function(how: Measurement) -> Measurement:
    """The same on the machine on which trials have profiles: one CPU, whatever the steps are measured on."""
    plain = {"kind": "exact", "cpus": 1, "model": None}
    return replace(how, settings=how.settings.model_copy(update=plain))


def profile_in(record: StudyRecord, label: str, runs: Runs) -> Profile | None:
    """The profile of a workload in a study of one kernel: that of the first perturbation, which changes
    nothing.
    """
    if not record.trials:
        return None
    return profile_of(runs.store, record, record.trials[0].planned.treatment, label)


def trials_of(kernel: Kernel, how: Measurement, runs: Runs) -> StudyRecord:
    """The trials of one step's kernel, in the store; run where they are not there."""
    return measure(NAME, QUESTION, kernel, how, runs)


# Each patch alone on the base: what it costs there, and whether that depends on the patches before it.

Measured = Callable[[Step], list[SeriesCell]]
"""The cells of a kernel against the base."""


@dataclass(frozen=True)
class OneByOne:
    """Builds and measures each patch of a series on the base."""

    series: PatchSeries
    plain: Build
    build: Callable[[Build, Progress], Kernel]
    boots: Boots
    measured: Measured
    progress: Progress

    def of(self, steps: Iterable[Step], cells: Iterable[SeriesCell]) -> tuple[Alone, ...]:
        """Of each patch that has a kernel of its own in the series, whose cells there are `cells`."""
        among = {(one.number, one.workload): one for one in cells}
        own = (one for one in steps if one.patch is not None and one.state is StepState.BUILT)
        return tuple(self._alone(one, among) for one in own)

    def _alone(self, step: Step, among: dict[tuple[int, str], SeriesCell]) -> Alone:
        assert step.patch is not None, "the base is none of them"
        wanted = self.source(step.patch)
        try:
            kernel = self.build(wanted, self.progress)
        except HOST_PROBLEMS:
            raise
        except (PatchNotApplied, BadPatch) as error:
            return Alone(step.number, f"{StepState.NOT_APPLIED.value} alone: {error.facts['problem']}")
        except KernelError as error:
            problem = error.facts.get("problem") or error.message
            return Alone(step.number, f"{StepState.NOT_BUILT.value} alone: {problem}")
        if why := self.boots(kernel):
            return Alone(step.number, f"{StepState.NOT_BOOTED.value} alone: {why}")
        cells = self.measured(replace(step, kernel=kernel, build=wanted))
        other = tuple(
            one.workload
            for one in cells
            if (there := among.get((step.number, one.workload))) and differs(one, there)
        )
        return Alone(step.number, cells=tuple(cells), depends=other)

    def source(self, patch: SeriesPatch) -> Build:
        """The base with this patch alone."""
        if patch.patch is not None:
            added = patch.patch
        else:
            directory = Path(self.series.base.removeprefix("git:").rpartition("@")[0])
            added = as_patch(directory, patch)
        return self.plain.model_copy(update={"patches": (*self.plain.patches, added)})


def differs(alone: SeriesCell, among: SeriesCell) -> bool:
    """Whether a patch costs something else alone: by more than a change that means nothing moves a number."""
    return abs(alone.difference - among.difference) > Fraction(FLOOR) * max(alone.before, among.before)


# How long a series takes, said before it starts: builds and trials, by what past ones took here.


@dataclass(frozen=True)
class Estimate:
    """What is to be done at most; what is in the cache and in the store is not done again."""

    builds: int
    """Kernels that may have to be compiled, with the base."""
    build_seconds: float | None
    """A build, on this host, by past ones; None where there are none."""
    trials: int
    """Of the steps, at most."""
    trial_seconds: float | None
    """A trial, by those of past series; None where there are none."""

    @property
    def seconds(self) -> float | None:
        """Of everything; None where nothing tells."""
        if (self.builds and self.build_seconds is None) or self.trial_seconds is None:
            return None
        return self.builds * (self.build_seconds or 0.0) + self.trials * self.trial_seconds

    def words(self) -> str:
        """In a sentence."""
        builds = number_format.counted(self.builds, "kernel")
        text = f"at most {builds} to compile and {number_format.counted(self.trials, 'trial')} to run"
        if self.seconds is None:
            return f"{text}; how long that takes is not known yet on this machine"
        return f"{text}: about {number_format.duration(self.seconds)}, by earlier ones here"

    def as_json(self) -> dict[str, Any]:
        """What `--dry-run --json` prints."""
        return {
            "builds": self.builds,
            "build_seconds": self.build_seconds,
            "trials": self.trials,
            "trial_seconds": self.trial_seconds,
            "seconds": self.seconds,
        }


def estimate(asked: SeriesRun) -> Estimate:
    """Of a run that is to come; nothing is built or booted."""
    builder = asked.runs.sources.builder
    builds = len(list(to_build(asked.series, asked.plain, builder)))
    builds += builder.cached(asked.plain) is None
    images = len(asked.series.patches) + 1
    chosen = len(asked.how.workloads) or MOST_WORKLOADS + 1
    return Estimate(
        builds=builds,
        build_seconds=build_seconds(),
        trials=images * asked.how.perturbations,
        trial_seconds=_trial_seconds(asked.runs.store, chosen),
    )


def _trial_seconds(store: Store, workloads: int) -> float | None:
    """The mean of the newest series' trials, for so many workloads."""
    alike = [one for one in store.studies() if one.study.name in {NAME, COVERAGE} and one.finished]
    if not alike:
        return None
    newest = alike[-1]
    trials = store.trials(newest.id)
    return sum(trial.seconds for trial in trials) / len(trials) / _count(newest.study) * workloads


def _count(study: Study) -> int:
    return max(1, len(study.workloads))


def refusals(asked: SeriesRun) -> dict[int, str]:
    """Patches that do not apply, by their numbers, and why; of commits there are none. Raises KernelError."""
    numbered = [
        (one.number, files)
        for one in asked.series.patches
        if (files := one.files or ((one.patch,) if one.patch else ()))
    ]
    if not numbered:
        return {}

    def progress(what: str, done: int = 0, total: int = 0) -> None:
        asked.runs.observer.kernel_progress(asked.series.origin, what, done, total)

    refused = asked.runs.sources.builder.not_applying(asked.plain, numbered, progress)
    return {number: reason(error) for number, error in refused.items()}
