"""Explain a difference: two treatments' profiles, function by function, and all that differs around them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from ktrial import machines
from ktrial.analysis.attribution.conditions_diff import ProfiledArm, differences
from ktrial.analysis.attribution.decomposition import explain
from ktrial.analysis.attribution.function_matching import (
    FunctionMap,
    Functions,
    function_map,
    functions_of,
    map_of,
    together,
)
from ktrial.analysis.attribution.question import AttributionQuestion, question
from ktrial.analysis.errors import ExplanationError, NotCounted
from ktrial.analysis.store_queries import profile_of
from ktrial.errors import KtrialError
from ktrial.experiment.default_settings import default_values, kept_values
from ktrial.experiment.jobs import Job, jobs_of, obtained, system_of
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Resources, default_resources
from ktrial.kernels import Progress, kernel_registry, silent
from ktrial.kernels.errors import KernelError
from ktrial.kernels.symbols import function_files
from ktrial.machines import CountingMachine, Machine
from ktrial.model.attribution import FEWER_FUNCTIONS, Attribution, KernelValues
from ktrial.model.comparison import Comparison
from ktrial.model.design import FactorKind, PlannedTrial, Treatment
from ktrial.model.kernel import Kernel, KernelDifference
from ktrial.model.machine import Boot
from ktrial.model.profile import FunctionFiles, Profile
from ktrial.model.study import Study, StudyRecord, kernel_name, perturbation, treatments
from ktrial.model.trial import Outcome, Trial
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import BESIDE_THE_OWN, CountedBy
from ktrial.store.store import Store
from ktrial.studyfile.references import resolved
from ktrial.text_lines import lines_of

_INSTRUCTIONS = "instructions"
_COUNTED_ON = ("exact", "exact-parallel")
"""Machines that count by function."""


@dataclass(frozen=True)
class Guests:
    """What may be booted for an explanation, and by what."""

    machine: Machine | None = None
    """None: the study's own, where one is needed."""
    resources: Resources | None = None
    observer: Observer | None = None
    run: bool = True
    """False: nothing is booted and nothing is fetched. Profiles have to be in the store; settings that were
    never read are not compared."""
    values: bool = True
    """False: settings are not compared."""


# A study's kernels, and which function of one is which of another: found once, over all its workloads.


class StudyKernels:
    """The kernels of one stored study; each is looked for when it is first asked for, and kept."""

    def __init__(self, store: Store, record: StudyRecord) -> None:
        self._store, self._record = store, record
        self._made: dict[tuple[str, str, bool, bool], FunctionMap] = {}
        self._cached: dict[str, Kernel] = {}
        self._profiles: dict[tuple[str, str], Profile | None] = {}
        self._functions: dict[tuple[int, bool], tuple[Profile, Functions]] = {}
        self._sums: dict[tuple[int, ...], Functions] = {}
        self._systems: dict[tuple[str, str], Boot] = {}

    @cached_property
    def study(self) -> Study:
        """The study with a reference for each kernel and knob that it names."""
        return resolved(self._record.study)

    def cached(self, name: str) -> Kernel:
        """The kernel as it lies in the cache. Raises KernelError."""
        if name not in self._cached:
            self._cached[name] = kernel_registry.get(name)
        return self._cached[name]

    def profile(self, treatment: Treatment, workload: str) -> Profile | None:
        """The treatment's profile of the workload (`profile_of`), read once. Raises StoreError."""
        key = (treatment.key, workload)
        if key not in self._profiles:
            self._profiles[key] = profile_of(self._store, self._record, treatment, workload)
        return self._profiles[key]

    def functions(self, profile: Profile, files: FunctionFiles) -> Functions:
        """One of these profiles' functions, with their places in the tree of calls."""
        key = (id(profile), bool(files.functions))
        if key not in self._functions:
            self._functions[key] = profile, functions_of(profile, files, placed=True)
        return self._functions[key][1]

    def system(self, treatment: Treatment, kernel: Kernel, resources: Resources) -> Boot:
        """The system that the treatment boots. Raises KernelError, WorkloadError, MachineToolMissing."""
        key = (treatment.key, kernel.digest)
        if key not in self._systems:
            self._systems[key] = system_of(self.study, treatment, kernel, resources)
        return self._systems[key]

    def function_map(
        self, query: AttributionQuestion, files_before: FunctionFiles, files_after: FunctionFiles
    ) -> FunctionMap:
        """The map for the two treatments' kernels. Raises StoreError."""
        study = self._record.study
        old, new = (kernel_name(study, treatment) for treatment in (query.before, query.after))
        key = (old, new, bool(files_before.functions), bool(files_after.functions))
        if key not in self._made:
            pairs = list(self._pairs(old, new))
            self._made[key] = map_of(
                self._together([self.functions(before, files_before) for before, _ in pairs]),
                self._together([self.functions(after, files_after) for _, after in pairs]),
            )
        return self._made[key]

    def _together(self, workloads: Sequence[Functions]) -> Functions:
        """One kernel's functions in all workloads, summed once: the baseline's stand beside every other's."""
        key = tuple(map(id, workloads))
        if key not in self._sums:
            self._sums[key] = together(workloads)
        return self._sums[key]

    def _pairs(self, old: str, new: str) -> Iterator[tuple[Profile, Profile]]:
        """Each workload's two profiles, of all treatments of the two kernels that differ in nothing else."""
        study = self._record.study
        arms = treatments(study)
        pairs = list(
            product(
                [arm for arm in arms if kernel_name(study, arm) == old],
                [arm for arm in arms if kernel_name(study, arm) == new],
            )
        )
        alike = [pair for pair in pairs if _settings(study, pair[0]) == _settings(study, pair[1])]
        for use in study.workloads:
            for pair in alike or pairs:
                before, after = (self.profile(treatment, use.label) for treatment in pair)
                if before and after:
                    yield before, after


