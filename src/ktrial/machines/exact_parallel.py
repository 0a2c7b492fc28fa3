"""The machine `exact-parallel`: several CPUs in parallel virtual time. Two runs, the same numbers.

QEMU's TCG without instruction counting, and crates/parallel in it. docs/parallel.md: what the numbers mean.
"""

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from ktrial.file_digests import digest_of_file
from ktrial.installation import cache_directory
from ktrial.machines import PreparationProgress, guest_programs
from ktrial.machines.errors import MachineError, MachineUsageError, PluginCountsUnreadable
from ktrial.machines.guest_programs import coalesce, parallel
from ktrial.machines.qemu import program, snapshot, translated
from ktrial.machines.qemu import program as qemu
from ktrial.machines.qemu.boot import (
    BOARD,
    DEVICES,
    EXACT_CPU,
    EXACT_PARAMETERS,
    EXACT_SEED,
    HEADLESS,
    boot_files,
    cpu_model_for,
    date_arguments,
    size_arguments,
)
from ktrial.machines.qemu.plugin_counts import named
from ktrial.machines.qemu.process import Children, inherited_path, memory_file
from ktrial.machines.qemu.program import Qemu
from ktrial.machines.qemu.snapshot import SnapshotMachine, SnapshotSetup, SnapshotTarget, kallsyms
from ktrial.machines.qemu.snapshot_cache import SnapshotCache
from ktrial.machines.qemu.watchdog import Limits
from ktrial.model.machine import NO_FILES, Boot, FileSet, MachineIdentity
from ktrial.model.parallel import (
    MOST_CPUS,
    PAUSE_NS,
    TRANSFER_NS,
    CountedByFunction,
    CpuCounts,
    CpuShare,
    FunctionOnCpus,
    IdleAfter,
    MemoryModel,
    ParallelCounts,
    Topology,
    WaitedFor,
)
from ktrial.model.profile import (
    PROGRAM,
    FunctionCount,
    Marking,
    OperationCounts,
    PageCount,
    RegionCounts,
    StringCounts,
)
from ktrial.model.workload import CountedBy, Mode
from ktrial.target import PROTOCOL, Run, Step, StepResult
from ktrial.text_lines import lines_of

NAME = "exact-parallel"


@dataclass(frozen=True)
class ParallelSetup(SnapshotSetup):
    """A boot of the machine `exact-parallel`, ready to be started."""

    seed: int = 0
    """Of the CPUs' first offsets, and of who is first in each round. A boot for a snapshot has 0."""
    out: str = ""
    """Where the plugin writes its counts to; empty: nowhere."""
    symbols: str = ""
    """The kernel's symbols, in a file, to count by function; empty: functions are not counted."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """QEMU's, without the quantum, which is the plugin's."""
        return machine_arguments(self.boot, self.identity.cpu_model)

    @property
    def limits(self) -> Limits:
        """The guest's own time is held by the plugin: QEMU's main loop has another clock."""
        return Limits(self.boot.limit_instructions, self.boot.limit_seconds, time_is_up=TIME_IS_UP)

    @property
    def read_files(self) -> tuple[Path, ...]:
        """All files that QEMU's arguments name."""
        return (*super().read_files, self.preload, *_node_table(self.boot))

    def loading(self, state: bytes | None) -> tuple[str, ...]:
        """QEMU's arguments that load the plugin. Raises CannotLoadState."""
        clock = 0 if state is None else snapshot.clock_in(state, self.machine)
        own = plugin_arguments(
            self.boot, self.preload, seed=self.seed, clock=clock, out=self.out, symbols=self.symbols
        )
        return (*node_arguments(self.boot), *own, *self.plugin)

    def canonical(self, state: bytes, time_stamp: int) -> bytes:
        """The state with the guest's clock in it, which QEMU does not know. Raises CannotSaveState."""
        return snapshot.clocked(state, time_stamp, self.machine)


# The target of the machine `exact-parallel`: each `perform` starts from the same state, and is counted.


