"""One boot of the machine `exact-parallel` with all that it needs found, checked and hashed."""

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ktrial.file_digests import digest_of_file
from ktrial.machines.errors import (
    CpusBeyondKernel,
    CpusBeyondMachine,
    NodesImpossible,
    QemuInsideUnknown,
    TopologyOfOtherCpus,
)
from ktrial.machines.exact_parallel.nodes import affinity, node_arguments
from ktrial.machines.guest_programs import coalesce, parallel
from ktrial.machines.qemu import migration
from ktrial.machines.qemu.arguments import (
    BOARD,
    DEVICES,
    EXACT_CPU,
    EXACT_PARAMETERS,
    EXACT_SEED,
    HEADLESS,
    cpu_model_for,
    date_arguments,
    size_arguments,
)
from ktrial.machines.qemu.boot import boot_files
from ktrial.machines.qemu.program import Qemu
from ktrial.machines.qemu.snapshot_setup import SnapshotSetup
from ktrial.machines.qemu.watchdog import Limits
from ktrial.model.machine import Boot, MachineIdentity
from ktrial.model.parallel import MOST_CPUS, TRANSFER_NS, MemoryModel
from ktrial.model.workload import Mode
from ktrial.target.guest_plan import PROTOCOL

TIME_IS_UP = 124
"""QEMU's exit status where the plugin has ended it: the guest's time is up."""
KNOWN = ((7, 2), (10, 0))
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
    asked: dict[str, object] = {
        "quantum": boot.quantum_ns,
        "seed": seed,
        "clock": clock,
        "limit": boot.limit_instructions,
    }
    if boot.memory_model is MemoryModel.COHERENCE:
        asked["transfer"] = TRANSFER_NS
    asked |= {name: path for name, path in (("out", out), ("symbols", symbols)) if path}
    return ("-plugin", ",".join([str(plugin), *(f"{name}={value}" for name, value in asked.items())]))


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

    def loading(self, state: bytes | None) -> tuple[str, ...]:
        """QEMU's arguments that load the plugin. Raises CannotLoadState."""
        clock = 0 if state is None else migration.clock_in(state, self.machine)
        return node_arguments(self.boot) + plugin_arguments(
            self.boot, self.preload, seed=self.seed, clock=clock, out=self.out, symbols=self.symbols
        )

    def canonical(self, state: bytes, time_stamp: int) -> bytes:
        """The state with the guest's clock in it, which QEMU does not know. Raises CannotSaveState."""
        return migration.clocked(state, time_stamp, self.machine)


def check_qemu(qemu: Qemu, machine: str) -> None:
    """Raise QemuInsideUnknown where the plugin does not know this QEMU's inside."""
    if qemu.version[:2] not in KNOWN:
        known = " and ".join(".".join(map(str, version)) for version in KNOWN)
        raise QemuInsideUnknown(machine=machine, program=qemu.program, found=qemu.text, known=known)


def check_cpus(boot: Boot, machine: str) -> None:
    """Raise CpusBeyondMachine, CpusBeyondKernel, TopologyOfOtherCpus or NodesImpossible."""
    if boot.cpus > MOST_CPUS:
        raise CpusBeyondMachine(machine=machine, cpus=boot.cpus, most=MOST_CPUS)
    if boot.topology and boot.topology.cpus != boot.cpus:
        raise TopologyOfOtherCpus(
            machine=machine, topology=boot.topology, product=boot.topology.cpus, cpus=boot.cpus
        )
    if boot.topology and (problem := boot.topology.nodes_problem(boot.memory_mib)):
        raise NodesImpossible(machine=machine, problem=problem)
    most = _most_cpus_of_kernel(boot.kernel.config)
    if most and boot.cpus > most:
        raise CpusBeyondKernel(machine=machine, cpus=boot.cpus, kernel=boot.kernel.name, most=most)


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


def prepare(boot: Boot, qemu: Qemu, guest: Path, machine: str) -> ParallelSetup:
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
    talkative = kernel_parameters(boot, quiet=False)
    return ParallelSetup(machine, boot, qemu, files, facts, identity, parallel(), talkative)
