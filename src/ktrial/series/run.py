"""Run a series: build forward, choose workloads by what was changed, measure each step, compare."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from pathlib import Path

from ktrial.analysis.attribution.decomposition import explain
from ktrial.analysis.comparability import failures
from ktrial.analysis.errors import AnalysisError
from ktrial.analysis.store_queries import profile_of
from ktrial.experiment.errors import HOST_PROBLEMS, TrialsNotMeasured
from ktrial.experiment.regression_check import (
    DEFAULT_LIMIT,
    FLOOR,
    ROUTE_CPUS,
    not_on_several,
    on_several,
    raised,
    rows_of,
)
from ktrial.experiment.single_kernel import Runs, failed, functions_in_boot, measure, problem_of
from ktrial.fault_points import fault_point
from ktrial.format import number_format
from ktrial.kernels import Progress
from ktrial.kernels.build.make import whole_build_seconds
from ktrial.kernels.code_image import copies_in, ways_to
from ktrial.kernels.errors import BadPatch, KernelError, PatchNotApplied
from ktrial.kernels.image_difference import code_difference
from ktrial.kernels.patch_series import as_patch
from ktrial.kernels.symbols import function_files
from ktrial.machines.errors import MachineError
from ktrial.model.kernel import OWN, Build, Kernel, PatchSeries, SeriesPatch, options_named
from ktrial.model.profile import Profile, plain_name
from ktrial.model.series_result import Alone, Selection, SeriesCell, SeriesResult, Step, StepState
from ktrial.model.study import Measurement, StudyRecord
from ktrial.model.trial import Outcome
from ktrial.model.workload import WorkloadUse
from ktrial.series.building import Boots, Forward
from ktrial.series.errors import SeriesError
from ktrial.series.selection import (
    Copies,
    executed_in,
    measured,
    not_told_apart,
    nothing_ran,
    selected,
    shared_in,
    with_tours,
)
from ktrial.target.errors import GuestEnded
from ktrial.workloads.errors import WorkloadError
from ktrial.workloads.tours import tour

Limits = Mapping[str, float]
_MOST_WAYS = 40
"""Functions that ran nowhere of which is looked up how they can be reached."""
REBUILD_EVERY = 24
"""Of so many kernels one is built from nothing too, unless somebody says otherwise."""


@dataclass(frozen=True)
class Coverage:
    """What workloads execute on the base."""

    profiles: tuple[tuple[WorkloadUse, Profile], ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    """Workloads that do not run on this kernel, by their labels, and why."""

    def with_profiles(self, more: Sequence[tuple[WorkloadUse, Profile]]) -> "Coverage":
        """With these, too."""
        return replace(self, profiles=(*self.profiles, *more))


@dataclass(frozen=True)
class SeriesRun:
    """What is to be run."""

    series: PatchSeries
    plain: Build
    measurement: Measurement
    """Without workloads: they are chosen."""
    runs: Runs
    tell: Callable[[str], None]
    candidates: tuple[WorkloadUse, ...] = ()
    """Workloads to choose from, where none are asked for."""
    tours: tuple[str, ...] = ()
    """Names of tours, for functions that none of the candidates executes; compiled when they are wanted."""
    first: tuple[WorkloadUse, ...] = ()
    """Workloads that are measured in any case, where none are asked for: the tree's rules name them."""
    notes: tuple[str, ...] = ()
    """What the report says beside the series' own notes."""
    each_alone: bool = False
    """Whether each patch is measured alone on the base too."""
    rebuild_every: int = 0
    """Every how many strangers' kernels one is built from nothing too, and the last; 0: none."""
    route: bool | None = None
    """Whether each cell is measured on several CPUs, too; None: those that rest on locks."""
    limits: Callable[[Sequence[WorkloadUse]], Limits] = lambda uses: {
        use.label: DEFAULT_LIMIT for use in uses
    }

    def run(self) -> SeriesResult:
        """Without what each patch costs alone. Raises as `run_all`."""
        return self.run_all()[0]

    def run_all(self) -> tuple[SeriesResult, tuple[Alone, ...]]:
        """Everything. Raises KernelError where the base cannot be had, SeriesError, and as
        `session.run`.
        """
        built = self.built()
        return self.measured(built, built.uses)

    def built(self) -> "BuiltSeries":
        """Every kernel built and booted, and the workloads chosen; no step is measured yet. Raises as
        `run_all`.
        """
        steps = Forward(
            self.series,
            self.plain,
            self.runs.resources.builder,
            boots_in(self.measurement, self.runs),
            self.runs.observer.progress_of(self.series.origin),
            self.tell,
            boots_when_measured(self.measurement, self.runs),
        ).steps()
        base = steps[0].kernel
        assert base is not None, "without a base nothing was built"
        again = self._check_builds(steps)
        if not any(step.is_own for step in steps[1:]):
            return BuiltSeries(tuple(steps), again)
        changed = [name for step in steps for name in step.each_function]
        readers = [name for step in steps for name in step.readers]
        coverage = self._coverage(base, (*changed, *readers))
        copies = copies_in(base, shared_in((*changed, *readers)))
        first = [use.label for use in self.first]
        selection = selected(changed, coverage.profiles, readers=readers, copies=copies, first=first)
        if selection.not_executed and coverage.profiles:
            toured = self._toured(base, len(selection.not_executed))
            selection, coverage = with_tours(selection, toured, copies), coverage.with_profiles(toured)
        uses = self.measurement.workloads or self._uses(selection, coverage)
        return BuiltSeries(tuple(steps), again, coverage, selection, uses)

    def measured(
        self, built: "BuiltSeries", uses: tuple[WorkloadUse, ...]
    ) -> tuple[SeriesResult, tuple[Alone, ...]]:
        """What is built, measured in these workloads. Raises as `run_all`."""
        if not built.uses:
            return replace(self._without_change(built.steps), built_again=built.again), ()
        fault_point("series.selected")
        measurement = replace(self.measurement, workloads=uses)
        comparing = _Comparing(self, measurement, built.steps, built.selection, built.coverage)
        result = replace(comparing.result(), built_again=built.again)
        result = self._with_ways(result)
        if not self.each_alone:
            return result, ()
        self.tell("each patch alone on the base")
        one_by_one = OneByOne(
            self.series,
            self.plain,
            self.runs.resources.builder.build,
            boots_in(self.measurement, self.runs),
            comparing.against_base,
            self.runs.observer.progress_of(self.series.origin),
        )
        return result, one_by_one.of(built.steps, result.cells)

    def _with_ways(self, result: SeriesResult) -> SeriesResult:
        """How what did not run can be reached; a boot of the base and of the tip tells what that executes."""
        kernels = [step.kernel for step in result.steps if step.kernel is not None]
        ways = ways_to(kernels[-1], result.not_executed[:_MOST_WAYS])
        if not result.not_executed:
            return replace(result, ways=ways)
        self.tell("base and tip: what a boot executes")
        booted = booted_in((kernels[0], kernels[-1]), self.measurement, self.runs)
        if booted is not None:
            booted = booted.intersection(result.selection.changed)
        return replace(result, ways=ways, booted=booted)

    def _check_builds(self, steps: Sequence[Step]) -> tuple[int, ...]:
        """The numbers of the patches whose kernels were built in an empty build tree, too.

        Raises SeriesError where one of them is another kernel there.
        """
        builder = self.runs.resources.builder
        progress = self.runs.observer.progress_of(self.series.origin)
        again = rebuilt(steps, self.rebuild_every)
        if again:
            self.tell(self._why_again(len(again)))
        for step in again:
            assert step.kernel is not None, "it was built"
            assert step.build is not None, "a step with a kernel has one"
            self.tell(f"{step.number}/{len(steps) - 1}: building it from nothing{_about()}")
            if not builder.same_from_nothing(step.kernel, step.build, progress):
                raise SeriesError(
                    f"The series is not to be trusted: the kernel of patch {step.number} is another one when "
                    "it is built from nothing. A build of the series left something in the build tree that "
                    "got into it.",
                    hint="read what the patches change in Makefiles and scripts; --rebuild 1 names the first",
                )
            self.tell(f"{step.number}/{len(steps) - 1}: both builds are the same, bit by bit")
        return tuple(step.number for step in again)

    def _why_again(self, count: int) -> str:
        kernels = number_format.counted(count, "kernel")
        return (
            f"building {kernels} of the series from nothing, too: what a patch's makefile leaves in a build "
            "tree would be in every later kernel; --rebuild 0 leaves it out"
        )

    def _without_change(self, steps: tuple[Step, ...]) -> SeriesResult:
        """The result where no patch makes another image: nothing is measured."""
        return SeriesResult(
            self.series,
            self.plain,
            self.measurement,
            steps,
            Selection(()),
            bool(self.measurement.workloads),
            notes=(*self.notes, *held_notes(steps)),
        )

    def _coverage(self, base: Kernel, changed: Sequence[str]) -> Coverage:
        if self.measurement.workloads or not changed:
            return Coverage()
        self.tell(f"base: what {len(self.candidates)} workloads execute")
        return coverage(base, self.candidates, counted_by_function(self.measurement), self.runs)

    def _toured(self, base: Kernel, count: int) -> tuple[tuple[WorkloadUse, Profile], ...]:
        """What tours execute; nothing where there are none here."""
        try:
            uses = tuple(map(tour, self.tours))
        except WorkloadError as error:
            self.tell(f"base: no tours of the kernel, for what no workload runs: {error.message}")
            return ()
        if uses:
            nowhere = number_format.counted(count, "function")
            self.tell(f"base: {nowhere} ran nowhere: what {len(uses)} tours of the kernel execute")
        return coverage(base, uses, counted_by_function(self.measurement), self.runs).profiles

    def _uses(self, selection: Selection, coverage: Coverage) -> tuple[WorkloadUse, ...]:
        """Those that were chosen, and the null control; without profiles, all that run."""
        if coverage.profiles:
            uses = [choice.use for choice in selection.chosen]
        else:
            uses = [candidate for candidate in self.candidates if candidate.label not in coverage.failed]
        return tuple({use.label: use for use in (*self.first, *uses, NULL_CONTROL)}.values())


