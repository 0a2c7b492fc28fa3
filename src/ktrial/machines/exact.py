"""The machine `exact`: QEMU's TCG with instruction counting. Two runs, the same numbers to the last digit.

`docs/architecture/exact-machine.md` says how, and what can break it.
"""

import os
import subprocess
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from ktrial.file_digests import digest_of_file
from ktrial.machines import PreparationProgress, guest_programs
from ktrial.machines.errors import CannotLoadState, HostProblem, MachineError, MachineStopped, NoPluginHere
from ktrial.machines.guest_programs import coalesce, lockstep, rewind
from ktrial.machines.qemu import plugin, program, translated
from ktrial.machines.qemu.boot import (
    BOARD,
    DEVICES,
    EXACT_CPU,
    EXACT_PARAMETERS,
    EXACT_SEED,
    HEADLESS,
    Unstarted,
    boot_files,
    cpu_model_for,
    date_arguments,
    size_arguments,
)
from ktrial.machines.qemu.kept import Afterwards, IdleQemu, KeptDiffers, KeptQemu, can_be_kept
from ktrial.machines.qemu.outcome import GuestFailure
from ktrial.machines.qemu.plugin import CacheShapes, NoPlugin, PluginBuild
from ktrial.machines.qemu.plugin_counts import GeneratedCode, code_told, told_apart, with_ksymbols
from ktrial.machines.qemu.process import Children, inherited_path, memory_file
from ktrial.machines.qemu.program import Qemu
from ktrial.machines.qemu.snapshot import SnapshotMachine, SnapshotSetup, SnapshotTarget, kallsyms
from ktrial.machines.qemu.snapshot_cache import SnapshotCache
from ktrial.model.base import digest
from ktrial.model.machine import NO_FILES, Boot, FileSet, MachineIdentity
from ktrial.model.profile import RegionCounts
from ktrial.model.trial import Outcome
from ktrial.model.workload import CountedBy, Mode
from ktrial.target import PROTOCOL, Step, StepResult
from ktrial.target.errors import GuestEnded
from ktrial.text_lines import lines_of

NAME = "exact"
KEEP_VARIABLE = "KTRIAL_KEEP"


# The target of the exact machine that counts: its guests run under the QEMU plugin.


