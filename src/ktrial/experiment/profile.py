"""Profile one kernel in one workload: boot it, count the workload's marked region by function."""

import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ktrial.experiment import preflight
from ktrial.experiment.jobs import Job, jobs_of, obtained
from ktrial.experiment.manipulation import SettingRefused
from ktrial.experiment.observer import Observer
from ktrial.experiment.provenance import machine_warnings
from ktrial.experiment.resources import Resources, default_resources
from ktrial.file_digests import digest_of_bytes
from ktrial.kernels.symbols import kept_kallsyms, save_symbols
from ktrial.machines import CountingTarget, guest_programs
from ktrial.machines.exact import ExactMachine
from ktrial.machines.exact_parallel import ParallelMachine
from ktrial.machines.qemu.plugin import CacheShapes
from ktrial.machines.qemu.plugin_counts import by_program
from ktrial.model.design import Perturbation, Treatment
from ktrial.model.kernel import Kernel
from ktrial.model.machine import BasePrices, Boot, CarriedFile, MachineIdentity
from ktrial.model.profile import Profile, RegionCounts
from ktrial.model.study import MachineSettings, Study
from ktrial.model.trial import Outcome
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Mode, WorkloadUse
from ktrial.studyfile.references import resolved
from ktrial.target import StepResult
from ktrial.target.errors import GuestEnded, GuestError, NoSymbolsInGuest
from ktrial.text_lines import lines_of
from ktrial.workloads.errors import NoMarkedRegion
from ktrial.workloads.protocol import MarkedWorkload, WarnsOfRuns

_MOST_UNKNOWN = 0.05
"""Code without a symbol is rare; much of it means that the addresses are not those of the symbols (KASLR)."""
_MOST_NEVER_ENTERED = 0.5
"""Measured in Debian's 6.1 and 7.2: at most 0.003 with the right symbols, at least 0.8 with symbols that are
some multiple of 2 MiB away, which is KASLR's step. What slept as the region began goes on within a function.
"""
_AS_IT_IS = Perturbation(number=0)


def profile(
    settings: MachineSettings,
    use: WorkloadUse,
    *,
    machine: ExactMachine | ParallelMachine | None = None,
    observer: Observer | None = None,
    resources: Resources | None = None,
    caches: CacheShapes | None = None,
    by_address_of: tuple[str, ...] = (),
) -> Profile:
    """Profile the kernel of `settings`, on a machine as they say, in the workload.

    `machine`: None is the one that they name. `caches`: model these, too (several times slower; machine
    `exact` only). `by_address_of`: functions of which each address is counted by itself
    (`ktrial.kernels.source_lines`), without calls. Raises KernelError, WorkloadError (NoMarkedRegion among
    them), NoPluginHere, NoSymbolsInGuest, GuestEnded, GuestError, MachineError.
    """
    if machine is None:
        machine = ParallelMachine() if settings.kind == ParallelMachine.name else ExactMachine()
    observer = observer or Observer()
    resources = resources or default_resources()
    study = resolved(Study(name="profile", machine=settings, factors=(), workloads=(use,)))
    preflight.check(preflight.undertaking(study, machine, resources, 1), observer.notice)
    machine.check()
    only = Treatment(levels={})
    kernel = obtained(study, only, resources, observer.progress_of(settings.kernel))
    (job,) = jobs_of(study, only, kernel, resources)
    observer.preparing(job.boot, f"counting {job.label} by function")
    try:
        return profile_job(machine, job, caches, by_address_of)
    except GuestEnded as error:
        # No store keeps the console log: its end is told here.
        last = (lines_of(error.console.strip()) or ["nothing"])[-1]
        hint = f"the guest's console ends with: {last}"
        raise GuestEnded(error.outcome, error.reason, error.console, error.results, hint=hint) from None