@dataclass(frozen=True)
class BuiltSeries:
    """A series before it is measured."""

    steps: tuple[Step, ...]
    again: tuple[int, ...]
    """As in `SeriesResult.built_again`."""
    coverage: Coverage = field(default_factory=Coverage)
    selection: Selection = field(default_factory=lambda: Selection(()))
    uses: tuple[WorkloadUse, ...] = ()
    """The workloads that are measured; none where no patch makes another image."""


def side_by_side(runs: Sequence[SeriesRun]) -> list[tuple[SeriesResult, tuple[Alone, ...]]]:
    """The same series in several configurations, all measured in the same workloads: those that were chosen
    in any of them. Raises as `SeriesRun.run_all`.
    """
    built = []
    for series_run in runs:
        series_run.tell(f"in the configuration {series_run.plain.config}")
        built.append(series_run.built())
    uses = tuple({use.label: use for series in built for use in series.uses}.values())
    return [series_run.measured(series, uses) for series_run, series in zip(runs, built, strict=True)]


def held_notes(steps: Sequence[Step]) -> tuple[str, ...]:
    """Which options of the configuration the base's kernel has not, although nothing holds them back."""
    base = steps[0].kernel
    if base is None or not base.origin.not_held:
        return ()
    return (f"options of the configuration that did not hold: {options_named(base.origin.not_held)}",)


