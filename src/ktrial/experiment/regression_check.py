"""Is a kernel within the limit of a baseline? Measured in exact mode, decided by the exact verdict's rule.

Beyond the limit means: the change for the worse is larger than the limit throughout its interval over the
perturbations (`ktrial.stats.verdict_rules`). Where the limit lies inside that interval, nothing is
decided. A change for the better is always within.
"""

import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ktrial.analysis.attribution.decomposition import explain
from ktrial.analysis.comparability import kernel_difference, machine_difference, mode_difference
from ktrial.analysis.errors import AnalysisError, AnalysisUsageError
from ktrial.analysis.history.regressions import accepted_ratio, harm, regressions
from ktrial.analysis.history.series import history
from ktrial.analysis.history.stored_numbers import stored_numbers
from ktrial.analysis.kernel_confounds import uncontended, unreached
from ktrial.analysis.kernel_diff import difference_of, with_reach
from ktrial.analysis.result import load_record, result
from ktrial.analysis.store_queries import profile_of
from ktrial.errors import KtrialError
from ktrial.experiment.errors import TrialsNotMeasured
from ktrial.experiment.provenance import patch_warnings
from ktrial.experiment.single_kernel import (
    FACTOR,
    Runs,
    failed,
    is_complete,
    kernel_factor,
    measure,
    problem_of,
)
from ktrial.format.number_format import change, percentage
from ktrial.kernels import kernel_registry
from ktrial.kernels.errors import ImageError
from ktrial.kernels.image_difference import same_image
from ktrial.kernels.providers import full_name
from ktrial.kernels.symbols import function_files
from ktrial.machines.errors import MachineError
from ktrial.model.attribution import rests_on_locks
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.design import Perturbation, Treatment
from ktrial.model.kernel import Kernel, Reach
from ktrial.model.profile import CycleModel, FunctionFiles, Profile
from ktrial.model.regression import MeasuredVersion, TrackedRegression
from ktrial.model.regression_check import CheckedMetric, Decision, RegressionCheck
from ktrial.model.study import Measurement, StudyRecord
from ktrial.model.trial import Provenance, Trial
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import STRING_BYTES, CountedBy, Direction, Mode, Sample, WorkloadUse
from ktrial.stats.verdict_rules import held_together
from ktrial.store.errors import StoreDamaged
from ktrial.store.store import Store
from ktrial.store.study_rows import StoredStudy
from ktrial.workloads.later_start import begins_later

DEFAULT_LIMIT = 0.01
FLOOR = 0.003
"""Irrelevant changes (the initial RAM disk's size, the guest's memory, the command line's length) moved no
median but the threaded hackbench's by more than 0.31 % (docs/check.md). A smaller limit is raised to
this one: below it a change proves nothing."""
_INSTRUCTIONS = "instructions"
"""The unit of what counts instructions."""


# Baselines: what a kernel was measured to cost, kept in the store under a name, with its provenance.

CHECK, BASELINE = "check", "baseline"
"""The commands that make such studies for themselves."""
QUESTION = "What does this kernel cost in a check?"
"""Of what is measured for a check, the kernel under test and a kernel as baseline: each content once."""
HOST = "host"
"""The one kernel's name that looks like a baseline's."""
PREFIX = "baseline:"
"""What a baseline's study is called, before its name; a study file cannot choose such a name."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def baseline_name(study: str) -> str:
    """The name of the baseline that a study of this name is; empty where it is none."""
    name = study.removeprefix(PREFIX)
    return name if study == PREFIX + name and _NAME.fullmatch(name) else ""


def saved(store: Store) -> tuple[StoredStudy, ...]:
    """Every baseline's study, by name: the newest one that is whole (an interrupted one is not)."""
    readable, _ = store.readable_studies()
    complete = {
        name: study for study in readable if (name := baseline_name(study.study.name)) and is_complete(study)
    }
    return tuple(complete[name] for name in sorted(complete))