def explain_record(
    store: Store,
    record: StudyRecord,
    workload: str | None = None,
    before: str | None = None,
    after: str | None = None,
    guests: Guests = Guests(),
    kernels: StudyKernels | None = None,
) -> Attribution:
    """Explain the difference between two treatments of a study in the store.

    `workload`, `before` and `after` are what the user says, or None: see `question`. `kernels`: those of
    the study, where more than one of its differences is explained. Where one of the two profiles is not in
    the store, both are counted anew, as `guests` allows: numbers of two machines are not compared. Raises
    ExplanationError, KernelError, WorkloadError, MachineError, GuestEnded, StoreError.
    """
    query = question(record.study, workload, before, after)
    kernels = kernels or StudyKernels(store, record)
    old, new = (kernels.profile(treatment, query.workload) for treatment in (query.before, query.after))
    if old and new and (old.qemu, old.cpu_model) == (new.qemu, new.cpu_model):
        trials = [_trial_of(record, treatment, query.workload) for treatment in (query.before, query.after)]
        why = _why(query, (old, new), (trials[0], trials[1]), guests, kernels, record.kernels)
        return why.model_copy(update={"of_study": comparison_of(record, query)})
    if not guests.run:
        missing = query.before if old is None else query.after
        raise NotCounted(
            study=record.study.name,
            treatment=missing.label,
            workload=query.workload,
            problem=_why_not_counted(record, missing, query.workload),
        )
    why = explain_question(query, guests)
    anew = (query.before.label, query.after.label)
    return why.model_copy(update={"counted_anew": anew, "of_study": comparison_of(record, query)})


def comparison_of(record: StudyRecord, query: AttributionQuestion) -> Comparison | None:
    """What the study says of the two treatments; None where it does not compare them, or cannot pair them."""
    asked = (query.workload, query.before.label, query.after.label)
    return next(
        (
            row
            for row in record.result.comparisons
            if (row.workload, row.baseline, row.treatment) == asked
            and row.unit.startswith(_INSTRUCTIONS)
            and row.metric not in BESIDE_THE_OWN
            and row.ratio is not None
        ),
        None,
    )


def stored_explanations(
    store: Store, record: StudyRecord, comparisons: Iterable[Comparison]
) -> Iterator[Attribution | None]:
    """Explain comparisons of a study by the profiles in the store, for a report.

    Nothing is booted or fetched: of a kernel that is not in the cache, and of settings that were never read,
    less is said.

    None where it cannot be told: a report is about its verdicts, and never refused for a reason that is not
    there (a kernel in the cache that is damaged); `ktrial explain` says what is missing. Raises StoreError.
    """
    kernels = StudyKernels(store, record)
    for comparison in comparisons:
        arms = (comparison.workload, comparison.baseline, comparison.treatment)
        try:
            yield explain_record(store, record, *arms, Guests(run=False), kernels)
        except (ExplanationError, KernelError):
            yield None


