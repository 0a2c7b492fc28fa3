"""One trial: boot or restore, make the settings, run each workload from the same state, keep what came of it.

Whatever goes wrong inside the guest is an outcome of the trial, with the end of the console log.
"""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType

from ktrial import monitors
from ktrial.errors import KtrialError
from ktrial.experiment import guest_storage, guest_swap, monitoring, preflight
from ktrial.experiment.errors import HOST_PROBLEMS
from ktrial.experiment.failed_calls import with_failed_call
from ktrial.experiment.jobs import Job
from ktrial.experiment.manipulation import SettingRefused, read_back
from ktrial.experiment.monitoring import rises, sampled_of
from ktrial.experiment.profile import KernelSymbols, agent_in_region, counted_profile, own_results
from ktrial.experiment.provenance import machine_warnings, provenance
from ktrial.experiment.trial_parts import TrialPart, TrialParts
from ktrial.installation import VERSION
from ktrial.machines import BootedTarget, CountingTarget, Machine, SpeakingTarget
from ktrial.machines.errors import MachineError, MachineStopped
from ktrial.machines.qemu.outcome import GuestFailure, complaints_in, headed
from ktrial.model.design import PlannedTrial
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot, FileSet, MachineIdentity
from ktrial.model.profile import Profile
from ktrial.model.trial import (
    BETWEEN_REASONS,
    CARRIED,
    OPERATIONS,
    CounterDelta,
    Environment,
    Monitored,
    Outcome,
    Provenance,
    SampleSeries,
    Trial,
    WorkloadFailure,
)
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Sample
from ktrial.target import Run, Sampling, Step, StepResult
from ktrial.target.errors import GuestEnded, GuestError, NoSymbolsInGuest
from ktrial.workloads import CountsOperations, RunsPrograms, WarnsOfRuns
from ktrial.workloads.command import guest_time_warnings
from ktrial.workloads.errors import NoMarkedRegion, WorkloadError

_ON_SEVERAL = "exact-parallel"
_FAILURES = (GuestError, MachineError, WorkloadError)
_ADDED_TO = ("samples", "counters", "profiles", "sampled", "warnings", "monitored", "complaints")
"""Lists of `TrialNotes` that one workload after another adds to."""


def run_trial(
    machine: Machine,
    planned: PlannedTrial,
    jobs: Iterable[Job],
    failed_boots: Mapping[Boot, KtrialError] = MappingProxyType({}),
    symbols: KernelSymbols | None = None,
    *,
    audited: bool = True,
    parts: TrialParts | None = None,
) -> Trial:
    """Run the trial to its end, whatever its outcome.

    A workload that fails, or brings the guest down, does not keep the others from running: each starts from
    the restored state. A refused setting makes the whole trial invalid: it has no samples then. What failed
    while it was prepared is not booted again: `failed_boots` says how it failed. `symbols` are shared by the
    trials of a run, so that each kernel's are looked up once. `audited`: look at this host first, where that
    matters. `parts`: what an earlier run has measured of this trial, and where this one keeps it.
    Raises what says nothing about the treatment: HOST_PROBLEMS and MachineStopped.
    """
    notes = TrialNotes(
        planned,
        symbols or KernelSymbols(),
        replayed=machine.name == _ON_SEVERAL,
        environment=monitoring.environment_before(machine) if audited else None,
    )
    alike: dict[tuple[Boot, FileSet], list[Job]] = {}
    for job in jobs:
        alike.setdefault((job.boot, job.carried), []).append(job)
    for (boot, _), same_jobs in alike.items():
        notes.kernel = boot.kernel
        try:
            if boot in failed_boots:
                raise failed_boots[boot]
            _in_one_boot(machine, boot, same_jobs, notes, parts)
        except _FAILURES as error:
            notes.failed(error, [job.label for job in same_jobs])
        if notes.outcome is Outcome.REFUSED:
            break
    return notes.trial()