@dataclass(frozen=True)
class Baseline:
    """What a kernel under test is compared with."""

    label: str
    """A saved baseline's name, or the kernel's."""
    saved: bool
    record: StudyRecord
    origin: Kernel | None = None
    """The kernel, where it is not a saved one: it can be measured again."""

    @property
    def kernel(self) -> str:
        """The name of the kernel that was measured."""
        return str(self.record.study.factors[0].baseline)

    @property
    def measurement(self) -> Measurement:
        """How it was measured, for another kernel to be measured in the same way."""
        study = self.record.study
        return Measurement(study.workloads, study.machine, study.perturbations)


def check(
    kernel: Kernel, baseline: Baseline, measurement: Measurement, limits: Mapping[str, float], runs: Runs
) -> RegressionCheck:
    """Measure the kernel, and compare it with the baseline.

    `limits`: the label of a workload's use → the largest change for the worse that is allowed.
    Raises AnalysisError, and what `session.run` raises.
    """
    baseline, tested = _comparable(kernel, baseline, measurement, runs)
    # What the two are called beside each other: never the same.
    before = f"baseline {baseline.label}" if baseline.saved else baseline.label
    labels = (before, kernel.name if kernel.name != before else f"{kernel.name} (now)")
    version = kernel.origin.version if kernel.origin.provider == "source" else ""
    release = f"{kernel.release}, {version}" if version else kernel.release
    about = (kernel.name, release, labels[0])
    warnings = (*patch_warnings(kernel), *raised(limits))
    same = {trial.provenance.kernel_digest for trial in baseline.record.trials} == {kernel.digest}
    same = same or bool(baseline.origin and same_image(baseline.origin, kernel))
    if same:
        warning = DataWarning(
            kind=WarningKind.SAME_IMAGE,
            text=f"{kernel.name} is the same image as the baseline's: there is nothing to compare",
            advice="if a change was to be checked, it is not in this kernel: look at its source and options",
        )
        warnings = (warning, *warnings)
    if problem := problem_of(tested):
        console = failed(tested)[0].console
        return RegressionCheck(*about, Decision.NOT_RUN, problem=problem, console=console, warnings=warnings)
    rows = tuple(
        row
        for use in measurement.workloads
        for row in rows_of(use, limits.get(use.label, DEFAULT_LIMIT), labels, baseline.record, tested)
    )
    kernels = (_measured(baseline.record, baseline.kernel, ""), _measured(tested, kernel.name, version))
    accepted = accepted_in(runs.store, rows)
    rows = tuple(with_accepted(row, accepted, *kernels) for row in rows)
    rows = tuple(explained(row, baseline.record, tested, runs.store) for row in rows)
    reach = None if same else _reach(baseline, kernel, measurement, tested, runs.store)
    if reach:
        warnings = (*warnings, *unreached(reach, subject=f"the step to {kernel.name}"))
        warnings = (*warnings, *uncontended(reach, _that_find_nothing(rows)))
    rows = tuple(judged_by_reach(row, reach, same=same) for row in rows)
    return RegressionCheck(
        *about,
        worst(row.decision for row in rows),
        rows,
        warnings=warnings,
        kernels=kernels,
        study_id=tested.id,
        reach=reach,
    )


def _that_find_nothing(rows: Iterable[CheckedMetric]) -> list[str]:
    """Workloads, by their labels, none of whose metrics differs."""
    differing = {row.comparison.workload for row in rows if row.comparison.verdict not in _NO_DIFFERENCE}
    labels = dict.fromkeys(row.comparison.workload for row in rows)
    return [label for label in labels if label not in differing]


_NO_DIFFERENCE = frozenset({Verdict.EQUIVALENT, Verdict.IDENTICAL})


def judged_by_reach(row: CheckedMetric, reach: Reach | None, *, same: bool) -> CheckedMetric:
    """The row, where it is within its limit, with what that is worth: nothing if no code ran that differs.

    `same`: the two images have the same code. A row that is beyond its limit stays so, whatever moved it.
    """
    if row.decision is not Decision.WITHIN:
        return row
    if same or (reach and not (reach.functions or reach.data)):
        return replace(row, decision=Decision.SAME_CODE)
    if reach and reach.functions and row.comparison.workload in reach.not_run:
        return replace(row, decision=Decision.NOT_EXECUTED)
    return row


