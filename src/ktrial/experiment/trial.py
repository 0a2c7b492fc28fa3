"""One trial: boot or restore, make the settings, run each workload from the same state, keep what came of it.

Whatever goes wrong inside the guest is an outcome of the trial, with the end of the console log.
"""

import math
from collections.abc import Iterable, Mapping
from functools import partial
from types import MappingProxyType

from ktrial import monitors
from ktrial.errors import KtrialError
from ktrial.experiment import guest_storage, host_checks, monitoring
from ktrial.experiment.jobs import Job
from ktrial.experiment.kernel_symbols import KernelSymbols
from ktrial.experiment.monitoring import rises, sampled_of
from ktrial.experiment.profile import agent_in_region, counted_profile, own_results
from ktrial.experiment.replay import complaints_in
from ktrial.experiment.settings import SettingRefused, read_back
from ktrial.experiment.trial_recorder import LONGEST_CONSOLE, TrialNotes
from ktrial.machines import BootedTarget, CountingTarget, Machine, SpeakingTarget
from ktrial.machines.errors import MachineError
from ktrial.model.boot import Boot
from ktrial.model.design import PlannedTrial
from ktrial.model.time_series import Sampled
from ktrial.model.trial import OPERATIONS, CounterDelta, Outcome, Trial
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Sample
from ktrial.target import Run, Sampling, Step, StepResult
from ktrial.target.errors import GuestEnded, GuestError, NoSymbolsInGuest
from ktrial.workloads import CountsOperations, RunsPrograms, WarnsOfRuns
from ktrial.workloads.errors import NoMarkedRegion, WorkloadError
from ktrial.workloads.printed_metrics import guest_time_warnings

_ON_SEVERAL = "exact-parallel"
_FAILURES = (GuestError, MachineError, WorkloadError)


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
    notes = TrialNotes(
        planned,
        symbols or KernelSymbols(),
        replayed=machine.name == _ON_SEVERAL,
        environment=monitoring.environment_before(machine) if audited else None,
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


def _in_one_boot(machine: Machine, boot: Boot, jobs: Iterable[Job], notes: TrialNotes) -> None:
    with machine.start(boot) as target:
        for job in jobs:
            notes.warnings += host_checks.warnings_of(machine, job)
            notes.programs |= guest_storage.maker(job.disk, boot.files) if job.disk else {}
            try:
                _do_and_watch(target, machine, job, notes)
            except (*_FAILURES, SettingRefused) as error:
                notes.failed(error, job.label if isinstance(error, GuestError) else "")
            finally:
                notes.identity = target.identity
                notes.settings |= target.identity.in_force
                if notes.replayed and isinstance(target, SpeakingTarget):
                    notes.complaints += complaints_in(target.console)
                    if notes.complaints and not notes.console:
                        notes.console = target.console[-LONGEST_CONSOLE:]
            if notes.outcome is Outcome.REFUSED:
                return


def _do_and_watch(target: BootedTarget, machine: Machine, job: Job, notes: TrialNotes) -> None:
    """One job, and its programs once more for each monitor: before it in every other block."""
    steps = job.steps(machine.mode, notes.planned.perturbation)
    watched_first = notes.planned.block % 2 == 1
    names = monitoring.of_trial(job, notes.planned.perturbation.number)
    own = _watched(steps, job.boot.sample_ns)
    watch = partial(monitoring.watched, target, machine.mode, job, own, names)
    watched = watch() if watched_first else ()
    _do(target, machine, job, notes)
    for each in watched or watch():
        _keep_watched(each, job, notes)


def _keep_watched(watched: monitoring.Watched, job: Job, notes: TrialNotes) -> None:
    counted = {one.name: one.delta for one in notes.counters if one.workload == job.label}
    notes.counters += [
        CounterDelta(workload=job.label, name=name, delta=delta)
        for name, delta in sorted(watched.deltas(counted.get(OPERATIONS, 0.0)).items())
    ]
    notes.monitored += watched.slowdowns(sample for sample in notes.samples if sample.workload == job.label)
    notes.samples += watched.found
    notes.programs |= {watched.monitor: watched.program} if watched.program else {}
    notes.warnings += watched.warnings


def _do(target: BootedTarget, machine: Machine, job: Job, notes: TrialNotes) -> None:
    """One job: its disk, its settings, the workload's steps; samples and counters go into the notes."""
    writes = tuple(setting.step for setting in job.settings)
    steps = job.steps(machine.mode, notes.planned.perturbation)
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
    notes.settings |= _checked_manipulation(target, job, results[:prepared], results[after:], notes)
    job.check_preparation(results[prepared:first])
    notes.settings |= read_back(job.settings, own_results(results, first))
    own = own_results(results[:after], first + len(writes))
    samples = job.workload.samples(job.use, machine.mode, own)
    notes.samples += [_checked(sample, job) for sample in samples]
    notes.warnings += guest_time_warnings(job.use.command, samples, machine.mode)
    sampled = sampled_of(job.label, own)
    notes.sampled += [sampled] if sampled else []
    notes.counters += _counters(job, own, sampled)
    if isinstance(job.workload, RunsPrograms):
        notes.programs |= job.workload.programs(job.use, own)
    if isinstance(job.workload, WarnsOfRuns):
        notes.warnings += job.workload.warnings(job.use, own)
    if isinstance(target, CountingTarget):
        _keep_profile(target, job, own, notes)


def _checked_manipulation(
    target: BootedTarget,
    job: Job,
    before: tuple[StepResult, ...],
    after: tuple[StepResult, ...],
    notes: TrialNotes,
) -> dict[str, str]:
    console = target.console if isinstance(target, SpeakingTarget) else ""
    try:
        return job.checked(before, after, console)
    except SettingRefused:
        notes.console = console[-LONGEST_CONSOLE:]
        raise


def _perform(
    target: BootedTarget, job: Job, steps: tuple[Step, ...], notes: TrialNotes
) -> tuple[StepResult, ...]:
    """Do the steps, counted where the target can. Who called whom is told once a treatment: it costs more."""
    if not isinstance(target, CountingTarget):
        return target.perform(steps)
    known = notes.symbols.of(target, job.boot)
    notes.executed |= {"symbols": known.digest} if known.text else {}
    calls = bool(known.text) and job.boot.cpus == 1 and notes.planned.perturbation.number == 0
    return target.counted(steps, known.text, calls=calls)


def _keep_profile(target: CountingTarget, job: Job, own: tuple[StepResult, ...], notes: TrialNotes) -> None:
    if not notes.symbols.wanted:
        return
    try:
        known = notes.symbols.of(target, job.boot)
        counted = counted_profile(job, target.identity, own, known)
        notes.profiles.append(counted)
        notes.warnings += agent_in_region(counted) if not job.boot.sample_ns else ()
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
