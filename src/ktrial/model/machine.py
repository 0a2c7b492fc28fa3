"""What a machine is asked to boot, and how it says what it is."""

import re
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.kernel import Kernel
from ktrial.model.parallel import QUANTUM_NS, MemoryModel, Topology
from ktrial.model.workload import Mode

# What a machine is asked to boot, and how it says what it is.


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


class BranchPredictor(Model):
    """gshare with a return stack and a buffer of indirect targets."""

    history_bits: int
    """Directions that are kept; the table has two to the power of so many counters."""
    returns: int
    targets: int


class BufferSize(Model):
    """One translation buffer, with true LRU."""

    entries: int
    ways: int


Replacement = Literal["lru", "tree-plru"]


TRUE_LRU: Replacement = "lru"


class CacheSize(Model):
    """One cache."""

    size: int
    """Bytes."""
    ways: int
    line: int = 64
    """Bytes."""
    replacement: Replacement = Field(default=TRUE_LRU, exclude_if=lambda value: value == TRUE_LRU)
    """Which line of a full set makes room."""


class Cycles(Model):
    """What things cost, in cycles. Caches and translations: beyond a hit of the first level."""

    instruction: float
    """Any instruction."""
    string_bytes: float
    """Bytes that a repeated string instruction works on in a cycle."""
    string: float
    """A repeated string instruction, whatever its length."""
    l2: float
    llc: float
    memory: float
    """A line that the second level has, the last one, memory."""
    store_share: float
    """How much of that a store is held up by, from 0 to 1."""
    stlb: float
    walk: float
    """A translation that the second level has, and one for which page tables are walked."""
    walk_level: float | None = Field(default=None, exclude_if=lambda value: value is None)
    """Each entry that a walk reads beside the page's, where the first level of data has it. None: nothing."""
    misprediction: float
    interrupt: float
    """An interrupt or an exception is taken."""
    device: float
    """Memory of a device is read or written."""
    divide: float
    locked: float
    fence: float
    pause: float
    rdtsc: float
    cpuid: float
    rdmsr: float
    wrmsr: float
    spec_ctrl: float | None = Field(default=None, exclude_if=lambda value: value is None)
    """`wrmsr` to IA32_SPEC_CTRL: IBRS, STIBP and SSBD. None: as any other `wrmsr`."""
    ibpb: float | None = Field(default=None, exclude_if=lambda value: value is None)
    """`wrmsr` to IA32_PRED_CMD."""
    l1d_flush: float | None = Field(default=None, exclude_if=lambda value: value is None)
    """`wrmsr` to IA32_FLUSH_CMD."""
    invlpg: float
    mov_cr3: float
    mov_cr: float
    """To another control register."""
    swapgs: float
    verw: float
    port: float
    """`in` and `out`."""
    syscall: float
    sysret: float
    iret: float


class PagingCaches(Model):
    """Entries of page tables' upper levels that walks need not read again, fully associative."""

    pde: int
    """Those that lead to tables of pages of 4 KiB; and so on, each a level up."""
    pdpte: int
    pml4e: int


class ModelledMachine(Model):
    """A machine."""

    name: str
    file: str = Field(default="", exclude_if=lambda value: not value)
    """Where it is described; empty: in ktrial's own file."""
    l1i: CacheSize
    l1d: CacheSize
    l2: CacheSize
    llc: CacheSize | None = None
    """None: what the second level does not have comes from memory."""
    prefetch: int = 0
    """Lines that are brought into the second level behind one that missed the first."""
    strides: int = Field(default=0, exclude_if=lambda value: not value)
    """Instructions of which the prefetcher of strides knows how far apart their misses are."""
    sample: int = Field(default=1, exclude_if=lambda value: value == 1)
    """Every so-manieth line of a page is modelled, and stands for the others; 1: all of them."""
    itlb: BufferSize
    dtlb: BufferSize
    stlb: BufferSize
    paging: PagingCaches | None = Field(default=None, exclude_if=lambda value: value is None)
    """None: what walks read is not modelled."""
    branches: BranchPredictor
    cycles: Cycles

    @property
    def reference(self) -> str:
        """What a study file calls it: `desktop`, or `FILE#NAME`."""
        return f"{self.file}#{self.name}" if self.file else self.name


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