def _reach(
    baseline: Baseline, kernel: Kernel, measurement: Measurement, tested: StudyRecord, store: Store
) -> Reach | None:
    """Whether code ran that differs between two builds of one source; None where nothing tells that."""
    if not (baseline.origin and baseline.origin.origin.build and kernel.origin.build):
        return None
    records = (baseline.record, tested)
    profiles: dict[str, tuple[list[Profile], list[Profile]]] = {}
    for use in measurement.workloads:
        before, after = (
            profile_of(store, record, record.trials[0].planned.treatment, use.label) for record in records
        )
        profiles[use.label] = ([before] if before else [], [after] if after else [])
    difference = difference_of(baseline.origin, kernel)
    return with_reach(difference, baseline.origin, kernel, profiles).reach


def _measured(record: StudyRecord, name: str, commit: str) -> MeasuredVersion:
    provenance = record.trials[0].provenance
    release = f"{provenance.kernel_release}, {commit}" if commit else provenance.kernel_release
    return MeasuredVersion(name=name, release=release, digest=provenance.kernel_digest)


def accepted_in(store: Store, rows: Iterable[CheckedMetric]) -> list[TrackedRegression]:
    """What was accepted of the metrics that are beyond their limits, or may be. Raises StoreError."""
    stored = store.regressions()
    labels = {row.comparison.workload for row in rows if row.decision in _MAY_BE_ACCEPTED}
    accepted = {old.workload for _, old in stored if old.acceptance} & labels
    if not accepted:
        return []
    numbers = stored_numbers(store, leave_out=True)
    return regressions([history(numbers, label) for label in sorted(accepted)], stored)


_MAY_BE_ACCEPTED = frozenset({Decision.BEYOND, Decision.UNDECIDED})


def with_accepted(
    row: CheckedMetric,
    tracked: Sequence[TrackedRegression],
    since: MeasuredVersion,
    version: MeasuredVersion,
) -> CheckedMetric:
    """The row, decided by its limit on top of what was accepted between the two kernels."""
    comparison = row.comparison
    if row.decision not in _MAY_BE_ACCEPTED:
        return row
    allowed, accepted = accepted_ratio(tracked, comparison, since, version)
    ends = [harm(end, comparison.direction) for end in (*comparison.reach, comparison.ratio)]
    if (comparison.low is None) != (comparison.high is None):
        ends.append(math.inf)  # the end that is open may lie anywhere
    shares = [end / allowed for end in ends if end is not None]
    if not (accepted and shares):
        return row
    reasons = "; ".join(
        f"{change(regression.acceptance.ratio)} was accepted by {regression.acceptance.by or 'somebody'} "
        f"({regression.id}: {regression.acceptance.reason})"
        for regression in accepted
        if regression.acceptance
    )
    if max(shares) <= 1 + row.limit:
        return replace(row, decision=Decision.ACCEPTED, reason=reasons)
    if min(shares) > 1 + row.limit:
        return replace(row, decision=Decision.BEYOND, reason=f"{reasons}: this is more")
    return replace(row, decision=Decision.UNDECIDED, reason=f"{reasons}: this may be more")


def raised(limits: Mapping[str, float]) -> tuple[DataWarning, ...]:
    """What is to be said of limits below the floor, each by the label of a workload's use."""
    small = {label: limit for label, limit in limits.items() if limit < FLOOR}
    if not small:
        return ()
    limits_shown = ", ".join(f"+{percentage(limit)} for {label}" for label, limit in small.items())
    return (
        DataWarning(
            kind=WarningKind.LIMIT_RAISED,
            text=f"a limit below +{percentage(FLOOR)} is raised to that: {limits_shown}",
            advice="changes without meaning, such as the length of a command line, move numbers by as much",
        ),
    )


def worst(decisions: Iterable[Decision]) -> Decision:
    """What decisions make together: beyond, then what could not be run or decided, then accepted, within, and
    last what says nothing about the change.
    """
    present = set(decisions)
    return next((decision for decision in _WORST_FIRST if decision in present), Decision.WITHIN)


_WORST_FIRST = (
    Decision.BEYOND,
    Decision.NOT_RUN,
    Decision.UNDECIDED,
    Decision.ACCEPTED,
    Decision.WITHIN,
    Decision.NOT_EXECUTED,
    Decision.SAME_CODE,
)