@dataclass
class TrialNotes:
    """What is known so far about the trial under way."""

    planned: PlannedTrial
    symbols: KernelSymbols
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock: float = field(default_factory=time.monotonic)
    kernel: Kernel | None = None
    identity: MachineIdentity | None = None
    outcome: Outcome = Outcome.COMPLETED
    reason: str = ""
    console: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    counters: list[CounterDelta] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)
    sampled: list[SampleSeries] = field(default_factory=list)
    warnings: list[DataWarning] = field(default_factory=list)
    executed: dict[str, str] = field(default_factory=dict)
    """Digests of what gave names; the machine tells the rest."""
    programs: dict[str, str] = field(default_factory=dict)
    monitored: list[Monitored] = field(default_factory=list)
    environment: Environment | None = None
    replayed: bool = False
    """The machine repeats a schedule by its seed: who sees a failure is told how."""
    failures: list[WorkloadFailure] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """The kernel's, on its console."""

    def failed(
        self,
        error: KtrialError | SettingRefused,
        workloads: Sequence[str],
        console: str = "",
        *,
        named: bool = False,
    ) -> None:
        """Note the failure: how the first one ended is the trial's outcome, and all of them are its reason.

        `workloads`: those that have no numbers for it; `named`: the reason begins with the workload. Where a
        workload failed, the first complaint on the kernel's console goes first. Host problems and the end of
        the machine are raised instead.
        """
        if isinstance(error, (*HOST_PROBLEMS, MachineStopped)):
            raise error
        reason = f"{workloads[0]}: {_reason(error)}" if named else _reason(error)
        if isinstance(error, WorkloadError):
            reason = headed(GuestFailure(_outcome(error), reason), console).reason
        self.failures += (
            WorkloadFailure(workload=label, outcome=_outcome(error), reason=reason) for label in workloads
        )
        if self.outcome is Outcome.COMPLETED:
            self.outcome, self.reason = _outcome(error), reason
        else:
            self.reason = BETWEEN_REASONS.join((self.reason.rstrip("."), reason))
        if isinstance(error, GuestEnded) and not self.console:
            self.console = error.console[-LONGEST_CONSOLE:]

    def lengths(self) -> dict[str, int]:
        """How much there is of what workloads add to, one after another."""
        return {name: len(getattr(self, name)) for name in _ADDED_TO}

    def part(self, done: str, before: Mapping[str, int]) -> TrialPart:
        """What was added since then; `done` tells what that was."""
        added = {name: tuple(getattr(self, name)[length:]) for name, length in before.items()}
        facts = {"settings": self.settings, "executed": self.executed, "programs": self.programs}
        return TrialPart.model_validate({"done": done, **added, **facts})

    def take_over(self, part: TrialPart, identity: MachineIdentity) -> None:
        """What an earlier run has measured on the same machine."""
        for name in _ADDED_TO:
            getattr(self, name).extend(getattr(part, name))
        self.settings |= part.settings
        self.executed |= part.executed
        self.programs |= part.programs
        self.identity = identity

    def trial(self) -> Trial:
        """The trial, ended now."""
        valid = self.outcome is not Outcome.REFUSED
        if self.replayed:
            self.warnings += replays(self.planned, self.outcome, tuple(dict.fromkeys(self.complaints)))
        noted = provenance(self.kernel, self.identity)
        return Trial(
            planned=self.planned,
            outcome=self.outcome,
            reason=self.reason,
            samples=tuple(self.samples) if valid else (),
            counters=tuple(self.counters) if valid else (),
            profiles=tuple(self.profiles) if valid else (),
            sampled=tuple(self.sampled) if valid else (),
            settings=self.settings,
            warnings=(*machine_warnings(self.identity, self.kernel), *dict.fromkeys(self.warnings)),
            console=self.console,
            provenance=noted.model_copy(
                update={
                    "programs": self.programs,
                    "executed": noted.executed | self.executed,
                    "environment": self.environment,
                    "monitored": tuple(self.monitored) if valid else (),
                    "failures": tuple(self.failures) if self.samples and valid else (),
                }
            ),
            started=self.started,
            seconds=time.monotonic() - self.clock,
        )


def _in_one_boot(
    machine: Machine, boot: Boot, jobs: Sequence[Job], notes: TrialNotes, parts: TrialParts | None
) -> None:
    with machine.start(boot, jobs[0].carried) as target:
        for job in jobs:
            if parts and (part := parts.find(job, target.identity)):
                notes.take_over(part, target.identity)
                continue
            before = notes.lengths()
            notes.executed |= {f"{CARRIED}{job.label}": job.carried.digest} if job.carried.digest else {}
            notes.warnings += preflight.warnings_of(machine, job)
            notes.programs |= guest_storage.maker(job.disk, boot.files) if job.disk else {}
            notes.programs |= guest_swap.makers(job.before, boot.files)
            try:
                _run_job_and_monitors(target, machine, job, notes)
            except (*_FAILURES, SettingRefused) as error:
                console = target.console if isinstance(target, SpeakingTarget) else ""
                notes.failed(error, [job.label], console, named=isinstance(error, GuestError))
            finally:
                notes.identity = target.identity
                notes.settings |= target.identity.in_force
                if notes.replayed and isinstance(target, SpeakingTarget):
                    notes.complaints += (complaint.text for complaint in complaints_in(target.console))
                    if notes.complaints and not notes.console:
                        notes.console = target.console[-LONGEST_CONSOLE:]
            if notes.outcome is Outcome.REFUSED:
                return
            if parts and not any(failure.workload == job.label for failure in notes.failures):
                parts.keep(job, notes.part(parts.done(job, target.identity), before))