# Machines as cycles are modelled on them: sizes of their parts and what things cost. Plain data.
#
# docs/machine-model.md says what is modelled; the numbers and their sources stand in files
# (`ktrial.studyfile.machine_model_files`).

ModelName = Literal["none", "default"]


NO_MODEL = "none"


DEFAULT_MODEL = "default"
"""What stands for a machine in a study file: none, or that which comes first in ktrial's own file."""


class BasePrices(Model):
    """What every instruction and string byte costs: what is not in `ModelCounts.cycles`."""

    instruction: float
    string_bytes: float
    """Bytes in a cycle."""


class ModelCounts(Model):
    """What instructions came to on a modelled machine, beside their number."""

    cycles: float
    """Those that they cost beside `Cycles.instruction` each and `Cycles.string_bytes`."""
    code_misses: int
    data_misses: int
    """Lines that the first level did not have."""
    second_misses: int
    """Lines, of either, that the second level did not have."""
    last_misses: int
    translation_misses: int
    """Pages that the first level of translations did not have."""
    walks: int
    mispredictions: int


# How another machine may be named: nothing that a shell, ssh or a `ProxyCommand` could take for more.

ALLOWED = "HOST or USER@HOST of letters, digits, dots, hyphens and underscores, as in ~/.ssh/config"


_USER = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}"


_HOST = r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}"


_NAME = re.compile(f"(?:{_USER}@)?{_HOST}")


def is_host_name(name: str) -> bool:
    """Whether the name is no option, and has no character that means something to a shell."""
    return _NAME.fullmatch(name) is not None


# Who has a real machine for trials of theirs: told in the store, and held by being told again.


class MachineLease(Model):
    """One that is held, or was held until its holder fell silent."""

    machine: str
    """What tells the machine from every other one, whoever names it."""
    called: str
    """What its holder calls it."""
    key: str
    """Of this holder, apart from all others: drawn when it asks."""
    host: str
    user: str
    process: int
    """The process's number on its host."""
    born: str
    """See Activity."""
    study: str
    """What it is held for."""
    since: datetime
    heard: datetime
    """When its holder was last heard of; like `since` by the clock of whoever keeps the store."""
    silence_seconds: float
    """After how long without a word the holder must be taken for gone, where nothing else tells."""

    @property
    def shown(self) -> str:
        """`lab1 (10.0.0.7:22)`."""
        return f"{self.called} ({self.machine})"

    @property
    def who(self) -> str:
        """`ada@lab (process 4711)`."""
        return f"{self.user}@{self.host} (process {self.process})"


# What a process that runs a study is doing now: told in the store while it runs, and gone when it ends.


class Doing(Model):
    """One thing that is under way: a trial, a boot, a kernel that is fetched or built."""

    what: str
    """`debian:6.12, perturbation 3`; `debian:6.12: booting`."""
    where: str = ""
    """Which worker does it; empty: the process itself."""
    since: datetime


class Activity(Model):
    """One process that runs a study."""

    key: str
    """Of this run, apart from all others: drawn at its beginning."""
    host: str
    user: str
    process: int
    """The process's number on its host."""
    born: str
    """The host's boot, and when in it the process began: no other process has both and the number. Empty
    where the system does not tell."""
    started: datetime
    heard: datetime
    """When this was written, by the clock of the host."""
    silence_seconds: float
    """After how long without a word the process must be taken for gone, where nothing else tells."""
    finished: int
    """How many trials are stored, from earlier runs too."""
    planned: int
    """How many there will be; in real time, before the next look."""
    failed: int = 0
    """How many of this run's trials ended with another outcome than `completed`."""
    seconds_left: float | None = None
    """An estimate."""
    doing: tuple[Doing, ...] = ()
    stopping: bool = False
    """Whether it was asked to end."""