def _comparable(
    kernel: Kernel, baseline: Baseline, measurement: Measurement, runs: Runs
) -> tuple[Baseline, StudyRecord]:
    """Both measured, on one machine. What the store has from another machine is measured anew."""

    def tested() -> StudyRecord:
        try:
            return measure(CHECK, QUESTION, kernel, measurement, runs, CHECK)
        except TrialsNotMeasured as error:
            raise AnalysisError(
                f"The machine failed while it ran {kernel.name}: {error.problem}.",
                hint="this says nothing about the kernel; ktrial doctor looks at the machine",
            ) from error

    measured = tested()
    if _difference(baseline, measured):
        stored, removed = runs.store.regressions(), {measured.id}
        if baseline.origin:
            removed.add(baseline.record.id)
            runs.store.delete(baseline.record.id)
            baseline = of_kernel(baseline.origin, measurement, runs)
        if measured.id != baseline.record.id:
            runs.store.delete(measured.id)
            measured = tested()
        for number, regression in stored:  # what was accepted stays, whatever the machine
            if number in removed:
                runs.store.add_regression(measured.id, regression)
    if problem := _difference(baseline, measured):
        names = " ".join(f"--workload '{use.label}'" for use in measurement.workloads)
        raise AnalysisError(
            f"Baseline {baseline.label} and {kernel.name} must not be compared: {problem}.",
            hint=(
                "save it anew: ktrial check baseline save "
                f"{baseline.label} --kernel {baseline.kernel} {names}"
            ),
        )
    return baseline, measured


def _difference(baseline: Baseline, tested: StudyRecord) -> str:
    """Why the two must not be compared; empty where they may, or where there is nothing to compare."""
    sides = (baseline.record.trials, tested.trials)
    modes: dict[tuple[str, str], set[Mode]] = {}
    for sample in (sample for side in sides for trial in side for sample in trial.samples):
        modes.setdefault((sample.workload, sample.metric), set()).add(sample.mode)
    return (
        kernel_difference(baseline.record.trials)
        or machine_difference(*sides)
        or next(filter(None, map(mode_difference, modes.values())), "")
    )


def rows_of(
    use: WorkloadUse, limit: float, labels: tuple[str, str], baseline: StudyRecord, tested: StudyRecord
) -> list[CheckedMetric]:
    """One row a metric of the workload, by the same rule as in any study of two kernels."""
    margin = max(limit, FLOOR)
    study = tested.study.model_copy(
        update={"factors": (kernel_factor(*labels),), "workloads": (use,), "margin": margin}
    )
    before = _relabelled(baseline.trials, labels[0])
    after = _relabelled(tested.trials, labels[1])
    compared = result(study, (*before, *after)).comparisons
    rows = [
        decided_by_weight(comparison, margin, before, after)
        if comparison.metric == STRING_BYTES.name
        else decided(comparison, margin)
        for comparison in compared
    ]
    return [replace(row, secondary=place > 0) for place, row in enumerate(rows)]


def _relabelled(trials: Iterable[Trial], label: str) -> list[Trial]:
    treatment = Treatment(levels={FACTOR: label})
    return [
        trial.model_copy(update={"planned": trial.planned.model_copy(update={"treatment": treatment})})
        for trial in trials
    ]


def decided(comparison: Comparison, limit: float) -> CheckedMetric:
    """The row of a comparison whose margin was the limit: only the side of the worse counts."""
    if comparison.verdict is Verdict.WORSE:
        return CheckedMetric(comparison, limit, Decision.BEYOND)
    # The far end of the interval on the side of the worse, as a ratio above 1.
    (low, high), harm = comparison.reach, math.inf
    if low is not None and high is not None:
        harm = high if comparison.direction is Direction.LOWER else 1 / low if low else math.inf
    if comparison.verdict in {Verdict.BETTER, Verdict.EQUIVALENT} or harm <= 1 + limit:
        return CheckedMetric(comparison, limit, Decision.WITHIN)
    return CheckedMetric(comparison, limit, Decision.UNDECIDED, comparison.reason or "the data do not decide")


