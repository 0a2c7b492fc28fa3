"""What a machine is asked to boot, and how it says what it is."""

from pathlib import Path

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.kernel import Kernel
from ktrial.model.machine_model import ModelledMachine
from ktrial.model.parallel import QUANTUM_NS, MemoryModel, Topology
from ktrial.model.workload import Mode


class CarriedFile(Model):
    """A host file that the guest finds at `guest`; or a directory or symbolic link there."""

    host: Path
    guest: str
    mode: int = 0o644
    directory: bool = Field(default=False, exclude_if=lambda value: not value)
    """A directory of this mode, and nothing in it."""
    link: str = Field(default="", exclude_if=lambda value: not value)
    """A symbolic link to this path, whatever is there; empty: no link."""


class CgroupLimits(Model):
    """What the programs of a trial may use together, by a control group of their own (cgroup v2)."""

    cpus: float | None = Field(default=None, gt=0)
    """CPU time: 0.5 is half of one CPU (cpu.max, in periods of 100 ms)."""
    memory_mib: int | None = Field(default=None, ge=1)
    """memory.max."""
    io: tuple[str, ...] = ()
    """Lines of io.max: `8:0 wbps=1048576`."""


class Boot(Model):
    """One system to boot: with the machine, all that decides the state in which a trial starts."""

    kernel: Kernel
    parameters: tuple[str, ...] = ()
    """Boot parameters added to the machine's own."""
    memory_mib: int = Field(default=512, ge=64)
    cpus: int = Field(default=1, ge=1)
    modules: tuple[Path, ...] = ()
    """Module files in the order in which they are loaded, dependencies first."""
    files: tuple[CarriedFile, ...] = ()
    settle_ns: int = 3_000_000_000
    limit_instructions: int = 200_000_000_000
    limit_seconds: float = 300.0
    initrd_padding: int = 0
    """Bytes of ballast in the initial RAM disk: an irrelevant change, for tests of robustness."""
    pin: tuple[int, ...] = ()
    """Machines in real time: the CPUs of this host that programs, or QEMU, run on; empty: all."""
    cgroup: CgroupLimits | None = None
    """Machine host: limits for the programs; None: no control group."""
    allow_emulated_time: bool = False
    """Machine kvm: without KVM, the time that emulation takes will do."""
    quantum_ns: int = Field(default=QUANTUM_NS, exclude_if=lambda value: value == QUANTUM_NS)
    """Machine exact-parallel: how long a round is, in guest nanoseconds."""
    topology: Topology | None = Field(default=None, exclude_if=lambda value: value is None)
    """Machine exact-parallel: how its CPUs belong together; None: one socket of cores."""
    memory_model: MemoryModel = Field(default=MemoryModel.NONE, exclude_if=lambda value: value == "none")
    """Machine exact-parallel: what memory costs beside the instruction that uses it."""
    model: ModelledMachine | None = Field(default=None, exclude_if=lambda value: value is None)
    """Machine exact: what cycles are modelled on while the plugin counts; None: none are."""
    sample_ns: int = Field(default=0, ge=0, exclude_if=lambda value: not value)
    """Nanoseconds, in a guest its own, between two readings of the monitors while programs run; 0: none."""
    boots: bool = Field(default=False, exclude_if=lambda value: not value)
    """Machine ssh: the other system is booted into the kernel; else it is taken as it runs."""
    boot_seconds: float = Field(default=300.0, gt=0, exclude_if=lambda value: value == 300.0)
    """Machine ssh: after so long without an answer what was booted has hung."""


class MachineIdentity(Model):
    """What of a machine can change a result."""

    machine: str
    mode: Mode
    qemu: str = ""
    cpu_model: str = ""
    arguments: tuple[str, ...] = ()
    command_line: str = ""
    agent_digest: str = ""
    executed: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """SHA-256 of what this system runs: image, initial RAM disk, the guest's programs, what QEMU loads."""
    in_force: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """What the system said of itself after its boot, by name: release, modules, CPU vulnerabilities."""
    seed: int = 0
    snapshot: str = ""
    """The snapshot's key; empty where the system was booted plainly."""
    plain_boot_reason: str = ""
    """Why no snapshot was used; empty where one was."""
    clock_reason: str = ""
    """Why instructions are read from the guest's clock, where nobody asked for that; empty otherwise."""
    flags_reason: str = ""
    """What is wrong with the processor's flags in this QEMU; empty where they are right."""