def _about() -> str:
    """`, about 9 min 3 s by earlier builds here`; empty where none was measured."""
    seconds = whole_build_seconds()
    return f", about {number_format.duration(seconds)} by earlier builds here" if seconds else ""


def rebuilt(steps: Sequence[Step], every: int) -> list[Step]:
    """The steps that are built from nothing too: of those of strangers' code every so many, and the last."""
    strange = [
        step
        for step in steps
        if step.state is StepState.BUILT and step.build is not None and step.build.domain != OWN
    ]
    if not every or not strange:
        return []
    return [step for place, step in enumerate(strange, start=1) if place % every == 0 or step is strange[-1]]


@dataclass
class _Comparing:
    """Measures the steps, and compares each with the one before."""

    series_run: SeriesRun
    measurement: Measurement
    steps: tuple[Step, ...]
    selection: Selection
    coverage: Coverage
    _executed: set[str] = field(default_factory=set)
    _not_told: set[str] = field(default_factory=set)
    _counted: bool = False
    _not_on_several: list[str] = field(default_factory=list)
    """Why cells that rest on locks were not measured on several CPUs."""

    def result(self) -> SeriesResult:
        names = ", ".join(workload.label for workload in self.measurement.workloads)
        self.series_run.tell(f"measuring in {names}")
        ran = {use.label for use in self.measurement.workloads}
        for use, profile in self.coverage.profiles:
            if use.label in ran and self.steps[0].kernel:
                self._execute(profile, self.steps[0].kernel)
        records = [(step, self._record(step)) for step in measured(self.steps)]
        problems = {step.number: why for step, record in records if (why := problem_of(record))}
        if records[0][0].number in problems:
            raise SeriesError(
                f"The workloads do not run on the base: {problems[0]}.",
                hint="--workload names others; ktrial workload list shows them",
            )
        complete = [pair for pair in records if pair[0].number not in problems]
        limits = self.series_run.limits(self.measurement.workloads)
        cells = [
            cell
            for before, after in pairwise(complete)
            for cell in self._cells(before, after, after[0].number, limits)
        ]
        totals = self._cells(complete[0], complete[-1], 0, limits) if len(complete) > 1 else []
        return SeriesResult(
            self.series_run.series,
            self.series_run.plain,
            self.measurement,
            self.steps,
            self.selection,
            bool(self.series_run.measurement.workloads),
            tuple(cells),
            tuple(totals),
            frozenset(self._executed),
            tuple(sorted(self._not_told)),
            self._counted,
            tuple(limits.items()),
            (
                *self.series_run.notes,
                *held_notes(self.steps),
                *(f"patch {number} was not measured: {why}" for number, why in problems.items()),
                *(f"{warning.text}: {warning.advice}" for warning in raised(limits)),
                *dict.fromkeys(self._not_on_several),
            ),
        )

    def against_base(self, step: Step) -> list[SeriesCell]:
        """The cells of a kernel against the base; none where a workload fails on it."""
        base = self.steps[0]
        records = [(one, self._record(one)) for one in (base, step)]
        if problem_of(records[1][1]):
            return []
        return self._cells(
            records[0], records[1], step.number, self.series_run.limits(self.measurement.workloads)
        )

    def _record(self, step: Step) -> StudyRecord:
        assert step.kernel is not None, "only such steps are measured"
        if step.patch:
            self.series_run.tell(f"{step.number}/{len(self.steps) - 1} {step.patch.subject}: measuring")
        else:
            self.series_run.tell("base: measuring")
        record = trials_of(step.kernel, self.measurement, self.series_run.runs)
        fault_point("series.step_measured")
        for use in self.measurement.workloads:
            if profile := profile_in(record, use.label, self.series_run.runs):
                self._execute(profile, step.kernel)
        return record

    def _execute(self, profile: Profile, kernel: Kernel) -> None:
        self._counted = True
        copies = self._copies(kernel)
        self._executed.update(executed_in(profile, self._telling, copies))
        self._not_told.update(not_told_apart(profile, copies))

    @cached_property
    def _telling(self) -> frozenset[str]:
        return frozenset((*self.selection.changed, *self.selection.readers))

    def _copies(self, kernel: Kernel) -> Copies:
        """Which functions of the kernel share names that this is about."""
        if kernel.digest not in self._copies_in:
            self._copies_in[kernel.digest] = copies_in(kernel, shared_in(self._telling))
        return self._copies_in[kernel.digest]

    @cached_property
    def _copies_in(self) -> dict[str, Copies]:
        return {}

    def _cells(
        self, before: tuple[Step, StudyRecord], after: tuple[Step, StudyRecord], number: int, limits: Limits
    ) -> list[SeriesCell]:
        cells = (self._cell(use, before, after, number, limits) for use in self.measurement.workloads)
        return [
            self._routed(cell, use, (before[0], after[0]), limits)
            for use, cell in zip(self.measurement.workloads, cells, strict=True)
        ]

    def _routed(
        self, cell: SeriesCell, use: WorkloadUse, steps: tuple[Step, Step], limits: Limits
    ) -> SeriesCell:
        """The cell, measured on several CPUs as well where one CPU does not decide it."""
        route = self.series_run.route
        if not needs_several(cell, route):
            return cell
        where = f"patch {cell.number}" if cell.number else "base to tip"
        self.series_run.tell(f"{where}: measuring {use.label} on {ROUTE_CPUS} CPUs")
        contended = on_several(self.measurement, (use,))
        try:
            before, after = (
                trials_of(step.kernel, contended, self.series_run.runs) for step in steps if step.kernel
            )
            if problem := problem_of(before) or problem_of(after):
                raise SeriesError(f"{where}: {problem}", hint="what is said there is of one CPU")
        except (MachineError, AnalysisError, SeriesError, TrialsNotMeasured) as error:
            if route:
                raise
            note = not_on_several([use.label], error)
            self._not_on_several.append(f"{note.text}: {note.advice}")
            return cell
        labels = _labels(*steps)
        rows = rows_of(use, limits.get(use.label, DEFAULT_LIMIT), labels, before, after)
        return replace(cell, on_several=tuple(rows), cpus=ROUTE_CPUS)

    def _cell(
        self,
        use: WorkloadUse,
        before: tuple[Step, StudyRecord],
        after: tuple[Step, StudyRecord],
        number: int,
        limits: Limits,
    ) -> SeriesCell:
        labels = _labels(before[0], after[0])
        rows = rows_of(use, limits.get(use.label, DEFAULT_LIMIT), labels, before[1], after[1])
        old, new = (profile_in(record, use.label, self.series_run.runs) for record in (before[1], after[1]))
        explanation = None
        if old and new:
            values = [Fraction(profile.region.instructions, profile.operations) for profile in (old, new)]
            if values[0] != values[1] and before[0].kernel and after[0].kernel:
                files = [function_files(kernel) for kernel in (before[0].kernel, after[0].kernel)]
                explanation = explain(old, new, *files)
        else:
            values = [_value(record, use.label) for record in (before[1], after[1])]
        changed = after[0].each_function if number else self.selection.changed
        data = after[0].data if number else [name for step in self.steps for name in step.data]
        sides = [
            (profile, self._copies(step.kernel))
            for profile, (step, _) in zip((old, new), (before, after), strict=True)
            if profile and step.kernel
        ]
        idle = bool(old and new) and not data and nothing_ran(changed, sides)
        names = tuple(dict.fromkeys(map(plain_name, changed)))
        cell = SeriesCell(
            number, use.label, values[0], values[1], tuple(rows), explanation, names, is_idle=idle
        )
        return replace(cell, profiles=(old, new)) if old and new and cell.is_told else cell