class ParallelTarget(SnapshotTarget):
    """A system with several CPUs that starts anew for every `perform`."""

    def __init__(
        self, setup: ParallelSetup, children: Children, snapshots: SnapshotCache, plain_boot_reason: str
    ) -> None:
        super().__init__(setup, children, snapshots, plain_boot_reason)
        self._prepared = setup

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Do the steps in a fresh copy of the system; each program's result has its `parallel` counts.

        The CPUs' offsets and their order follow from the perturbation, by the programs' layout seed. Raises
        GuestEnded or MachineError.
        """
        return self._performed(steps)

    def by_function(self) -> "CountingParallelTarget":
        """A target of the same system that counts by function. See CountsByFunction."""
        return CountingParallelTarget(
            self._prepared, self._children, self._snapshots, self._plain_boot_reason
        )

    def _performed(self, steps: tuple[Step, ...], symbols: int | None = None) -> tuple[StepResult, ...]:
        with memory_file("ktrial-parallel") as out:
            path = inherited_path(out)
            setup = replace(self._prepared, seed=seed_of(steps), out=path, inherited=(out,))
            if symbols is not None:
                setup = replace(setup, symbols=inherited_path(symbols), inherited=(out, symbols))
            self._setup = setup
            try:
                with self._counts_in(out):
                    results = super().perform(steps)
                return with_counts(results, counts_in(Path(path), self._prepared.machine))
            finally:
                self._setup = self._prepared


_Started = TypeVar("_Started", bound=ParallelTarget)


class CountingParallelTarget(ParallelTarget):
    """The same, which also counts by function."""

    def counted(
        self, steps: tuple[Step, ...], symbols: str = "", *, calls: bool = False
    ) -> tuple[StepResult, ...]:
        """As `perform`; what each program's regions had by function is its result's `region`.

        `symbols`: /proc/kallsyms of the kernel that runs. Calls are not followed on this machine. Raises
        GuestEnded or MachineError.
        """
        with memory_file("ktrial-symbols", symbols.encode("ascii", errors="replace")) as names_file:
            results = self._performed(steps, names_file)
        return tuple(
            result.model_copy(update={"region": region_of(result.parallel)}) if result.parallel else result
            for result in results
        )

    def kallsyms(self) -> str:
        """What this system says in /proc/kallsyms. Raises NoSymbolsInGuest, GuestEnded, MachineError."""
        return kallsyms(self, self._snapshots, self._prepared)


class ParallelMachine(SnapshotMachine):
    """Trials on several CPUs, in simulated time. Needs no privilege, no /dev/kvm and no quiet machine."""

    name = NAME
    mode = Mode.EXACT_PARALLEL

    def __init__(self, guest: Path | None = None, cache: Path | None = None) -> None:
        super().__init__(guest, cache)
        self._by_function = False

    def count_by(self, count: CountedBy | None) -> None:
        """The plugin: trials are counted by function, too, which takes longer. Else they are not."""
        self._by_function = count is CountedBy.PLUGIN

    def check(self) -> None:
        """Raise MachineError or GuestProgramsMissing where something is missing here."""
        check_qemu(program.check(NAME), NAME)
        guest_programs.programs(self._guest)
        guest_programs.parallel()

    def elsewhere(self) -> "Callable[[], ParallelMachine]":
        """A machine that counts as this one does. See PortableMachine."""
        return _CountsByFunction() if self._by_function else ParallelMachine

    def has_to_agree(self) -> dict[str, str]:
        """See PortableMachine."""
        programs = guest_programs.digest_of_all(self._guest)
        return qemu.has_to_agree(qemu.find(NAME), programs, self.mode.value)

    def prepare(self, boot: Boot, progress: PreparationProgress) -> None:
        """Boot once and keep a snapshot, unless there is one. Raises MachineError or GuestEnded."""
        self._ensure_snapshot(self._setup(boot), progress)

    def executed_in_boot(self, boot: Boot) -> frozenset[int]:
        """See TellsOfBoots. One more boot, of which nothing is kept. Raises MachineError or GuestEnded."""
        return translated.executed_in(self._setup(boot), self._children)

    @contextmanager
    def start(self, boot: Boot, carried: FileSet = NO_FILES) -> Iterator[ParallelTarget]:
        """Yield a target whose `perform`s start from the snapshot. Raises MachineError or GuestEnded."""
        kind = CountingParallelTarget if self._by_function else ParallelTarget
        yield self._started(boot, carried, kind)

    @contextmanager
    def instrumented(self, boot: Boot, carried: FileSet = NO_FILES) -> Iterator[CountingParallelTarget]:
        """Yield a target that counts by function. Raises MachineError or GuestEnded."""
        yield self._started(boot, carried, CountingParallelTarget)

    def _started(self, boot: Boot, files: FileSet, kind: type[_Started]) -> _Started:
        setup = self._with_files(self._setup(boot), files, self._setup)
        self._ensure_snapshot(setup)
        reason = self._plain_boot_reasons.get(setup.key, "")
        return kind(setup, self._children, self._snapshots, reason)

    def _setup(self, boot: Boot) -> ParallelSetup:
        self._children.check()
        setup = setup_of(boot, qemu.find(NAME), self._guest, NAME)
        self._in_use.check(boot, setup.facts, setup.files)
        return setup


class _CountsByFunction:
    """Makes a machine that does; there is nothing in it, so that it can be pickled."""

    def __call__(self) -> ParallelMachine:
        machine = ParallelMachine()
        machine.count_by(CountedBy.PLUGIN)
        return machine


MACHINE = ParallelMachine


# One boot of the machine `exact-parallel` with all that it needs found, checked and hashed.

TIME_IS_UP = 124
"""QEMU's exit status where the plugin has ended it: the guest's time is up."""
SUPPORTED_QEMUS = ((7, 2), (10, 0))
"""The versions of QEMU whose inside the plugin knows, and was tested with (crates/parallel)."""
CPU_MODEL = f"{EXACT_CPU},-erms,-fsrm,-monitor,-hypervisor"
"""TCG runs each iteration of a REP instruction by itself; without ERMS and FSRM kernels copy in plain loops.
With several CPUs TCG's `mwait` is a `pause`, and no idle CPU sleeps: without MONITOR kernels halt.
Where they see a hypervisor, kernels take a test-and-set lock in place of queued spin locks
(`virt_spin_lock`): without it they queue, as on hardware."""


def kernel_parameters(boot: Boot, *, quiet: bool = True) -> str:
    """The kernel's command line: the machine's own parameters, then those of the boot."""
    return " ".join([word for word in EXACT_PARAMETERS if quiet or word != "quiet"] + list(boot.parameters))


def machine_arguments(boot: Boot, cpu_model: str) -> tuple[str, ...]:
    """QEMU's arguments that decide what the guest sees, without those that name files."""
    return (
        *HEADLESS,
        *("-accel", "tcg,thread=single"),
        *BOARD,
        *("-cpu", cpu_model),
        *_cpus(boot),
        *("-seed", str(EXACT_SEED)),
        *date_arguments("vm"),
        *DEVICES,
    )


