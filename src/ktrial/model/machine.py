"""What a machine is asked to boot, and how it says what it is."""

import re
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import Field

from ktrial.model.base import LimitMiB, Model, Number, WholeNumber, in_file, not_allowed, quantity
from ktrial.model.kernel import Kernel
from ktrial.model.notation import io_limit, plain_text, size_bytes, size_text
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


class FileSet(Model):
    """Files that belong together: what a workload brings into a guest."""

    files: tuple[CarriedFile, ...] = ()
    digest: str = ""
    """Of their places in the guest, modes and contents; empty where there are none, or nobody has looked."""


NO_FILES = FileSet()


_OURS = ("/init", "/ktrial")
_THE_KERNELS = ("/dev", "/proc", "/sys")
"""What the guest's kernel mounts: files there would be hidden."""


def guest_path_problem(guest: str) -> str:
    """Why a guest cannot have a file at this path; empty where it can."""
    path = PurePosixPath(guest)
    if not path.is_absolute() or ".." in path.parts or len(path.parts) < 2:
        return f"the guest's path {guest!r} is not absolute, or holds '..'"
    if any(path.is_relative_to(ours) for ours in _OURS):
        return f"{guest} is ktrial's own"
    if any(path.is_relative_to(mount) for mount in _THE_KERNELS):
        return f"what is below {'/'.join(path.parts[:2])[1:]} is the guest's own kernel's"
    return ""


class CgroupLimits(Model):
    """What the programs of a trial may use together, by a control group of their own (cgroup v2)."""

    cpus: Number | None = Field(
        default=None, gt=0, le=65536, description="a number above 0: 0.5 is half of one CPU"
    )
    """cpu.max, in periods of 100 ms."""
    memory_mib: LimitMiB | None = Field(
        default=None,
        ge=1,
        validation_alias="memory",
        serialization_alias="memory",
        description='a whole number with M or G, as text: "256M"',
    )
    """memory.max."""
    io: tuple[Annotated[str, in_file(io_limit)], ...] = Field(
        default=(), description='a list of lines of io.max: ["8:0 wbps=1048576"]'
    )


class BranchPredictor(Model):
    """gshare with a return stack and a buffer of indirect targets."""

    history_bits: WholeNumber = Field(ge=1, le=20, description="a whole number from 1 to 20")
    """Directions that are kept; the table has two to the power of so many counters."""
    returns: WholeNumber = Field(ge=1, le=1024, description="a whole number from 1 to 1024: return addresses")
    targets: WholeNumber = Field(
        ge=4, le=1 << 16, multiple_of=4, description="a multiple of 4 from 4 to 65536: indirect branches"
    )


_MOST_ENTRIES = 1 << 20


class BufferSize(Model):
    """One translation buffer, with true LRU."""

    entries: WholeNumber = Field(
        ge=1, le=_MOST_ENTRIES, description=f"a whole number from 1 to {_MOST_ENTRIES}"
    )
    ways: WholeNumber = Field(ge=1, le=1024, description="a whole number from 1 to 1024")


Replacement = Literal["lru", "tree-plru"]
TRUE_LRU: Replacement = "lru"


def _cache_bytes(text: str) -> int:
    size = size_bytes(plain_text(text))
    if not 64 <= size <= 1 << 30:
        raise ValueError("a cache has 64 bytes to 1G")
    return size


class CacheSize(Model):
    """One cache."""

    size: Annotated[int, *quantity(_cache_bytes, size_text)] = Field(
        description='a size, as text: "32K", "8M"'
    )
    """Bytes."""
    ways: WholeNumber = Field(ge=1, le=1024, description="a whole number from 1 to 1024")
    line: WholeNumber = Field(default=64, ge=8, le=4096, description="bytes, a power of two from 8 to 4096")
    replacement: Replacement = Field(
        default=TRUE_LRU, exclude_if=lambda value: value == TRUE_LRU, description='"lru" or "tree-plru"'
    )
    """Which line of a full set makes room."""


Cost = Annotated[Number, Field(ge=0, le=1e6)]
_A_COST = 'a number from 0 to 1000000, in cycles: { value = 26, source = "…" }'


def _whole(number: float) -> float:
    if not number.is_integer():
        raise not_allowed()
    return number