def _value(record: StudyRecord, label: str) -> Fraction:
    """The workload's first metric under the perturbation that changes nothing."""
    first = min(record.trials, key=lambda trial: trial.planned.perturbation.number)
    return next((Fraction(sample.value) for sample in first.samples if sample.workload == label), Fraction(0))


def _labels(before: Step, after: Step) -> tuple[str, str]:
    return f"step {before.number}", f"step {after.number}"


def needs_several(cell: SeriesCell, route: bool | None) -> bool:
    """Whether the cell is measured on several CPUs, too: where that is asked for (`route`), and, unless it is
    refused, where there is a difference, the patch's code ran, and it rests on functions that lock memory.
    """
    if route is not None:
        return route
    return cell.is_told and cell.rests_on_locks and not cell.is_idle


# The numbers of a series: the profiles of its base, whether a kernel boots, and the trials of each step.

NAME, BOOT, COVERAGE = "series", "series-boot", "series-coverage"
"""What the studies of a series are called in the store."""
QUESTION = "What does this step of a series cost?"
_NULL_CONTROL = "nqueens"
NULL_CONTROL = WorkloadUse(name=_NULL_CONTROL)
"""It does no kernel work: where it changes, something other than the patch has changed."""


def boots_in(measurement: Measurement, runs: Runs) -> Boots:
    """What tells whether a kernel boots: one trial of the null control. Its boot serves later trials too."""
    once = replace(measurement, workloads=(NULL_CONTROL,), perturbations=1)

    def boots(kernel: Kernel) -> str:
        record = measure(BOOT, QUESTION, kernel, once, runs, BOOT)
        wrong = [trial for trial in failed(record) if trial.outcome is not Outcome.WORKLOAD_FAILED]
        return failures(wrong, record.planned) if wrong else ""

    return boots


