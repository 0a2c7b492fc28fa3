"""Profile one kernel in one workload: boot it, count the workload's marked region by function."""

import base64
import tempfile
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from ktrial.errors import GuestEnded, NoMarkedRegion, NoSymbolsInGuest
from ktrial.kernels.symbols import kept_kallsyms, save_symbols, without_section_markers
from ktrial.machines.exact import ExactMachine, guest_programs, plugin
from ktrial.machines.exact.plugin import CacheShapes
from ktrial.machines.exact.plugin_programs import by_program
from ktrial.machines.exact.profiled import ProfiledTarget
from ktrial.model.design import Perturbation, Treatment
from ktrial.model.kernel import Kernel
from ktrial.model.kernel_profile import Profile
from ktrial.model.profile import UNKNOWN, RegionCounts
from ktrial.model.study import MachineSettings, Study
from ktrial.model.workload import WorkloadUse
from ktrial.runner.boots import Job, jobs_of
from ktrial.runner.observer import Observer, Silent
from ktrial.runner.sources import Sources, the_real_ones
from ktrial.target import Collect, StepResult, Write

_KALLSYMS = "/proc/kallsyms"
_MOST_UNKNOWN = 0.05
"""Code without a symbol is rare; much of it means that the addresses are not those of the symbols (KASLR)."""
_AS_IT_IS = Perturbation(number=0)


class _Metric(BaseModel):
    operations: int = Field(ge=1)


class _Report(BaseModel):
    """What of a workload's output says how many operations its regions hold."""

    bundle: int = Field(ge=1)
    metrics: tuple[_Metric, ...] = Field(min_length=1)


def profile(
    settings: MachineSettings,
    use: WorkloadUse,
    *,
    machine: ExactMachine | None = None,
    observer: Observer | None = None,
    sources: Sources | None = None,
    caches: CacheShapes | None = None,
) -> Profile:
    """Profile the kernel of `settings`, on a machine as they say, in the workload.

    `caches`: model these, too (several times slower). Raises KernelError, WorkloadError (NoMarkedRegion among
    them), NoPluginHere, NoSymbolsInGuest, GuestEnded, MachineError.
    """
    machine, observer, sources = machine or ExactMachine(), observer or Silent(), sources or the_real_ones()
    machine.check()
    study = Study(name="profile", machine=settings, factors=(), workloads=(use,))
    _check_is_marked(use)
    name = settings.kernel

    def progress(what: str, done: int = 0, total: int = 0) -> None:
        observer.kernel_progress(name, what, done, total)

    kernel = sources.obtain(name, progress)
    (job,) = jobs_of(study, Treatment(levels={}), kernel, sources)
    observer.preparing(job.boot, f"counting {job.label} by function")
    try:
        return profile_job(machine, job, caches)
    except GuestEnded as error:
        raise _with_console(error) from None


def profile_job(machine: ExactMachine, job: Job, caches: CacheShapes | None = None) -> Profile:
    """Profile one job, whose boot may have any parameters. Raises as `profile`, but for the kernel."""
    steps = job.workload.steps(job.use, machine.mode, _AS_IT_IS)
    with (
        machine.profiled(job.boot) as target,
        tempfile.TemporaryDirectory(prefix="ktrial-counts-") as directory,
    ):
        out = Path(directory) / "counts"
        symbols = _symbols(target, job, Path(directory))
        results = target.counted(steps, symbols, out, caches)
        job.workload.samples(job.use, machine.mode, results)
        region, operations = _region(job, results, out)
        return Profile(
            kernel=job.boot.kernel.name,
            release=job.boot.kernel.release,
            workload=job.label,
            parameters=job.boot.parameters,
            operations=operations,
            region=region,
            programs=by_program(region.pages, guest_programs.programs(guest_programs.directory())),
            qemu=target.identity.qemu,
            cpu_model=target.identity.cpu_model,
        )


def _with_console(error: GuestEnded) -> GuestEnded:
    """The error, with the end of the console log: no store keeps it."""
    last = (str(error.facts.get("console", "")).strip().splitlines() or ["nothing"])[-1]
    return GuestEnded(**error.facts | {"hint": f"the guest's console ends with: {last}"})


def _check_is_marked(use: WorkloadUse) -> None:
    if use.command:
        raise NoMarkedRegion(workload=use.label, problem="a command of your own marks no region")


def _symbols(target: ProfiledTarget, job: Job, directory: Path) -> Path:
    """The kernel's symbols: kept with it, or told by the guest. Those of modules hold for one boot only."""
    kernel, has_modules = job.boot.kernel, bool(job.boot.modules)
    kept = None if has_modules else kept_kallsyms(kernel)
    text = kept.read_text(encoding="ascii", errors="replace") if kept else _told(target, kernel)
    if not has_modules and not kept:
        _keep(kernel, text)
    path = directory / "kallsyms"
    path.write_text(without_section_markers(text), encoding="ascii", errors="replace")
    return path


def _told(target: ProfiledTarget, kernel: Kernel) -> str:
    # Where the kernel hides addresses from all, even root is told zeros. Every `perform` starts anew: the
    # workload does not see the change.
    shown = Write(path="/proc/sys/kernel/kptr_restrict", value="0")
    *_, told = target.perform((shown, Collect(path=_KALLSYMS)))
    if told.failure:
        raise NoSymbolsInGuest(name=kernel.name, problem=f"{_KALLSYMS}: {told.failure.text}")
    return base64.b64decode(told.content).decode("ascii", errors="replace")


def _keep(kernel: Kernel, text: str) -> None:
    try:
        save_symbols(kernel, text)
    except ValueError as error:
        raise NoSymbolsInGuest(name=kernel.name, problem=str(error)) from None


def _region(job: Job, results: tuple[StepResult, ...], out: Path) -> tuple[RegionCounts, int]:
    """The region of the run, and how many operations it holds."""
    try:
        (result,) = results
        report = _Report.model_validate_json(result.stdout)
    except (ValueError, ValidationError):
        problem = "it does not say how many operations it did"
        raise NoMarkedRegion(workload=job.label, problem=problem) from None
    if not plugin.read(out).regions:
        raise NoMarkedRegion(workload=job.label, problem="it marks no region")
    counts = plugin.read_runs(out, [report.metrics[0].operations])
    if not counts.symbols:
        raise NoSymbolsInGuest(name=job.boot.kernel.name, problem=f"{_KALLSYMS} names no function")
    (region,) = counts.regions
    if _unknown(region) > _MOST_UNKNOWN * region.kernel:
        problem = (
            f"more than {_MOST_UNKNOWN:.0%} of what it ran is at addresses that {_KALLSYMS} does not have"
        )
        raise NoSymbolsInGuest(name=job.boot.kernel.name, problem=problem)
    if not region.whole:
        raise NoMarkedRegion(workload=job.label, problem="its region did not come to its end")
    return region, report.metrics[0].operations * report.bundle


def _unknown(region: RegionCounts) -> int:
    return sum(each.instructions for each in region.functions if each.symbol == UNKNOWN)