def decided_by_weight(
    comparison: Comparison, limit: float, before: list[Trial], after: list[Trial]
) -> CheckedMetric:
    """Bytes weigh as in the cycle model (32 an instruction), against the baseline's instructions.

    Their own ratio says little: from 8 bytes to 16 is +100 %, and nothing beside 10000 instructions.
    """
    label = comparison.workload
    instructions = _values(before, label, lambda sample: sample.unit == _INSTRUCTIONS)
    below, above = (
        _values(side, label, lambda sample: sample.metric == STRING_BYTES.name) for side in (before, after)
    )
    if not (instructions and below and above):
        return CheckedMetric(
            comparison, limit, Decision.UNDECIDED, comparison.reason or "there are no numbers"
        )
    cost = CycleModel().string_byte
    more = [(after - before) * cost for before, after in held_together(below, above)]
    if min(more) > limit * max(instructions.values()):
        return CheckedMetric(comparison, limit, Decision.BEYOND)
    if max(more) <= limit * min(instructions.values()):
        return CheckedMetric(comparison, limit, Decision.WITHIN)
    return CheckedMetric(
        comparison, limit, Decision.UNDECIDED, "the limit lies inside the spread over the perturbations"
    )


def _values(
    trials: list[Trial], workload: str, chosen: Callable[[Sample], bool]
) -> dict[Perturbation, float]:
    return {
        trial.planned.perturbation: sample.value
        for trial in trials
        for sample in trial.samples
        if sample.workload == workload and chosen(sample)
    }


# The route by evidence: what one CPU cannot decide is measured on several.

ROUTE_CPUS = 4
"""Of a check on several CPUs: few enough to simulate, and enough to wait for each other."""
ON_SEVERAL = "exact-parallel"
"""The machine of that check."""
_TASKS = "tasks"
"""The parameter of workloads whose tasks work side by side."""


def routed(
    checked: RegressionCheck,
    kernel: Kernel,
    older: Kernel,
    measurement: Measurement,
    limits: Mapping[str, float],
    runs: Runs,
    *,
    whole: bool,
) -> RegressionCheck:
    """The check on one CPU with the same on several, in simulated time, where a workload of several tasks has
    one for each CPU.

    `whole`: of all workloads, and raises as `check` does; else of those whose difference rests on functions
    that lock memory, and those of several tasks that find none though code ran that differs, on one CPU or on
    several: what tasks cost each other no single CPU shows. Then a machine that is not to be had here is a
    note.
    """
    if checked.decision is Decision.NOT_RUN:
        return checked
    resting = {row.comparison.workload for row in checked.rows if rests_on_locks(row.locking_share)}
    counted = [use for use in measurement.workloads if not (use.command and begins_later(use.command))]
    resting |= {use.label for use in counted if _may_contend(use, checked, runs)}
    silent = tuple(use for use in counted if _is_silent(use, checked, runs))
    try:
        reach = _reach_on_several(kernel, older, measurement, silent, runs)
        resting |= set(reach.ran if reach else ())
        uses = tuple(use for use in counted if whole or use.label in resting)
        if not uses:
            return checked
        contended = on_several(measurement, uses)
        several = check(kernel, of_kernel(older, contended, runs), contended, limits, runs)
    except (MachineError, AnalysisError, TrialsNotMeasured) as error:
        if whole:
            raise
        note = not_on_several(resting or {use.label for use in silent}, error)
        return replace(checked, warnings=(*checked.warnings, note))
    if rows := tuple(judged_by_reach(row, reach, same=False) for row in several.rows):
        several = replace(several, rows=rows, decision=worst(row.decision for row in rows))
    warnings = tuple(_without_contended(checked, several))
    if reach and reach.ran:
        warnings = tuple(entry for entry in warnings if entry.kind is not WarningKind.CHANGE_NOT_RUN)
    return replace(checked, warnings=warnings, on_several=replace(several, cpus=ROUTE_CPUS))


def _without_contended(checked: RegressionCheck, several: RegressionCheck) -> Iterator[DataWarning]:
    """The warnings, without that of what several CPUs are now known to have of the change."""
    nothing = set(_that_find_nothing(checked.rows)) & set(_that_find_nothing(several.rows))
    before, after = (
        list(uncontended(checked.reach, labels)) if checked.reach else []
        for labels in (_that_find_nothing(checked.rows), nothing)
    )
    yield from (warning for warning in checked.warnings if warning not in before or warning in after)