def profile_job(
    machine: ExactMachine | ParallelMachine,
    job: Job,
    caches: CacheShapes | None = None,
    by_address_of: tuple[str, ...] = (),
) -> Profile:
    """Profile one job, whose boot may have any parameters. Raises as `profile`, but for the kernel."""
    settings = tuple(setting.step for setting in job.settings)
    before = (*job.before, *job.preparation, *settings)
    on_several = isinstance(machine, ParallelMachine)
    mode = Mode.EXACT_PARALLEL if on_several else Mode.EXACT_PLUGIN
    steps = job.workload.steps(job.use, mode, _AS_IT_IS)
    with machine.instrumented(job.boot, job.carried) as target:
        symbols = KernelSymbols().of(target, job.boot)
        if symbols.problem:
            raise symbols.missing(job.boot.kernel.name)
        calls = job.boot.cpus == 1 and not on_several and not by_address_of
        text = symbols.text
        if by_address_of:
            from ktrial.kernels.source_lines import by_address  # what reads DWARF takes its time to load

            text = by_address(text, by_address_of)
        steps_in_order = (*before, *steps, *job.after)
        modelled = {} if caches is None else {"caches": caches}
        performed = target.counted(steps_in_order, text, calls=calls, **modelled)
        after = len(before) + len(steps)
        if job.checks:
            try:
                job.checked(performed[: len(job.before)], performed[after:], target.console)
            except SettingRefused as refused:
                raise GuestError(
                    f"The requested settings were not in force: {refused!s}",
                    hint="which kernel takes what: ktrial help schedulers",
                ) from None
        results = own_results(performed[:after], len(before))
        job.workload.samples(job.use, mode, results)
        odd = job.workload.warnings(job.use, results) if isinstance(job.workload, WarnsOfRuns) else ()
        told = (
            *machine_warnings(target.identity, job.boot.kernel),
            *(warning for warning in odd if warning.kind is WarningKind.MARKS),
        )
        counted = counted_profile(job, target.identity, results, symbols)
        return counted.model_copy(update={"warnings": told})


def own_results(results: tuple[StepResult, ...], before: int) -> tuple[StepResult, ...]:
    """The results after the first `before` steps, numbered as those who gave the steps numbered them."""
    return tuple(
        result.model_copy(update={"step": result.step - before})
        for result in results
        if result.step >= before
    )


@dataclass(frozen=True)
class KernelFunctions:
    """The symbols of one boot, or why there are none."""

    text: str
    """The functions in /proc/kallsyms; empty where there is none."""
    problem: str = ""
    advice: str = ""
    """Other than that of NoSymbolsInGuest, which speaks of the kernel's configuration."""

    def missing(self, kernel: str) -> NoSymbolsInGuest:
        """The error that says why this kernel's functions have no names here."""
        hint = {"hint": self.advice} if self.advice else {}
        return NoSymbolsInGuest(name=kernel, problem=self.problem, **hint)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the text."""
        return digest_of_bytes(self.text.encode())


def counted_profile(
    job: Job, identity: MachineIdentity, results: tuple[StepResult, ...], symbols: KernelFunctions
) -> Profile:
    """What the plugin counted by function while the job was done; `results` are those of its own steps.

    Raises NoMarkedRegion; NoSymbolsInGuest rather than give wrong names.
    """
    kernel = job.boot.kernel
    if not isinstance(job.workload, MarkedWorkload):
        raise NoMarkedRegion(job.label, "it does not tell which region counts")
    region = job.workload.region(job.use, results)
    counts = region.counts
    if symbols.problem:
        raise symbols.missing(kernel.name)
    _check_symbols_fit(counts, kernel)
    cycles = job.boot.model.cycles if job.boot.model else None
    prices = BasePrices(instruction=cycles.instruction, string_bytes=cycles.string_bytes) if cycles else None
    return Profile(
        kernel=kernel.name,
        release=kernel.release,
        workload=job.label,
        parameters=job.boot.parameters,
        operations=region.operations,
        region=counts,
        programs=by_program(counts.pages, _programs((*job.boot.files, *job.carried.files))),
        qemu=identity.qemu,
        cpu_model=identity.cpu_model,
        prices=prices,
    )


def agent_in_region(counted: Profile) -> tuple[DataWarning, ...]:
    """A warning where ktrial's agent ran in regions that a program marks, to read what it prints."""
    agent = sum(
        program.instructions
        for program in counted.programs
        if program.program == guest_programs.AGENT_IN_GUEST
    )
    if not agent or not counted.region.marking.regions:
        return ()
    text = (
        f"{counted.workload}: ktrial's agent executed {agent:,} instructions, and the kernel some for it, "
        "in the regions that the program marks"
    )
    advice = "print outside of the regions: the agent wakes up and reads what is printed"
    return (DataWarning(kind=WarningKind.MARKS, text=text, advice=advice),)