def _run_job_and_monitors(target: BootedTarget, machine: Machine, job: Job, notes: TrialNotes) -> None:
    """One job, and its programs once more for each monitor: before it in every other block."""
    steps = job.steps(machine.mode, notes.planned.perturbation)
    watched_first = notes.planned.block % 2 == 1
    names = monitoring.of_trial(job, notes.planned.perturbation.number)
    workload_steps = _with_watched_files(steps, job.boot.sample_ns)
    watch = partial(monitoring.watched, target, machine.mode, job, workload_steps, names)
    watched = watch() if watched_first else ()
    _run_job(target, machine, job, notes)
    counted = {counter.name: counter.delta for counter in notes.counters if counter.workload == job.label}
    for watched_job in watched or watch():
        notes.counters += [
            CounterDelta(workload=job.label, name=name, delta=delta)
            for name, delta in sorted(watched_job.deltas(counted.get(OPERATIONS, 0.0)).items())
        ]
        own_samples = [sample for sample in notes.samples if sample.workload == job.label]
        notes.monitored += watched_job.slowdowns(own_samples)
        notes.samples += watched_job.samples_of_workload
        notes.programs |= {watched_job.monitor: watched_job.program} if watched_job.program else {}
        notes.warnings += watched_job.warnings


def _run_job(target: BootedTarget, machine: Machine, job: Job, notes: TrialNotes) -> None:
    """One job: its disk, its settings, the workload's steps; samples and counters go into the notes."""
    writes = tuple(setting.step for setting in job.settings)
    steps = job.steps(machine.mode, notes.planned.perturbation)
    prepared = len(job.before)
    first = prepared + len(job.preparation)
    steps_in_order = (
        *job.before,
        *job.preparation,
        *writes,
        *_with_watched_files(steps, job.boot.sample_ns),
        *job.after,
    )
    try:
        results = _perform_counted(target, job, steps_in_order, notes)
    except GuestEnded as ended:
        # A setting that brought the guest down was still taken or refused: the kernel's answer goes first.
        before = ended.results
        if len(before) >= first + len(writes):
            notes.settings |= read_back(job.settings, own_results(before, first))
        raise
    after = first + len(writes) + len(steps)
    console = target.console if isinstance(target, SpeakingTarget) else ""
    try:
        notes.settings |= job.checked(results[:prepared], results[after:], console)
    except SettingRefused:
        notes.console = console[-LONGEST_CONSOLE:]
        raise
    job.check_preparation(results[prepared:first])
    notes.settings |= read_back(job.settings, own_results(results, first))
    workload_results = own_results(results[:after], first + len(writes))
    try:
        samples = job.workload.samples(job.use, machine.mode, workload_results)
    except WorkloadError as error:
        raise with_failed_call(error, target, steps_in_order, results) from None
    notes.samples += [_checked(sample, job) for sample in samples]
    notes.warnings += guest_time_warnings(job.use.command, samples, machine.mode)
    sampled = sampled_of(job.label, workload_results)
    notes.sampled += [sampled] if sampled else []
    notes.counters += _counters(job, workload_results, sampled)
    if isinstance(job.workload, RunsPrograms):
        notes.programs |= job.workload.programs(job.use, workload_results)
    if isinstance(job.workload, WarnsOfRuns):
        notes.warnings += job.workload.warnings(job.use, workload_results)
    if isinstance(target, CountingTarget) and notes.symbols.wanted:
        _keep_profile(target, job, workload_results, notes)


def _perform_counted(
    target: BootedTarget, job: Job, steps: tuple[Step, ...], notes: TrialNotes
) -> tuple[StepResult, ...]:
    """Do the steps, counted where the target can. Who called whom is told once a treatment: it costs more."""
    if not isinstance(target, CountingTarget):
        return target.perform(steps)
    symbols = notes.symbols.of(target, job.boot)
    notes.executed |= {"symbols": symbols.digest} if symbols.text else {}
    calls = bool(symbols.text) and job.boot.cpus == 1 and notes.planned.perturbation.number == 0
    return target.counted(steps, symbols.text, calls=calls)