def _cpus(boot: Boot) -> tuple[str, ...]:
    _, cpus, *memory = size_arguments(boot)
    if boot.topology:
        parts = boot.topology.model_dump(exclude={"nodes_mib"})
        cpus = ",".join([cpus, *(f"{name}={count}" for name, count in parts.items())])
    return ("-smp", cpus, *memory)


def plugin_arguments(
    boot: Boot, plugin: Path, *, seed: int, clock: int, out: str = "", symbols: str = ""
) -> tuple[str, ...]:
    """QEMU's arguments that load the plugin; the guest's time starts at `clock` (ns).

    With `symbols` (a file) it counts by function.
    """
    options: dict[str, object] = {
        "quantum": boot.quantum_ns,
        "seed": seed,
        "clock": clock,
        "limit": boot.limit_instructions,
    }
    if boot.memory_model is MemoryModel.COHERENCE:
        options["transfer"] = TRANSFER_NS
    options |= {name: path for name, path in (("out", out), ("symbols", symbols)) if path}
    return ("-plugin", ",".join([str(plugin), *(f"{name}={value}" for name, value in options.items())]))


def check_qemu(qemu: Qemu, machine: str) -> None:
    """Raise MachineError where the plugin does not know this QEMU's inside."""
    if qemu.version[:2] not in SUPPORTED_QEMUS:
        supported = " and ".join(".".join(map(str, version)) for version in SUPPORTED_QEMUS)
        raise MachineError(
            f"Machine {machine} depends on QEMU's internals, and supports {supported}: {qemu.program} is "
            f"{qemu.text}.",
            hint=(
                "Debian 12 has 7.2, and 10.0 in bookworm-backports; Debian 13 has 10.0; another than "
                "the first in PATH is named with KTRIAL_QEMU=/path/to/program"
            ),
        )