def _reach_on_several(
    kernel: Kernel, older: Kernel, measurement: Measurement, uses: tuple[WorkloadUse, ...], runs: Runs
) -> Reach | None:
    """Whether code that differs runs in these on several CPUs, where one runs none of it: tasks on other CPUs
    are interrupted, waited for and woken. Counted by function, once. None where there are no such workloads.
    """
    if not uses:
        return None
    once = replace(on_several(measurement, uses), perturbations=1)
    counted = replace(once, settings=once.settings.model_copy(update={"count": CountedBy.PLUGIN}))
    tested = measure(CHECK, QUESTION, kernel, counted, runs, CHECK)
    return _reach(of_kernel(older, counted, runs), kernel, counted, tested, runs.store)


def on_several(measurement: Measurement, uses: tuple[WorkloadUse, ...]) -> Measurement:
    """How these workloads are measured on several CPUs, all else as it is."""
    settings = measurement.settings.model_copy(update={"kind": ON_SEVERAL, "cpus": ROUTE_CPUS, "model": None})
    return replace(measurement, settings=settings, workloads=uses)


def not_on_several(labels: Iterable[str], error: KtrialError) -> DataWarning:
    """What is to be said of workloads that rest on locks where the machine of several CPUs failed."""
    problem = error.problem if isinstance(error, TrialsNotMeasured) else error.message
    return DataWarning(
        kind=WarningKind.SEVERAL_CPUS,
        text=f"{', '.join(sorted(labels))}: not measured on several CPUs: {problem.rstrip('.')}",
        advice=error.advice or "what is said here is of one CPU",
    )


def _may_contend(use: WorkloadUse, checked: RegressionCheck, runs: Runs) -> bool:
    """Whether tasks that work side by side ran code that differs, and one CPU finds no difference."""
    ran = use.label in checked.reached and use.label in _that_find_nothing(checked.rows)
    return ran and _has_tasks(use, runs)


def _is_silent(use: WorkloadUse, checked: RegressionCheck, runs: Runs) -> bool:
    """Whether tasks that work side by side ran no code that differs on one CPU."""
    decisions = {row.decision for row in checked.rows if row.comparison.workload == use.label}
    return decisions == {Decision.NOT_EXECUTED} and _has_tasks(use, runs)


def _has_tasks(use: WorkloadUse, runs: Runs) -> bool:
    parameters = runs.resources.workload(use).description.parameters
    return any(parameter.name == _TASKS for parameter in parameters)


def explained(row: CheckedMetric, baseline: StudyRecord, tested: StudyRecord, store: Store) -> CheckedMetric:
    """The row, with what its difference is made of, where it is beyond and the plugin counted both sides; how
    much of it locks memory is told of a change for the better, too.
    """
    changed = row.decision is Decision.BEYOND or row.comparison.verdict in {Verdict.BETTER, Verdict.WORSE}
    if not changed or row.comparison.mode is not Mode.EXACT_PLUGIN:
        return row
    before, after = (
        profile_of(store, record, record.trials[0].planned.treatment, row.comparison.workload)
        for record in (baseline, tested)
    )
    if not (before and after):
        return row
    old, new = (_function_files(record.trials[0].provenance) for record in (baseline, tested))
    explanation = explain(before, after, old, new)
    with_share = replace(row, locking_share=explanation.locking_share)
    if row.decision is not Decision.BEYOND:
        return with_share
    return replace(with_share, explanation=explanation, profiles=(before, after))


def _function_files(provenance: Provenance) -> FunctionFiles:
    """Where the kernel's functions are defined, which tells two of one name apart; empty where it is gone."""
    with suppress(KtrialError):
        kernel = kernel_registry.get(provenance.kernel)
        if kernel.digest == provenance.kernel_digest:
            return function_files(kernel)
    return FunctionFiles()