def _keep_profile(
    target: CountingTarget, job: Job, results: tuple[StepResult, ...], notes: TrialNotes
) -> None:
    try:
        symbols = notes.symbols.of(target, job.boot)
        counted = counted_profile(job, target.identity, results, symbols)
        notes.profiles.append(counted)
        notes.warnings += agent_in_region(counted) if not job.boot.sample_ns else ()
    except (NoSymbolsInGuest, NoMarkedRegion) as error:
        text = f"{error.message}; the instructions of each function are not known"
        notes.warnings.append(DataWarning(kind=WarningKind.NO_PROFILE, text=text, advice=error.advice))


def _with_watched_files(steps: Iterable[Step], every_ns: int) -> tuple[Step, ...]:
    """The steps, with the monitors' files watched around every program, and sampled where they can be."""
    files = monitors.watched_files()
    sample = None
    if every_ns:
        sample = Sampling(files=monitors.sampled_files(), around=monitors.costly_files(), every_ns=every_ns)
    return tuple(
        step.model_copy(update={"watch": tuple(dict.fromkeys((*step.watch, *files))), "sample": sample})
        if isinstance(step, Run)
        else step
        for step in steps
    )


def _checked(sample: Sample, job: Job) -> Sample:
    if not math.isfinite(sample.value):
        problem = f"its {sample.metric} is not a number ({sample.value})"
        raise WorkloadError(f"Workload {job.label}: {problem}")
    return sample.model_copy(update={"workload": job.label})


def _counters(job: Job, results: tuple[StepResult, ...], sampled: SampleSeries | None) -> list[CounterDelta]:
    """Every counter, summed over the programs that the workload ran, and how many operations they did."""
    totals: dict[str, float] = {}
    for result in results:
        if result.do == "run":
            for name, rise in monitors.counters(result.watched, result.rusage).items():
                totals[name] = totals.get(name, 0.0) + rise
    # What is counted around each program is nearer to it than what is read around all of them.
    totals = (rises(sampled) if sampled else {}) | totals
    if isinstance(job.workload, CountsOperations):
        totals[OPERATIONS] = job.workload.operations(job.use, results)
    return [CounterDelta(workload=job.label, name=name, delta=totals[name]) for name in sorted(totals)]


# What is known of a trial while it runs, what becomes of it at its end, and what its warnings say.

LONGEST_CONSOLE = 64 * 1024
"""Characters of the console, its end, that are kept of a trial that failed."""


def without_running(planned: PlannedTrial, outcome: Outcome, reason: str, kernel: str) -> Trial:
    """The trial of a treatment that could not even be tried, because its kernel could not be had."""
    return Trial(
        planned=planned,
        outcome=outcome,
        reason=reason,
        provenance=Provenance(kernel=kernel, ktrial=VERSION),
        started=datetime.now(UTC),
        seconds=0.0,
    )


def _outcome(error: Exception) -> Outcome:
    if isinstance(error, SettingRefused):
        return Outcome.REFUSED
    if isinstance(error, GuestEnded):
        return Outcome(error.outcome)
    if isinstance(error, WorkloadError):
        return Outcome.WORKLOAD_FAILED
    return Outcome.MACHINE_FAILED


def _reason(error: Exception) -> str:
    return error.reason if isinstance(error, GuestEnded) else str(error)


# Trials on several CPUs in which a kernel failed or complained: their seed, and what runs the same again.
#
# A schedule is a function of the seed there, so that a race that shows under one seed shows again.

_FAILED = frozenset({Outcome.PANICKED, Outcome.HUNG, Outcome.WORKLOAD_FAILED})


def replays(planned: PlannedTrial, outcome: Outcome, complaints: tuple[str, ...]) -> tuple[DataWarning, ...]:
    """A warning that names the seed and the command; none where all went well."""
    if outcome not in _FAILED and not complaints:
        return ()
    event = f"the kernel said: {complaints[0]}" if complaints else f"it ended as {outcome.value}"
    seed = planned.perturbation.layout_seed
    text = f"trial {planned.key} ({planned.treatment.label}), seed {seed}: {event}"
    advice = f"the same schedule again, with its console: ktrial replicate STUDY --trial {planned.key}"
    return (DataWarning(kind=WarningKind.REPLAY, text=text, advice=advice),)