def boots_when_measured(measurement: Measurement, runs: Runs) -> Boots:
    """The same of a kernel that is to be measured in workloads that are known already: by those trials, which
    it will have anyway. The null control is asked only where one of them fails.
    """
    alone = boots_in(measurement, runs)
    if not measurement.workloads:
        return alone

    def boots(kernel: Kernel) -> str:
        return alone(kernel) if failed(trials_of(kernel, measurement, runs)) else ""

    return boots


def coverage(base: Kernel, uses: Iterable[WorkloadUse], measurement: Measurement, runs: Runs) -> Coverage:
    """The profiles of these workloads on the base, one trial each, from the store where they are there."""
    profiles: list[tuple[WorkloadUse, Profile]] = []
    not_run: dict[str, str] = {}
    for use in uses:
        alone = replace(measurement, workloads=(use,), perturbations=1)
        record = measure(COVERAGE, QUESTION, base, alone, runs, COVERAGE)
        if problem := problem_of(record):
            not_run[use.label] = problem
        elif profile := profile_in(record, use.label, runs):
            profiles.append((use, profile))
    return Coverage(tuple(profiles), not_run)


def booted_in(kernels: Iterable[Kernel], measurement: Measurement, runs: Runs) -> frozenset[str] | None:
    """The functions that a boot of one of these executes, on one CPU or several; None where none tells."""
    machines = counted_by_function(measurement), on_several(measurement, ())
    booted: set[str] = set()
    for kernel, machine in product(dict.fromkeys(kernels), machines):
        with suppress(MachineError, GuestEnded):
            booted |= functions_in_boot(kernel, machine, runs)
    return frozenset(booted) or None