def explain_question(query: AttributionQuestion, guests: Guests = Guests()) -> Attribution:
    """Count both treatments, without a store, and explain the difference. Raises as `explain_record`."""
    if query.study.machine.kind not in _COUNTED_ON:
        raise ExplanationError(
            f"{query.study.name} ran on the machine {query.study.machine.kind}, which counts no "
            "instructions by function.",
            hint="only results of the machines exact and exact-parallel can be explained",
        )
    before, after = _counted_trials(query, guests)
    return _why(query, (_profile(query, before), _profile(query, after)), (before, after), guests)


def kernel_of_treatment(
    query: AttributionQuestion, name: str, progress: Progress = silent, guests: Guests = Guests()
) -> Kernel:
    """The kernel of that name of the two treatments, fetched or built where it is not there.

    Raises KernelError.
    """
    treatment = next(
        treatment for treatment in (query.before, query.after) if kernel_name(query.study, treatment) == name
    )
    return obtained(resolved(query.study), treatment, guests.resources or default_resources(), progress)


def _why(
    query: AttributionQuestion,
    profiles: tuple[Profile, Profile],
    trials: tuple[Trial | None, Trial | None],
    guests: Guests,
    kernels: StudyKernels | None = None,
    differing: tuple[KernelDifference, ...] = (),
) -> Attribution:
    """The explanation of two profiles, and what differs around them."""
    boots = _Boots(query, guests, kernels)
    arms = [
        ProfiledArm(treatment, boots.of(treatment, trial), trial)
        for treatment, trial in zip((query.before, query.after), trials, strict=True)
    ]
    old, new = (function_files(arm.boot.kernel) if arm.boot else FunctionFiles() for arm in arms)
    if kernels:
        mapped = kernels.function_map(query, old, new)
        functions = kernels.functions(profiles[0], old), kernels.functions(profiles[1], new)
        explanation = explain(*profiles, old, new, mapped=mapped, functions=functions)
    else:
        explanation = explain(*profiles, old, new, mapped=function_map([profiles], old, new))
    # With the treatments' names: two settings of one kernel have one boot's label.
    labels = query.labels or (query.before.label, query.after.label)
    sides = zip(("before", "after"), (explanation.before, explanation.after), labels, strict=True)
    update = {name: side.model_copy(update={"label": label}) for name, side, label in sides}
    explanation = explanation.model_copy(update=update)
    around = differences(query.study, explanation, arms[0], arms[1], boots.values, differing)
    gone = [label for arm, label in zip(arms, labels, strict=True) if arm.boot is None]
    if gone:
        around = around.model_copy(update={"unknown": (FEWER_FUNCTIONS.format(gone[0]), *around.unknown)})
    return Attribution(before=profiles[0], after=profiles[1], explanation=explanation, differences=around)


def _profile(query: AttributionQuestion, trial: Trial) -> Profile:
    """The trial's profile. Raises NotCounted, with what went wrong."""
    if trial.outcome_of(query.workload) is Outcome.COMPLETED and trial.profiles:
        return trial.profiles[0]
    label = trial.planned.treatment.label
    problem = trial.reason or next((warning.text for warning in trial.warnings), "no region was counted")
    last = lines_of(trial.console.strip())[-1:]
    hint = f"the guest's console ends with: {last[0]}" if last else "ktrial doctor says what is missing here"
    raise NotCounted(
        study=query.study.name, treatment=label, workload=query.workload, problem=f": {problem}", hint=hint
    )


def _why_not_counted(record: StudyRecord, treatment: Treatment, workload: str) -> str:
    """What the treatment's trials say about it: how one failed, or why a whole one names no functions."""
    treatment_trials = [trial for trial in record.trials if trial.planned.treatment.key == treatment.key]
    for trial in treatment_trials:
        outcome = trial.outcome_of(workload)
        if outcome is not Outcome.COMPLETED:
            return f": a trial of it ended as {outcome.value}: {trial.reason_of(workload)}"
    reasons = [
        warning.text
        for trial in treatment_trials
        for warning in trial.warnings
        if warning.kind is WarningKind.NO_PROFILE
    ]
    return f": {reasons[0]}" if reasons else ""


