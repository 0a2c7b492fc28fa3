"""One trial: boot or restore, make the settings, run each workload from the same state, keep what came of it.

Whatever goes wrong inside the guest is an outcome of the trial, with the end of the console log.
"""

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType

from ktrial import __version__, monitors
from ktrial.errors import (
    GuestEnded,
    GuestError,
    KtrialError,
    MachineError,
    MachineStopped,
    NoMarkedRegion,
    NoSymbolsInGuest,
    WorkloadError,
)
from ktrial.machines import BootedTarget, CountingTarget, Machine, SpeakingTarget
from ktrial.model.advice import DataWarning, WarningKind
from ktrial.model.design import PlannedTrial
from ktrial.model.environment import Environment
from ktrial.model.kernel import Kernel
from ktrial.model.kernel_profile import Profile
from ktrial.model.machine import Boot, MachineIdentity
from ktrial.model.monitored import Monitored
from ktrial.model.series import Sampled
from ktrial.model.trial import CounterDelta, Outcome, Provenance, Trial
from ktrial.model.workload import Sample
from ktrial.runner import environment, monitoring
from ktrial.runner.boots import Job
from ktrial.runner.host_problems import HOST_PROBLEMS
from ktrial.runner.kernel_symbols import KernelSymbols
from ktrial.runner.profile import counted_profile, own_results
from ktrial.runner.sampled import rises, sampled_of
from ktrial.runner.settings import SettingRefused, read_back
from ktrial.runner.trial_warnings import machine_warnings
from ktrial.target import Run, Sampling, Step, StepResult
from ktrial.workloads import CountsOperations, RunsPrograms

OPERATIONS = "workload.operations"
"""The counter that all others of a trial's workload can be divided by."""
_LONGEST_CONSOLE = 64 * 1024


def run_trial(
    machine: Machine,
    planned: PlannedTrial,
    jobs: Iterable[Job],
    failed_boots: Mapping[Boot, KtrialError] = MappingProxyType({}),
    symbols: KernelSymbols | None = None,
    *,
    audited: bool = True,
) -> Trial:
    """Run the trial to its end, whatever its outcome.

    A workload that fails, or brings the guest down, does not keep the others from running: each starts from
    the restored state. A refused setting makes the whole trial invalid: it has no samples then. What failed
    while it was prepared is not booted again: `failed_boots` says how it failed. `symbols` are shared by the
    trials of a run, so that each kernel's are looked up once. `audited`: look at this host first, where that
    matters.
    Raises what says nothing about the treatment: HOST_PROBLEMS and MachineStopped.
    """
    notes = _Notes(
        planned, symbols or KernelSymbols(), environment=environment.before(machine) if audited else None
    )
    for boot, of_boot in _by_boot(jobs).items():
        notes.kernel = boot.kernel
        try:
            if boot in failed_boots:
                raise failed_boots[boot]
            _in_one_boot(machine, boot, of_boot, notes)
        except _FAILURES as error:
            notes.failed(error)
        if notes.outcome is Outcome.REFUSED:
            break
    return notes.trial()


def _by_boot(jobs: Iterable[Job]) -> dict[Boot, list[Job]]:
    grouped: dict[Boot, list[Job]] = {}
    for job in jobs:
        grouped.setdefault(job.boot, []).append(job)
    return grouped


def without_running(planned: PlannedTrial, outcome: Outcome, reason: str, kernel: str) -> Trial:
    """The trial of a treatment that could not even be tried, because its kernel could not be had."""
    return Trial(
        planned=planned,
        outcome=outcome,
        reason=reason,
        provenance=Provenance(kernel=kernel, ktrial=__version__),
        started=datetime.now(UTC),
        seconds=0.0,
    )


_FAILURES = (GuestError, MachineError, WorkloadError)