class InstrumentedTarget(SnapshotTarget):
    """A system that starts anew for every `perform`, as SnapshotTarget, and can be counted."""

    def __init__(
        self,
        setup: SnapshotSetup,
        children: Children,
        snapshots: SnapshotCache,
        plain_boot_reason: str,
        build: PluginBuild,
        idle: IdleQemu | None = None,
    ) -> None:
        """`idle`: a QEMU that serves many trials; None: each trial has one of its own."""
        super().__init__(setup, children, snapshots, plain_boot_reason)
        self._build = build
        self._idle = idle

    @property
    def identity(self) -> MachineIdentity:
        """What of the machine can change a result, with the plugin that counts."""
        plain = super().identity
        executed = plain.executed | {"plugin": digest_of_file(self._build.path)}
        if self._idle is not None and self._is_kept(b""):
            executed["rewind"] = digest_of_file(rewind())
        if self._setup.boot.model:
            executed["machine model"] = digest(self._setup.boot.model)
        return plain.model_copy(update={"executed": executed})

    def counted(
        self,
        steps: tuple[Step, ...],
        symbols: str = "",
        *,
        calls: bool = False,
        caches: CacheShapes | None = None,
    ) -> tuple[StepResult, ...]:
        """Do the steps under the plugin; what it counts of each program is its result's `region`.

        `symbols`: /proc/kallsyms of the kernel that runs; without it all of the kernel is one function.
        `calls`: follow calls; `caches`: model these, too, several times slower (one CPU only, both). Raises
        GuestEnded or MachineError.
        """
        symbols = told_apart(symbols)
        if self._idle is None or caches or not self._is_kept(self._plan(steps)):
            return self._counted_alone(steps, symbols, calls=calls, caches=caches)
        alone = partial(self._counted_alone, steps, symbols, calls=calls)
        key = (self._setup.key, self._build.path, calls, symbols)
        kept = self._idle.take(key)
        try:
            if kept is None:
                return self._counted_first(self._idle, key, steps, symbols, calls=calls) or alone()
            results = self._counted_by(kept, self._idle, key, steps)
        except MachineStopped:
            raise
        except (GuestEnded, MachineError):  # what becomes of a bad trial, a fresh QEMU tells
            if kept is None:
                raise
            results = None
        if results is None:
            return alone()
        if self._idle.is_to_be_checked():
            self.check_same(results, alone())
        return results

    def _is_kept(self, plan: bytes) -> bool:
        setup = self._setup
        plain = not setup.boot.model and not self._plain_boot_reason
        return plain and can_be_kept(setup.qemu.version, setup.boot.cpus, plan)

    def _counted_first(
        self, idle: IdleQemu, key: Hashable, steps: tuple[Step, ...], symbols: str, *, calls: bool
    ) -> tuple[StepResult, ...] | None:
        """In a QEMU that may serve others later; None where there is none."""
        arguments = partial(plugin.arguments, self._build, vector=True, calls=calls)
        setup = replace(self._setup, named=(self._build.path,))
        plan = self._plan(steps)
        try:
            kept = KeptQemu(setup, self._children, self._snapshots, plan, arguments, symbols)
        except (CannotLoadState, Unstarted):
            return None
        return self._counted_by(kept, idle, key, steps, fresh=True)

    def _counted_by(
        self, kept: KeptQemu, idle: IdleQemu, key: Hashable, steps: tuple[Step, ...], *, fresh: bool = False
    ) -> tuple[StepResult, ...] | None:
        """What a QEMU that is kept counts; it waits for the next trial then, or has ended. None: do it again.

        Raises GuestEnded or MachineError.
        """
        afterwards = Afterwards.ENDS
        try:
            plan = self._plan(steps)
            if not fresh and not kept.give(plan):
                raise MachineError(machine=self._setup.machine, problem="its QEMU takes no other plan")
            results = self._results(kept.process, *self._run(kept.process), ready=True)
            with kept.counts() as counts:
                runs = plugin.read_runs(counts, lambda: self._generated(steps))
            if problem := _mismatch(results, len(runs)):
                raise self._ended(GuestFailure(Outcome.WORKLOAD_FAILED, problem), results)
            afterwards = kept.rewind()
            return None if afterwards is Afterwards.DOUBTFUL else _with_regions(results, runs)
        finally:
            if afterwards is Afterwards.SERVES:
                idle.keep(key, kept)
            else:
                kept.close()

    def check_same(self, kept: tuple[StepResult, ...], fresh: tuple[StepResult, ...]) -> None:
        """Raise KeptDiffers where a kept QEMU has not counted what a fresh one counts, to the last digit."""
        if kept == fresh:
            return
        counts = [
            ", ".join(f"{result.region.instructions:,}" for result in results if result.region)
            for results in (kept, fresh)
        ]
        raise KeptDiffers(machine=self._setup.machine, kept=counts[0], fresh=counts[1])

    def _counted_alone(
        self,
        steps: tuple[Step, ...],
        symbols: str,
        *,
        calls: bool = False,
        caches: CacheShapes | None = None,
    ) -> tuple[StepResult, ...]:
        """In a QEMU that ends with its trial."""
        with (
            memory_file("ktrial-symbols", symbols.encode("ascii", errors="replace")) as names_file,
            memory_file("ktrial-counts") as out,
        ):
            counts = Path(inherited_path(out))
            names = names_file if symbols else None
            with self._counts_in(out):
                results = self.counted_into(out, steps, names, calls=calls, caches=caches)
            runs = plugin.read_runs(counts, lambda: self._generated(steps))
            if problem := _mismatch(results, len(runs)):
                raise self._ended(GuestFailure(Outcome.WORKLOAD_FAILED, problem), results)
            return _with_regions(results, runs)

    def _generated(self, steps: tuple[Step, ...]) -> tuple[GeneratedCode, ...]:
        """What code the kernel makes in these steps: they are done again, and it is asked.

        It is none where the guest cannot tell. Raises MachineError.
        """
        try:
            return code_told(self.perform(with_ksymbols(steps)))
        except GuestEnded:
            return ()

    def counted_into(
        self,
        out: int,
        steps: tuple[Step, ...],
        symbols: int | None,
        *,
        calls: bool = False,
        caches: CacheShapes | None = None,
    ) -> tuple[StepResult, ...]:
        """As `counted`, but the plugin writes to the open file `out`, and nothing is read from there.

        Whoever QEMU is here has to be able to open both anew: files in memory, or files for all.
        """
        plain, model = self._setup, self._setup.boot.model
        named = None if symbols is None else Path(inherited_path(symbols))
        added = plugin.arguments(
            self._build,
            Path(inherited_path(out)),
            named,
            vector=True,
            calls=calls,
            caches=caches,
            model=model,
        )
        inherited = (out,) if symbols is None else (out, symbols)
        self._setup = replace(plain, plugin=added, inherited=inherited, named=(self._build.path,))
        try:
            return self.perform(steps)
        finally:
            self._setup = plain

    def kallsyms(self) -> str:
        """What this system says in /proc/kallsyms. Raises NoSymbolsInGuest, GuestEnded, MachineError."""
        return kallsyms(self, self._snapshots, self._setup)