def find_telling(
    kernels: tuple[Kernel, Kernel],
    candidates: Iterable[WorkloadUse],
    tours: Iterable[str],
    measurement: Measurement,
    runs: Runs,
) -> tuple[WorkloadUse, ...]:
    """Of the candidates, else of tours: those in which functions run that differ between the two kernels, or
    that read data which does; few that cover them, those that cover most first.

    They run on the kernel that has fewer patches, which later questions share. Nothing where the two images
    cannot be compared. Raises as `session.run`.
    """
    code = code_difference(*kernels)
    if code is None:
        return ()
    base = min(kernels, key=lambda kernel: len(kernel.origin.build.patches) if kernel.origin.build else 0)
    counted = counted_by_function(measurement)
    copies = copies_in(base, shared_in((*code.functions, *code.readers)))
    for uses in (tuple(candidates), tuple(map(tour, tours))):
        profiles = coverage(base, uses, counted, runs).profiles
        selection = selected(code.functions, profiles, readers=code.readers, copies=copies)
        if selection.chosen:
            most = sorted(selection.chosen, key=lambda choice: (-len(choice.functions), -choice.share))
            return tuple(choice.use for choice in most)
    return ()


def counted_by_function(measurement: Measurement) -> Measurement:
    """The same on the machine on which trials have profiles: one CPU, whatever the steps are measured on."""
    plain = {"kind": "exact", "cpus": 1, "model": None}
    return replace(measurement, settings=measurement.settings.model_copy(update=plain))