@dataclass
class _Notes:
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
    sampled: list[Sampled] = field(default_factory=list)
    warnings: list[DataWarning] = field(default_factory=list)
    programs: dict[str, str] = field(default_factory=dict)
    monitored: list[Monitored] = field(default_factory=list)
    environment: Environment | None = None

    def failed(self, error: KtrialError | SettingRefused, workload: str = "") -> None:
        """Note the first failure; host problems and the end of the machine are raised instead."""
        if isinstance(error, (*HOST_PROBLEMS, MachineStopped)):
            raise error
        if self.outcome is not Outcome.COMPLETED:
            return
        self.outcome = _outcome(error)
        self.reason = f"{workload}: {_reason(error)}" if workload else _reason(error)
        if isinstance(error, KtrialError):
            self.console = str(error.facts.get("console", ""))[-_LONGEST_CONSOLE:]

    def trial(self) -> Trial:
        """The trial, ended now."""
        valid = self.outcome is not Outcome.REFUSED
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
            provenance=_provenance(self.kernel, self.identity).model_copy(
                update={
                    "programs": self.programs,
                    "environment": self.environment,
                    "monitored": tuple(self.monitored) if valid else (),
                }
            ),
            started=self.started,
            seconds=time.monotonic() - self.clock,
        )


def _in_one_boot(machine: Machine, boot: Boot, jobs: Iterable[Job], notes: _Notes) -> None:
    with machine.start(boot) as target:
        for job in jobs:
            try:
                _do_and_watch(target, machine, job, notes)
            except (*_FAILURES, SettingRefused) as error:
                notes.failed(error, job.label if isinstance(error, GuestError) else "")
            finally:
                notes.identity = target.identity
            if notes.outcome is Outcome.REFUSED:
                return


def _do_and_watch(target: BootedTarget, machine: Machine, job: Job, notes: _Notes) -> None:
    """One job, and its programs once more for each monitor: before it in every other block."""
    steps = job.workload.steps(job.use, machine.mode, notes.planned.perturbation)
    watched_first = notes.planned.block % 2 == 1
    watch = partial(monitoring.watched, target, machine.mode, job, _watched(steps, job.boot.sample_ns))
    watched = watch() if watched_first else ()
    _do(target, machine, job, notes)
    for each in watched or watch():
        _keep_watched(each, job, notes)


def _keep_watched(watched: monitoring.Watched, job: Job, notes: _Notes) -> None:
    counted = {one.name: one.delta for one in notes.counters if one.workload == job.label}
    notes.counters += [
        CounterDelta(workload=job.label, name=name, delta=delta)
        for name, delta in sorted(watched.deltas(counted.get(OPERATIONS, 0.0)).items())
    ]
    notes.monitored += watched.beside(sample for sample in notes.samples if sample.workload == job.label)
    notes.programs |= {watched.monitor: watched.program} if watched.program else {}
    notes.warnings += watched.warnings


def _do(target: BootedTarget, machine: Machine, job: Job, notes: _Notes) -> None:
    """One job: its disk, its settings, the workload's steps; samples and counters go into the notes."""
    writes = tuple(setting.step for setting in job.settings)
    steps = job.workload.steps(job.use, machine.mode, notes.planned.perturbation)
    prepared = len(job.before)
    first = prepared + len(job.preparation)
    everything = (*job.before, *job.preparation, *writes, *_watched(steps, job.boot.sample_ns), *job.after)
    try:
        results = _perform(target, job, everything, notes)
    except GuestEnded as ended:
        # A setting that brought the guest down was still taken or refused: the kernel's answer goes first.
        before = ended.facts.get("results", ())
        if isinstance(before, tuple) and len(before) >= first + len(writes):
            notes.settings |= read_back(job.settings, own_results(before, first))
        raise
    after = first + len(writes) + len(steps)
    notes.settings |= _in_force(target, job, results[:prepared], results[after:], notes)
    job.check_preparation(results[prepared:first])
    notes.settings |= read_back(job.settings, own_results(results, first))
    own = own_results(results[:after], first + len(writes))
    samples = job.workload.samples(job.use, machine.mode, own)
    notes.samples += [_checked(sample, job) for sample in samples]
    sampled = sampled_of(job.label, own)
    notes.sampled += [sampled] if sampled else []
    notes.counters += _counters(job, own, sampled)
    if isinstance(job.workload, RunsPrograms):
        notes.programs |= job.workload.programs(job.use, own)
    if isinstance(target, CountingTarget):
        _keep_profile(target, job, own, notes)