class ExactMachine(SnapshotMachine):
    """Trials in QEMU, counted in instructions. Needs no privilege, no /dev/kvm and no quiet machine."""

    name = NAME

    def __init__(
        self,
        guest: Path | None = None,
        cache: Path | None = None,
        count: CountedBy | None = None,
        *,
        keeps: bool | None = None,
    ) -> None:
        """`guest`, `cache`: see SnapshotMachine. `count`: see `count_by`.

        `keeps`: whether a QEMU serves many trials of a kernel, where it can; None: unless KTRIAL_KEEP is 0.
        """
        super().__init__(guest, cache)
        if keeps is None:
            keeps = os.environ.get(KEEP_VARIABLE) != "0"
        self._idle = IdleQemu() if keeps else None
        self._asked_count = count
        self._counting: _Counting | None = None

    def count_by(self, count: CountedBy | None) -> None:
        """What counts the instructions: None is the plugin where it loads here, and the clock elsewhere."""
        self._asked_count, self._counting = count, None

    @property
    def mode(self) -> Mode:
        """Known once `check` has passed; before, whatever that would raise is raised."""
        return Mode.EXACT_PLUGIN if self._chosen().build else Mode.EXACT_CLOCK

    def check(self) -> None:
        """Raise MachineError or GuestProgramsMissing where something is missing here.

        NoPluginHere among them, where the plugin has to count and does not load.
        """
        program.check(NAME)
        guest_programs.programs(self._guest)
        self._chosen()

    def elsewhere(self) -> "Callable[[], ExactMachine]":
        """A machine that counts by the same. See PortableMachine."""
        counted = CountedBy.PLUGIN if self.mode is Mode.EXACT_PLUGIN else CountedBy.CLOCK
        return partial(ExactMachine, count=counted)

    def has_to_agree(self) -> dict[str, str]:
        """See PortableMachine."""
        programs = guest_programs.digest_of_all(self._guest)
        return program.has_to_agree(program.find(NAME), programs, self.mode.value)

    def prepare(self, boot: Boot, progress: PreparationProgress) -> None:
        """Boot once and keep a snapshot, unless there is one. Raises MachineError or GuestEnded."""
        self._ensure_snapshot(self._setup(boot, self.mode), progress)

    def executed_in_boot(self, boot: Boot) -> frozenset[int]:
        """See TellsOfBoots. One more boot, of which nothing is kept. Raises MachineError or GuestEnded."""
        return translated.executed_in(self._setup(boot, self.mode), self._children)

    @contextmanager
    def start(self, boot: Boot, carried: FileSet = NO_FILES) -> Iterator[SnapshotTarget]:
        """Yield a target whose every `perform` starts from the snapshot; it can count in mode exact-plugin.

        Raises MachineError or GuestEnded.
        """
        if self.mode is Mode.EXACT_PLUGIN:
            with self.instrumented(boot, carried) as target:
                yield target
            return
        setup = self._started(boot, carried, Mode.EXACT_CLOCK)
        reason = self._plain_boot_reasons.get(setup.key, "")
        yield SnapshotTarget(setup, self._children, self._snapshots, reason)

    @contextmanager
    def instrumented(self, boot: Boot, carried: FileSet = NO_FILES) -> Iterator[InstrumentedTarget]:
        """Yield a target whose every `counted` is a `perform` under the plugin, in a CPU shown as it is.

        Whatever the machine's own mode is. Raises NoPluginHere, MachineError or GuestEnded.
        """
        build = usable_plugin(program.find(NAME), self._guest, NAME)
        setup = self._started(boot, carried, Mode.EXACT_PLUGIN)
        reason = self._plain_boot_reasons.get(setup.key, "")
        yield InstrumentedTarget(setup, self._children, self._snapshots, reason, build, self._idle)

    def _started(self, boot: Boot, files: FileSet, mode: Mode) -> SnapshotSetup:
        """What trials start from, which is there."""
        set_up = partial(self._setup, mode=mode)
        setup = self._with_files(set_up(boot), files, set_up)
        self._ensure_snapshot(setup)
        return setup

    def _setup(self, boot: Boot, mode: Mode) -> SnapshotSetup:
        self._children.check()
        installed = program.find(NAME)
        setup = setup_of(boot, installed, self._guest, NAME, mode)
        self._in_use.check(boot, setup.facts, setup.files, mode)
        reasons = {
            "clock_reason": self._chosen().reason if mode is Mode.EXACT_CLOCK else "",
            "flags_reason": flags_problem(installed),
        }
        identity = setup.identity.model_copy(update=reasons)
        return replace(setup, identity=identity)

    def _chosen(self) -> "_Counting":
        if self._counting is None and self._asked_count is CountedBy.CLOCK:
            self._counting = _Counting(None)
        if self._counting is None:
            try:
                self._counting = _Counting(usable_plugin(program.find(NAME), self._guest, NAME))
            except NoPluginHere as error:
                if self._asked_count is CountedBy.PLUGIN:
                    raise
                self._counting = _Counting(None, error.problem)
        return self._counting