def check_cpus(boot: Boot, machine: str) -> None:
    """Raise MachineError where the machine, the kernel or the topology has not these CPUs and nodes."""
    if boot.cpus > MOST_CPUS:
        raise MachineUsageError(
            f"Machine {machine} has at most {MOST_CPUS} CPUs: {boot.cpus} are asked for.",
            hint=f"cpus = {MOST_CPUS} or fewer in [machine]",
        )
    if boot.topology and boot.topology.cpus != boot.cpus:
        raise MachineUsageError(
            f"Machine {machine}: {boot.topology} are {boot.topology.cpus} CPUs, and {boot.cpus} are "
            "asked for.",
            hint="sockets times cores times threads is the number of CPUs",
        )
    if boot.topology and (problem := boot.topology.nodes_problem(boot.memory_mib)):
        raise MachineUsageError(
            f"Machine {machine}: {problem}.",
            hint=(
                'nodes = ["256M", "256M"] in the topology: one size for each node, and together the memory'
            ),
        )
    most = _most_cpus_of_kernel(boot.kernel.config)
    if most and boot.cpus > most:
        raise MachineUsageError(
            f"Machine {machine}: {boot.cpus} CPUs are asked for, and {boot.kernel.name} is built "
            f"for {most} (CONFIG_NR_CPUS).",
            hint=f"cpus = {most} or fewer in [machine], or a kernel that was built for more",
        )


def _most_cpus_of_kernel(config: Path | None) -> int:
    """CONFIG_NR_CPUS, or 1 of a kernel for one CPU; 0 where it is not known."""
    try:
        text = config.read_text(errors="replace") if config else ""
    except OSError:
        return 0
    if "# CONFIG_SMP is not set" in text:
        return 1
    option = re.search(r"^CONFIG_NR_CPUS=(\d+)$", text, re.MULTILINE)
    return int(option[1]) if option else 0


def _modelled(boot: Boot) -> tuple[str, ...]:
    """What the plugin is told that changes a trial, but no boot."""
    return (f"transfer={TRANSFER_NS}",) if boot.memory_model is MemoryModel.COHERENCE else ()


def _nodes(boot: Boot) -> tuple[str, ...]:
    """The nodes, for the record and the snapshot's key: QEMU is told by a file."""
    if not (boot.topology and boot.topology.nodes_mib):
        return ()
    return (f"nodes={sha256(affinity(boot.topology)).hexdigest()}",)


def setup_of(boot: Boot, qemu: Qemu, guest: Path, machine: str) -> ParallelSetup:
    """Find, check and hash everything. Raises MachineError, GuestProgramsMissing, GuestEnded (no kernel)."""
    check_qemu(qemu, machine)
    check_cpus(boot, machine)
    cpu_model = cpu_model_for(qemu, CPU_MODEL)
    files = boot_files(boot, guest, machine)
    booted = (*machine_arguments(boot, cpu_model), f"quantum={boot.quantum_ns}", *_nodes(boot))
    identity = MachineIdentity(
        machine=machine,
        mode=Mode.EXACT_PARALLEL,
        qemu=qemu.build,
        cpu_model=cpu_model,
        arguments=(*booted, *_modelled(boot)),
        command_line=kernel_parameters(boot),
        agent_digest=files.agent_digest,
        executed=files.executed
        | {"parallel": digest_of_file(parallel()), "coalesce": digest_of_file(coalesce())},
        seed=EXACT_SEED,
    )
    facts = {
        "protocol": str(PROTOCOL),
        "qemu": qemu.build,
        "firmware": qemu.firmware,
        "parallel": identity.executed["parallel"],
        "cpu model": cpu_model,
        "arguments": " ".join(booted),
        "command line": identity.command_line,
        "kernel": files.kernel_digest,
        "initial RAM disk": identity.executed["initial RAM disk"],
        "agent": identity.agent_digest,
        "settle": str(boot.settle_ns),
    }
    verbose_command_line = kernel_parameters(boot, quiet=False)
    return ParallelSetup(machine, boot, qemu, files, facts, identity, parallel(), verbose_command_line)


def seed_of(steps: tuple[Step, ...]) -> int:
    """The first seed among the programs' layouts; 0 where all are fixed: perturbation 0."""
    seeds = (step.layout_seed for step in steps if isinstance(step, Run))
    return next(filter(None, seeds), 0)


def counts_in(path: Path, machine: str) -> tuple[ParallelCounts, ...]:
    """What the plugin wrote: one line a program. Raises PluginCountsUnreadable."""
    counts = []
    for number, line in enumerate(lines_of(path.read_text(errors="replace")), 1):
        try:
            counts.append(ParallelCounts.model_validate_json(line))
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            raise PluginCountsUnreadable(machine=machine, path=path, line=number, problem=problem) from None
    return tuple(counts)