def save_baseline(name: str, kernel: Kernel, measurement: Measurement, runs: Runs) -> Baseline:
    """Measure the kernel now, and keep it under `name`; what had the name before goes when all is there.

    Raises AnalysisUsageError; AnalysisError where a trial failed, and what `session.run` raises: then what
    had the name before stays.
    """
    check_name(name)
    before = [study for study in runs.store.studies() if study.study.name == PREFIX + name]
    # To the microsecond: each time it is another study, so that nothing measured earlier is taken for it.
    question = f"Baseline {name}, saved {datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f} UTC."
    study_record = measure(PREFIX + name, question, kernel, measurement, runs, BASELINE)
    if problem := problem_of(study_record):
        runs.store.delete(study_record.id)
        raise _not_measured(name, problem)
    for old in before:
        runs.store.delete(old.id)
    return find_baseline(name, runs.store)


def kernel_named(name: str, runs: Runs) -> Kernel:
    """The kernel that is to be the baseline, not measured. Raises AnalysisError where its file is none."""
    try:
        return runs.kernel(name)
    except ImageError as error:
        raise _not_measured(name, error.message.rstrip(".")) from error


def of_kernel(kernel: Kernel, measurement: Measurement, runs: Runs) -> Baseline:
    """A kernel as baseline, measured now unless the store has it. Raises AnalysisError."""
    study_record = measure(CHECK, QUESTION, kernel, measurement, runs, CHECK)
    if problem := problem_of(study_record):
        raise _not_measured(kernel.name, problem)
    return Baseline(kernel.name, False, study_record, kernel)


def _not_measured(name: str, problem: str) -> AnalysisError:
    return AnalysisError(
        f"The baseline {name} could not be measured: {problem}.",
        hint="nothing is decided; take a baseline that boots and runs the workloads",
    )


def find_baseline(name: str, store: Store) -> Baseline:
    """The saved baseline of that name.

    Raises AnalysisUsageError; StoreDamaged where it is not what was stored.
    """
    by_name = {baseline_name(study.study.name): study for study in saved(store)}
    for number, damaged in _damaged(store):
        if damaged == name and (name not in by_name or by_name[name].id < number):
            store.find(number)
    if name in by_name:
        return Baseline(name, True, load_record(store, by_name[name].id))
    near = difflib.get_close_matches(name, by_name, n=1)
    similar = f" (did you mean {near[0]}?)" if near else ""
    raise AnalysisUsageError(
        f"There is no baseline {name} in store {store.name}{similar}, and no kernel of that name.",
        hint=(f"save one: ktrial check baseline save {name} 6.12 fork; or name a kernel, such as debian:6.1"),
    )


def all_baselines(store: Store) -> tuple[tuple[Baseline, ...], tuple[str, ...]]:
    """The saved baselines, by name, and the names of those that are not what was stored."""
    sound, damaged = [], {name for _, name in _damaged(store)}
    for name in {baseline_name(study.study.name) for study in saved(store)} | damaged:
        try:
            sound.append(find_baseline(name, store))
            damaged.discard(name)
        except StoreDamaged:
            damaged.add(name)
    return tuple(sorted(sound, key=lambda baseline: baseline.label)), tuple(sorted(damaged))


def _damaged(store: Store) -> list[tuple[int, str]]:
    """Numbers and names of baselines whose study is not what was stored."""
    _, damaged = store.readable_studies()
    return [(study.id, name) for study in damaged if (name := baseline_name(study.name))]


def remove_baseline(name: str, store: Store) -> None:
    """Take a saved baseline out of the store. Raises AnalysisUsageError."""
    try:
        baseline = find_baseline(name, store)
    except AnalysisUsageError as error:
        raise AnalysisUsageError(error.message, hint="ktrial check baseline list shows them") from None
    store.delete(baseline.record.id)


def check_name(name: str) -> None:
    """Raise AnalysisUsageError where the name could be taken for a kernel's, or is hard to type."""
    problem = ""
    if name == HOST:
        problem = "it is the name of the running kernel"
    elif full_name(name) != name:
        problem = f"it is the kernel {full_name(name)}"
    elif not _NAME.fullmatch(name):
        problem = "it has other characters, is empty or is too long"
    if problem:
        raise AnalysisUsageError(
            f"'{name}' cannot name a baseline: {problem}.",
            hint="use letters, digits, '.', '_' and '-': last-release, v6.12",
        )