@dataclass(frozen=True)
class _Counting:
    """What counts: the plugin's build, or the guest's clock."""

    build: PluginBuild | None
    reason: str = ""
    """Why the plugin does not load, where the clock was not asked for."""


MACHINE = ExactMachine


# One boot with all that it needs found and hashed: command lines, files, and the key of its snapshot.
#
# It is the command lines, QEMU's and the kernel's, that make a boot the same to the last instruction.

OLDEST_FOR_CPUS = (10, 0)
"""7.2 hangs with `-icount` and more than one CPU; 10.0 gives the same numbers at 1, 2 and 4 CPUs."""
CPU_MODEL = f"{EXACT_CPU},-erms,-fsrm"
"""TCG counts every iteration of a REP instruction; without ERMS and FSRM kernels copy in plain loops."""
CPU_MODEL_WITH_PLUGIN = f"{EXACT_CPU},+fsrm,x-force-features=on"
"""The plugin counts a REP instruction once, as hardware does: the CPU shows ERMS and FSRM, as new CPUs do.
7.2's TCG runs what FSRM stands for, a short `rep movsb`, but does not show it unless it is forced to."""
_ONE_CPU_ONLY = ("noapictimer",)


def kernel_parameters(boot: Boot, *, quiet: bool = True) -> str:
    """The kernel's command line: the machine's own parameters, then those of the boot.

    Of a parameter that is there twice the kernel takes the last, so that a study can override any.
    Without `quiet` the kernel tells all on its console: slower, and only for finding out why it ended.
    """
    parameters = EXACT_PARAMETERS + (_ONE_CPU_ONLY if boot.cpus == 1 else ())
    return " ".join([word for word in parameters if quiet or word != "quiet"] + list(boot.parameters))


def machine_arguments(boot: Boot, cpu_model: str = CPU_MODEL) -> tuple[str, ...]:
    """QEMU's arguments that decide what the guest sees, without those that name files."""
    return (
        *HEADLESS,
        *("-accel", "tcg"),
        *BOARD,
        *("-cpu", cpu_model),
        *size_arguments(boot),
        *("-seed", str(EXACT_SEED)),
        *("-icount", "shift=0,sleep=off"),
        *date_arguments("vm"),
        *DEVICES,
    )


def check_cpus(cpus: int, qemu: Qemu, machine: str) -> None:
    """Raise HostProblem where this QEMU cannot count the instructions of so many CPUs."""
    if cpus > 1 and qemu.version[:2] < OLDEST_FOR_CPUS:
        needed = ".".join(str(part) for part in OLDEST_FOR_CPUS)
        raise HostProblem(
            f"Machine {machine} runs {cpus} CPUs only with QEMU {needed} or later: {qemu.program} is "
            f"{qemu.text}, which hangs with more than one CPU when it counts instructions.",
            hint="the machine exact-parallel runs several CPUs on this QEMU: ktrial scale --cpus "
            f'{cpus}, or kind = "exact-parallel" in [machine] of a study file; a later QEMU is named with '
            "KTRIAL_QEMU=/path/to/program",
        )