def with_counts(
    results: tuple[StepResult, ...], counts: tuple[ParallelCounts, ...]
) -> tuple[StepResult, ...]:
    """Each program's result with its counts; none where they do not fit, as where a program did not start."""
    programs = sum(result.do == "run" and not result.failure for result in results)
    if programs != len(counts):
        return results
    left = iter(counts)
    return tuple(
        result.model_copy(update={"parallel": next(left)})
        if result.do == "run" and not result.failure
        else result
        for result in results
    )


# What the plugin counted by function on several CPUs, as a profile's region.


def region_of(counts: ParallelCounts) -> RegionCounts | None:
    """The region with the counts of all CPUs, and by CPU; None where functions were not counted.

    A block of instructions counts where it starts, whole, as it does on the CPUs' clocks.
    """
    rows = counts.counted
    if rows is None:
        return None
    cpus = by_cpu(rows, len(counts.cpus))
    functions = tuple(_summed(entry) for entry in cpus.functions)
    kernel = sum(entry.instructions for entry in functions)
    pages = tuple(
        PageCount(address=address, checksum=checksum, instructions=sum(cell[0] for cell in cells))
        for address, checksum, cells in rows.pages
    )
    instructions = kernel + sum(entry.instructions for entry in pages)
    return RegionCounts(
        whole=True,
        instructions=instructions,
        marks=0,
        strings=StringCounts(),
        functions=functions,
        pages=pages,
        operations=_operations(counts, instructions),
        marking=Marking(regions=counts.regions),
        cpus=cpus,
    )


def by_cpu(rows: CountedByFunction, cpus: int) -> CpuCounts:
    """The rows with their names; pages of programs are one."""
    functions: dict[tuple[str, str], list[CpuShare]] = {}
    for symbol, module, cells in rows.functions:
        _add(functions.setdefault(named(symbol, module), _nothing(cpus)), map(_share, cells))
    program = _nothing(cpus)
    for _address, _checksum, cells in rows.pages:
        _add(program, map(_share, cells))
    return CpuCounts(
        time_ns=rows.time,
        functions=tuple(
            FunctionOnCpus(symbol=symbol, module=module, cpus=tuple(shares))
            for (symbol, module), shares in functions.items()
        ),
        program=FunctionOnCpus(symbol=PROGRAM, cpus=tuple(program)),
        waits=tuple(sorted(map(_wait, rows.waits), key=lambda wait: (-wait.ns, wait.symbol, wait.caller))),
        idle=tuple(sorted(map(_idle, rows.idle), key=lambda idle: (-idle.ns, idle.cpu, idle.symbol))),
    )


def _share(cell: tuple[int, int, int, int, int]) -> CpuShare:
    instructions, entered, waited, pauses, lines = cell
    return CpuShare(instructions=instructions, entered=entered, waited=waited, pauses=pauses, lines_ns=lines)


def _nothing(cpus: int) -> list[CpuShare]:
    return [_share((0, 0, 0, 0, 0))] * cpus


def _add(sums: list[CpuShare], shares: Iterable[CpuShare]) -> None:
    for cpu, (total, share) in enumerate(zip(sums, shares, strict=True)):
        sums[cpu] = CpuShare(
            instructions=total.instructions + share.instructions,
            entered=total.entered + share.entered,
            waited=total.waited + share.waited,
            pauses=total.pauses + share.pauses,
            lines_ns=total.lines_ns + share.lines_ns,
        )


def _summed(function: FunctionOnCpus) -> FunctionCount:
    return FunctionCount(
        symbol=function.symbol,
        module=function.module,
        instructions=sum(share.instructions for share in function.cpus),
        entered=sum(share.entered for share in function.cpus),
    )


def _wait(row: tuple[str, str, str, str, int, int]) -> WaitedFor:
    (symbol, module), (caller, caller_module) = named(*row[:2]), named(*row[2:4])
    instructions, pauses = row[4:]
    return WaitedFor(
        symbol=symbol,
        module=module,
        caller=caller,
        caller_module=caller_module,
        ns=instructions + pauses * PAUSE_NS,
    )