class Cycles(Model):
    """What things cost, in cycles. Caches and translations: beyond a hit of the first level."""

    instruction: Cost = Field(description=_A_COST)
    """Any instruction."""
    string_bytes: Annotated[Number, in_file(_whole)] = Field(
        ge=1, le=4096, description='a whole number of bytes from 1 to 4096: { value = 32, source = "…" }'
    )
    """Bytes that a repeated string instruction works on in a cycle."""
    string: Cost = Field(description=_A_COST)
    """A repeated string instruction, whatever its length."""
    l2: Cost = Field(description=_A_COST)
    llc: Cost = Field(description=_A_COST)
    memory: Cost = Field(description=_A_COST)
    """A line that the second level has, the last one, memory."""
    store_share: Number = Field(ge=0, le=1, description='a share from 0 to 1: { value = 0.5, source = "…" }')
    """How much of that a store is held up by, from 0 to 1."""
    stlb: Cost = Field(description=_A_COST)
    walk: Cost = Field(description=_A_COST)
    """A translation that the second level has, and one for which page tables are walked."""
    walk_level: Cost | None = Field(default=None, exclude_if=lambda value: value is None, description=_A_COST)
    """Each entry that a walk reads beside the page's, where the first level of data has it. None: nothing."""
    misprediction: Cost = Field(description=_A_COST)
    interrupt: Cost = Field(description=_A_COST)
    """An interrupt or an exception is taken."""
    device: Cost = Field(description=_A_COST)
    """Memory of a device is read or written."""
    divide: Cost = Field(description=_A_COST)
    locked: Cost = Field(description=_A_COST)
    fence: Cost = Field(description=_A_COST)
    pause: Cost = Field(description=_A_COST)
    rdtsc: Cost = Field(description=_A_COST)
    cpuid: Cost = Field(description=_A_COST)
    rdmsr: Cost = Field(description=_A_COST)
    wrmsr: Cost = Field(description=_A_COST)
    spec_ctrl: Cost | None = Field(default=None, exclude_if=lambda value: value is None, description=_A_COST)
    """`wrmsr` to IA32_SPEC_CTRL: IBRS, STIBP and SSBD. None: as any other `wrmsr`."""
    ibpb: Cost | None = Field(default=None, exclude_if=lambda value: value is None, description=_A_COST)
    """`wrmsr` to IA32_PRED_CMD."""
    l1d_flush: Cost | None = Field(default=None, exclude_if=lambda value: value is None, description=_A_COST)
    """`wrmsr` to IA32_FLUSH_CMD."""
    invlpg: Cost = Field(description=_A_COST)
    mov_cr3: Cost = Field(description=_A_COST)
    mov_cr: Cost = Field(description=_A_COST)
    """To another control register."""
    swapgs: Cost = Field(description=_A_COST)
    verw: Cost = Field(description=_A_COST)
    port: Cost = Field(description=_A_COST)
    """`in` and `out`."""
    syscall: Cost = Field(description=_A_COST)
    sysret: Cost = Field(description=_A_COST)
    iret: Cost = Field(description=_A_COST)


_ENTRIES = Field(ge=0, le=4096, description="a whole number of entries from 0 to 4096")


class PagingCaches(Model):
    """Entries of page tables' upper levels that walks need not read again, fully associative."""

    pde: WholeNumber = _ENTRIES
    """Those that lead to tables of pages of 4 KiB; and so on, each a level up."""
    pdpte: WholeNumber = _ENTRIES
    pml4e: WholeNumber = _ENTRIES


_A_CACHE = 'a table: { size = "32K", ways = 8, line = 64, source = "…" }'
_A_BUFFER = 'a table: { entries = 128, ways = 8, source = "…" }'


class ModelledMachine(Model):
    """A machine."""

    name: str
    file: str = Field(default="", exclude_if=lambda value: not value)
    """Where it is described; empty: in ktrial's own file."""
    l1i: CacheSize = Field(description=_A_CACHE)
    l1d: CacheSize = Field(description=_A_CACHE)
    l2: CacheSize = Field(description=_A_CACHE)
    llc: CacheSize | None = Field(default=None, description=_A_CACHE)
    """None: what the second level does not have comes from memory."""
    prefetch: WholeNumber = Field(
        ge=0, le=16, description='a whole number of lines from 0 to 16: { value = 1, source = "…" }'
    )
    """Lines that are brought into the second level behind one that missed the first."""
    strides: WholeNumber = Field(
        default=0,
        ge=0,
        le=1024,
        exclude_if=lambda value: not value,
        description='a whole number of instructions from 0 to 1024: { value = 24, source = "…" }',
    )
    """Instructions of which the prefetcher of strides knows how far apart their misses are."""
    sample: Literal[1, 3, 7, 9, 21, 63] = Field(
        default=1,
        exclude_if=lambda value: value == 1,
        description="one of 1, 3, 7, 9, 21, 63: divisors of 63",
    )
    """Every so-manieth line of a page is modelled, and stands for the others; 1: all of them."""
    itlb: BufferSize = Field(description=_A_BUFFER)
    dtlb: BufferSize = Field(description=_A_BUFFER)
    stlb: BufferSize = Field(description=_A_BUFFER)
    paging: PagingCaches | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description='a table: { pde = 32, pdpte = 4, pml4e = 0, source = "…" }, in entries',
    )
    """None: what walks read is not modelled."""
    branches: BranchPredictor = Field(
        description='a table: { history_bits = 16, returns = 16, targets = 4096, source = "…" }'
    )
    cycles: Cycles = Field(description="a table of constants: [machines.NAME.cycles]")

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
    awaits_files: bool = Field(default=False, exclude_if=lambda value: not value)
    """Machines that start from snapshots: the kernel alone is booted, once. What workloads bring comes after
    that, and then the agent."""
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
    boot: str = ""
    """The kernel's boot_id, of a system that trials share; empty where it is not known."""
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