_PRELOADED = {"lockstep": lockstep, "coalesce": coalesce}


def setup_of(
    boot: Boot, qemu: Qemu, guest: Path, machine: str, mode: Mode = Mode.EXACT_CLOCK
) -> SnapshotSetup:
    """Find and hash everything. Raises MachineError, GuestProgramsMissing, or GuestEnded (not a kernel)."""
    check_cpus(boot.cpus, qemu, machine)
    cpu_model = cpu_model_for(qemu, CPU_MODEL_WITH_PLUGIN if mode is Mode.EXACT_PLUGIN else CPU_MODEL)
    files = boot_files(boot, guest, machine)
    identity = MachineIdentity(
        machine=machine,
        mode=mode,
        qemu=qemu.build,
        cpu_model=cpu_model,
        arguments=machine_arguments(boot, cpu_model),
        command_line=kernel_parameters(boot),
        agent_digest=files.agent_digest,
        executed=files.executed | {name: digest_of_file(locate()) for name, locate in _PRELOADED.items()},
        seed=EXACT_SEED,
    )
    facts = {
        "protocol": str(PROTOCOL),
        "qemu": qemu.build,
        "firmware": qemu.firmware,
        "lockstep": identity.executed["lockstep"],
        "cpu model": cpu_model,
        "arguments": " ".join(identity.arguments),
        "command line": identity.command_line,
        "kernel": files.kernel_digest,
        "initial RAM disk": identity.executed["initial RAM disk"],
        "agent": identity.agent_digest,
        "settle": str(boot.settle_ns),
    }
    verbose_command_line = kernel_parameters(boot, quiet=False)
    return SnapshotSetup(machine, boot, qemu, files, facts, identity, lockstep(), verbose_command_line)


def _mismatch(results: tuple[StepResult, ...], runs: int) -> str:
    """Why the counts cannot be given to the programs, without giving one another's; empty where they can.

    Marks are instructions, which any program in the guest can execute.
    """
    programs = sum(result.do == "run" for result in results)
    if programs == runs:
        return ""
    cause = "does a program mark an empty region, or a run, which only the agent may mark?"
    return f"{programs} programs ran, and the plugin counted {runs}: {cause}"


def _with_regions(
    results: tuple[StepResult, ...], regions: tuple[RegionCounts | None, ...]
) -> tuple[StepResult, ...]:
    """Each program's result with its region."""
    left = iter(regions)
    return tuple(
        result.model_copy(update={"region": next(left)}) if result.do == "run" else result
        for result in results
    )


def usable_plugin(installed: Qemu, guest: Path, machine: str) -> PluginBuild:
    """The plugin's build for this QEMU, which has been seen to load. Raises NoPluginHere."""
    build = plugin.find(installed.version, guest)
    problem = build if isinstance(build, NoPlugin) else _problem(installed, build)
    if isinstance(build, NoPlugin) or problem:
        reason = problem.reason if problem else ""
        raise NoPluginHere(machine=machine, program=installed.program, problem=reason)
    return build


@lru_cache
def _problem(installed: Qemu, build: PluginBuild) -> NoPlugin | None:
    return plugin.check(installed, build)


# The flags behind `cmpxchg8b` and `cmpxchg16b`, which QEMU mistakes before 8.0 (crates/lockstep).

_FIRST_RIGHT = (8, 0, 0)
_SPEAKER = "lockstep: "
_PATIENCE = 20.0


def flags_problem(installed: Qemu) -> str:
    """What `lockstep.so` says of a QEMU whose flags it cannot mend; empty where they are right.

    Raises GuestProgramsMissing.
    """
    return "" if installed.version >= _FIRST_RIGHT else _lockstep_complaint(installed.program, lockstep())


@lru_cache
def _lockstep_complaint(program: Path, preloaded: Path) -> str:
    """It speaks as soon as the program is loaded, whatever the program is asked for."""
    environment = {**os.environ, "LD_PRELOAD": str(preloaded)}
    try:
        finished = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_PATIENCE, check=False,
            env=environment,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"whether they are cannot be told: {error}"
    lines = (line for line in lines_of(finished.stderr) if line.startswith(_SPEAKER))
    return next((line.removeprefix(_SPEAKER) for line in lines), "")