def _idle(row: tuple[str, str, str, str, int, int]) -> IdleAfter:
    (symbol, module), (caller, caller_module) = named(*row[:2]), named(*row[2:4])
    cpu, nanoseconds = row[4:]
    return IdleAfter(
        symbol=symbol, module=module, caller=caller, caller_module=caller_module, cpu=cpu, ns=nanoseconds
    )


def _operations(counts: ParallelCounts, instructions: int) -> OperationCounts:
    """A run that marks nothing is one operation."""
    if not counts.operations:
        return OperationCounts(
            count=1, total=instructions, minimum=instructions, maximum=instructions, median=instructions
        )
    return OperationCounts(
        count=counts.operations,
        total=counts.sum,
        minimum=counts.extremes[0],
        maximum=counts.extremes[1],
        median=counts.median,
    )


# NUMA nodes, told to the guest by an ACPI table (SRAT), as QEMU's `-numa` would.
#
# QEMU's own option wants a memory of its own for each node, and a snapshot's RAM is one file. The table
# says to which node a CPU and a range of addresses belong; what a kernel makes of it is the same. ACPI
# specification 6.5, 5.2.16: System Resource Affinity Table.

_BELOW_4G_MIB = 3072
_FITS_BELOW_4G_MIB = 3584
"""The machine `pc` puts RAM below 3.5 GiB in one piece; of more it puts 3 GiB there, the rest from 4 GiB on
(hw/i386/pc_piix.c, pc_init1)."""
_FROM_4G_MIB = 4096
_OF_CPU, _OF_MEMORY = (0, 16), (1, 40)
"""Type and length of an entry."""
_ENABLED = 1
_HEAD = struct.pack("<I8x", 1)
_PLACE = "acpi"


def node_arguments(boot: Boot) -> tuple[str, ...]:
    """QEMU's arguments that give the guest its nodes; none where there are none."""
    tables = (f"sig=SRAT,rev=3,oem_id=KTRIAL,oem_table_id=KTRIAL,data={path}" for path in _node_table(boot))
    return tuple(word for table in tables for word in ("-acpitable", table))


def _node_table(boot: Boot) -> tuple[Path, ...]:
    """The table's file, where there are nodes; it is kept below ktrial's cache, and called by its content."""
    if not (boot.topology and boot.topology.nodes_mib):
        return ()
    table = affinity(boot.topology)
    path = cache_directory() / _PLACE / f"srat-{sha256(table).hexdigest()[:16]}"
    _keep(path, table)
    return (path,)


def affinity(topology: Topology) -> bytes:
    """The table's bytes behind its header: each CPU's node, and each range of RAM's."""
    cpus_a_node = topology.cpus // len(topology.nodes_mib)
    cpus = b"".join(_cpu(_apic_id(topology, cpu), cpu // cpus_a_node) for cpu in range(topology.cpus))
    return _HEAD + cpus + b"".join(_memory(*memory_range) for memory_range in ranges(topology.nodes_mib))


def ranges(nodes_mib: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Node, first address and size in MiB of each range of RAM, in the order of their addresses."""
    below = sum(nodes_mib) if sum(nodes_mib) < _FITS_BELOW_4G_MIB else _BELOW_4G_MIB
    pieces, start = [], 0
    for node, size in enumerate(nodes_mib):
        end = start + size
        if start < below:
            pieces.append((node, start, min(end, below) - start))
        if end > below:
            first = max(start, below)
            pieces.append((node, first - below + _FROM_4G_MIB, end - first))
        start = end
    return pieces


def _apic_id(topology: Topology, cpu: int) -> int:
    """As QEMU has it: threads, cores and sockets have bits of their own (include/hw/i386/topology.h)."""
    core, thread = divmod(cpu, topology.threads)
    socket, core = divmod(core, topology.cores)
    of_threads, of_cores = (topology.threads - 1).bit_length(), (topology.cores - 1).bit_length()
    return (socket << (of_threads + of_cores)) | (core << of_threads) | thread


def _cpu(apic_id: int, node: int) -> bytes:
    return struct.pack("<BBBBIBBBBI", *_OF_CPU, node, apic_id, _ENABLED, 0, 0, 0, 0, 0)


def _memory(node: int, start_mib: int, size_mib: int) -> bytes:
    return struct.pack("<BBIHQQIIQ", *_OF_MEMORY, node, 0, start_mib << 20, size_mib << 20, 0, _ENABLED, 0)


def _keep(path: Path, table: bytes) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partly = path.with_suffix(f".{id(table)}.part")
    partly.write_bytes(table)
    partly.replace(path)