def _in_force(
    target: BootedTarget,
    job: Job,
    before: tuple[StepResult, ...],
    after: tuple[StepResult, ...],
    notes: _Notes,
) -> dict[str, str]:
    console = target.console if isinstance(target, SpeakingTarget) else ""
    try:
        return job.was_in_force(before, after, console)
    except SettingRefused:
        notes.console = console[-_LONGEST_CONSOLE:]
        raise


def _perform(
    target: BootedTarget, job: Job, steps: tuple[Step, ...], notes: _Notes
) -> tuple[StepResult, ...]:
    """Do the steps, counted where the target can. Who called whom is told once a treatment: it costs more."""
    if not isinstance(target, CountingTarget):
        return target.perform(steps)
    known = notes.symbols.of(target, job.boot)
    calls = bool(known.text) and job.boot.cpus == 1 and notes.planned.perturbation.number == 0
    return target.counted(steps, known.text, calls=calls)


def _keep_profile(target: CountingTarget, job: Job, own: tuple[StepResult, ...], notes: _Notes) -> None:
    if not notes.symbols.wanted:
        return
    try:
        known = notes.symbols.of(target, job.boot)
        notes.profiles.append(counted_profile(job, target.identity, own, known))
    except (NoSymbolsInGuest, NoMarkedRegion) as error:
        text = f"{error.message}; what each function had of the instructions is not known"
        notes.warnings.append(DataWarning(kind=WarningKind.NO_PROFILE, text=text, advice=error.advice))


def _watched(steps: Iterable[Step], every_ns: int) -> tuple[Step, ...]:
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
        problem = f"its {sample.metric} is no number ({sample.value})"
        raise WorkloadError(workload=job.label, problem=problem)
    return sample.model_copy(update={"workload": job.label})


def _counters(job: Job, results: tuple[StepResult, ...], sampled: Sampled | None) -> list[CounterDelta]:
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


def _outcome(error: Exception) -> Outcome:
    if isinstance(error, SettingRefused):
        return Outcome.REFUSED
    if isinstance(error, GuestEnded):
        return Outcome(str(error.facts["outcome"]))
    if isinstance(error, WorkloadError):
        return Outcome.WORKLOAD_FAILED
    return Outcome.MACHINE_FAILED


def _reason(error: Exception) -> str:
    return str(error.facts["reason"]) if isinstance(error, GuestEnded) else str(error)


def _provenance(kernel: Kernel | None, identity: MachineIdentity | None) -> Provenance:
    known: dict[str, object] = {"ktrial": __version__}
    if kernel:
        known |= {
            "kernel": kernel.name,
            "kernel_release": kernel.release,
            "kernel_package": f"{kernel.origin.source} {kernel.origin.version}".strip(),
            "kernel_compiler": kernel.origin.compiler,
            "kernel_digest": kernel.digest,
            "config_digest": kernel.config_digest,
        }
    if identity:
        known |= {
            "machine": identity.machine,
            "qemu": identity.qemu,
            "cpu_model": identity.cpu_model,
            "command_line": identity.command_line,
            "machine_arguments": identity.arguments,
            "agent_digest": identity.agent_digest,
            "seed": identity.seed,
            "snapshot": identity.snapshot or _without_snapshot(identity),
        }
    return Provenance.model_validate(known)


def _without_snapshot(identity: MachineIdentity) -> str:
    """Machines in real time have none."""
    return f"plain boot: {identity.plain_boot_reason}" if identity.plain_boot_reason else ""