def _check_symbols_fit(counts: RegionCounts, kernel: Kernel) -> None:
    """Raise NoSymbolsInGuest where names would be wrong.

    A kernel that moved itself by a few MiB runs nearly wholly at addresses that have a name, but another
    function's, whose first instruction hardly ever runs.
    """
    # What has no symbol (`[unknown]`, `[bpf: NAME]`) has no first instruction that could be seen to run.
    never = [
        function
        for function in counts.functions
        if not function.entered and not function.symbol.startswith("[")
    ]
    problem = ""
    if counts.unknown > _MOST_UNKNOWN * counts.kernel:
        problem = f"more than {_MOST_UNKNOWN:.0%} of what it ran is at addresses that have no name"
    elif sum(function.instructions for function in never) > _MOST_NEVER_ENTERED * counts.kernel:
        problem = (
            f"more than {_MOST_NEVER_ENTERED:.0%} of what it ran is in functions that were never entered"
        )
    if problem:
        raise NoSymbolsInGuest(
            f"Kernel {kernel.name} does not run where /proc/kallsyms says that it is: {problem}.",
            hint=(
                "it may have moved itself (KASLR) although ktrial boots it with nokaslr: does it have "
                "a command line of its own (CONFIG_CMDLINE_OVERRIDE)?"
            ),
        )


def _programs(files: Iterable[CarriedFile]) -> dict[str, Path]:
    """The programs that may have run, by name: ktrial's own, and those among these files."""
    programs = dict(guest_programs.programs(guest_programs.directory()))
    for carried in files:
        if not carried.directory and not carried.link:
            with carried.host.open("rb") as file:
                if file.read(4) == b"\x7fELF":  # data that is carried along never runs
                    programs[carried.guest] = carried.host
    return programs


# The symbols of a kernel that runs: kept with the kernel, or told by the guest. Each is asked for once.

_FUNCTION = re.compile(r"^[89a-f][0-9a-f]{15} [tTwW] .*\n", re.MULTILINE)
"""A function in the kernel's half of the address space: all that the plugin looks at."""
_TRACING = re.compile(r"(?:ftrace|kprobe_event|trace_event|stacktrace)\w*(?:=|$)")
"""Boot parameters with which the kernel makes trampolines before a workload runs."""


class KernelSymbols:
    """Symbols by boot, for all trials of a run. May be asked from several threads."""

    def __init__(self, *, wanted: bool = True) -> None:
        """`wanted`: tell which function did what; without, a trial has its numbers alone, and sooner."""
        self.wanted = wanted
        self._known: dict[object, KernelFunctions] = {}
        self._lock = threading.Lock()

    def of(self, target: CountingTarget, boot: Boot) -> KernelFunctions:
        """The symbols of the system that `target` is. Raises MachineError."""
        if not self.wanted:
            return KernelFunctions("")
        # Modules lie elsewhere in each boot; the image, without KASLR, is where it is.
        key = boot if _has_code_of_its_own(boot) else boot.kernel.image
        with self._lock:
            if key not in self._known:
                self._known[key] = _look_up(target, boot)
            return self._known[key]


_OF_THIS_TIME = frozenset({Outcome.MACHINE_FAILED.value, Outcome.HUNG.value})
"""Ends that say nothing about the kernel's names: as an answer they would lose all trials' functions."""
_OF_A_GUEST_THAT_ENDED = "its configuration is not what is wrong: see why it ends when /proc/kallsyms is read"


def _has_code_of_its_own(boot: Boot) -> bool:
    """Whether the boot's functions are others than those of the image: modules, trampolines of tracers."""
    return bool(boot.modules) or any(map(_TRACING.match, boot.parameters))


def _look_up(target: CountingTarget, boot: Boot) -> KernelFunctions:
    try:
        text = target.kallsyms() if _has_code_of_its_own(boot) else _of_image(target, boot.kernel)
    except NoSymbolsInGuest as error:
        return KernelFunctions("", error.problem)
    except GuestEnded as error:
        if error.outcome in _OF_THIS_TIME:
            raise  # that trial failed; the next one asks again
        reason = f"the guest ended while it was asked: {error.reason}"
        return KernelFunctions("", reason, _OF_A_GUEST_THAT_ENDED)
    functions = "".join(_FUNCTION.findall(text))
    if not functions:
        return KernelFunctions("", "/proc/kallsyms names no function with an address")
    return KernelFunctions(functions)


def _of_image(target: CountingTarget, kernel: Kernel) -> str:
    stored = kept_kallsyms(kernel)
    if stored is not None:
        return stored
    from ktrial.kernels.kallsyms_table import kallsyms_in  # what reads images takes its time to load

    text = kallsyms_in(kernel) or target.kallsyms()
    try:
        save_symbols(kernel, text)
    except ValueError as error:
        raise NoSymbolsInGuest(name=kernel.name, problem=str(error)) from None
    return text