def _trial_of(record: StudyRecord, treatment: Treatment, workload: str) -> Trial | None:
    """The trial whose profile `profile_of` finds: the first that completed, by perturbation."""
    treatment_trials = [
        trial
        for trial in record.trials
        if trial.planned.treatment.key == treatment.key
        and any(counter.workload == workload for counter in trial.counters)
    ]
    return min(treatment_trials, key=lambda trial: trial.planned.perturbation.number, default=None)


def _counted_trials(query: AttributionQuestion, guests: Guests) -> list[Trial]:
    """One trial of each treatment, with the one workload, counted by function."""
    from ktrial.experiment import preflight  # machines take their time to load, and reports run nothing
    from ktrial.experiment.trial import run_trial

    query = replace(query, study=resolved(query.study))
    machine = guests.machine or machines.find(query.study.machine.kind)
    resources, observer = guests.resources or default_resources(), guests.observer or Observer()
    if isinstance(machine, CountingMachine):
        machine.count_by(CountedBy.PLUGIN)
    preflight.check(preflight.undertaking(query.study, machine, resources, 1), observer.notice)
    machine.check()
    unchanged = perturbation(query.study.seed, 0)
    trials = []
    for treatment in (query.before, query.after):
        progress = observer.progress_of(kernel_name(query.study, treatment))
        job = job_of(query, treatment, obtained(query.study, treatment, resources, progress), resources)
        observer.preparing(job.boot, f"counting {query.workload} by function")
        planned = PlannedTrial(order=0, block=0, treatment=treatment, perturbation=unchanged)
        trials.append(run_trial(machine, planned, (job,)))
    return trials


def job_of(query: AttributionQuestion, treatment: Treatment, kernel: Kernel, resources: Resources) -> Job:
    """What a trial of one of the two does: the one workload. The query's study has to be resolved."""
    only = query.study.model_copy(update={"workloads": (query.use,)})
    (job,) = jobs_of(only, treatment, kernel, resources)
    return job


class _Boots:
    """What the treatments boot, and the settings that they boot with."""

    def __init__(
        self, query: AttributionQuestion, guests: Guests, kernels: StudyKernels | None = None
    ) -> None:
        study = kernels.study if kernels else resolved(query.study)
        self._query = replace(query, study=study)
        self._guests = guests
        self._kernels = kernels
        self._sources = guests.resources or default_resources()

    def of(self, treatment: Treatment, trial: Trial | None) -> Boot | None:
        """What the treatment boots; None where that is not there any more, or is another kernel by now."""
        with suppress(KtrialError):  # what is gone is gone: then less can be said
            study = self._query.study
            kernels = self._kernels
            if self._guests.run or self._guests.resources:
                kernel = obtained(study, treatment, self._sources, silent)
            else:
                kernel = (kernels.cached if kernels else kernel_registry.get)(kernel_name(study, treatment))
            if trial is None or trial.provenance.kernel_digest in ("", kernel.digest):
                if kernels:
                    return kernels.system(treatment, kernel, self._sources)
                return system_of(study, treatment, kernel, self._sources)
        return None

    def values(self, boot: Boot) -> KernelValues | None:
        """The boot's settings, from the cache or from a guest. Raises MachineError, GuestEnded."""
        if not self._guests.values:
            return None
        stored_values = kept_values(boot)
        if stored_values or not self._guests.run:
            return stored_values
        observer = self._guests.observer or Observer()
        observer.preparing(boot, "reading the kernel's settings")
        return default_values(self._guests.machine or machines.find(self._query.study.machine.kind), boot)


def _settings(study: Study, treatment: Treatment) -> dict[str, object]:
    """The levels of what does not make another kernel."""
    kernels = {factor.name for factor in study.factors if factor.kind is FactorKind.KERNEL or factor.changes}
    return {name: level for name, level in treatment.levels.items() if name not in kernels}