def profile_in(record: StudyRecord, label: str, runs: Runs) -> Profile | None:
    """The profile of a workload in a study of one kernel: that of the first perturbation, which changes
    nothing. Raises SeriesError where it and the workload's sample cannot be of one measurement.
    """
    if not record.trials:
        return None
    profile = profile_of(runs.store, record, record.trials[0].planned.treatment, label)
    if profile and (why := profile.contradiction(_counted_median(record, label))):
        raise SeriesError(
            f"The stored trial of {label} on {record.trials[0].provenance.kernel} contradicts itself: {why}.",
            hint="ktrial store verify tells what else is damaged; in a new store (--store FILE) all is "
            "measured again",
        )
    return profile


def _counted_median(record: StudyRecord, label: str) -> float | None:
    """The workload's own metric in the trial whose profile is read; None where it counts no instructions."""
    first = min(record.trials, key=lambda trial: trial.planned.perturbation.number)
    own = next((sample for sample in first.samples if sample.workload == label), None)
    return own.value if own and own.unit.startswith("instructions") else None


def trials_of(kernel: Kernel, measurement: Measurement, runs: Runs) -> StudyRecord:
    """The trials of one step's kernel, in the store; run where they are not there."""
    return measure(NAME, QUESTION, kernel, measurement, runs, NAME)


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
        among = {(cell.number, cell.workload): cell for cell in cells}
        built = (step for step in steps if step.patch is not None and step.state is StepState.BUILT)
        return tuple(self._alone(cell, among) for cell in built)

    def _alone(self, step: Step, among: dict[tuple[int, str], SeriesCell]) -> Alone:
        assert step.patch is not None, "the base is none of them"
        request = self.source(step.patch)
        try:
            kernel = self.build(request, self.progress)
        except HOST_PROBLEMS:
            raise
        except (PatchNotApplied, BadPatch) as error:
            return Alone(step.number, f"{StepState.NOT_APPLIED.value} alone: {error.problem}")
        except KernelError as error:
            return Alone(step.number, f"{StepState.NOT_BUILT.value} alone: {error.problem or error.message}")
        if why := self.boots(kernel):
            return Alone(step.number, f"{StepState.NOT_BOOTED.value} alone: {why}")
        cells = self.measured(replace(step, kernel=kernel, build=request))
        dependent = tuple(
            cell.workload
            for cell in cells
            if (cell_there := among.get((step.number, cell.workload))) and differs(cell, cell_there)
        )
        return Alone(step.number, cells=tuple(cells), depends=dependent)

    def source(self, patch: SeriesPatch) -> Build:
        """The base with this patch alone."""
        if patch.patch is not None:
            added = patch.patch
        else:
            directory = Path(self.series.base.removeprefix("git:").rpartition("@")[0])
            added = as_patch(directory, patch)
        patches = (*self.plain.patches, added)
        return self.plain.model_copy(update={"patches": patches, "series": self.series.domain(self.plain)})


def differs(alone: SeriesCell, among: SeriesCell) -> bool:
    """Whether a patch costs something else alone: by more than a change that means nothing moves a number."""
    return abs(alone.difference - among.difference) > Fraction(FLOOR) * max(alone.before, among.before)
