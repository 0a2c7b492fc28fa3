"""Machines as cycles are modelled on them: sizes of their parts and what things cost. Plain data.

docs/machine-model.md says what is modelled; the numbers and their sources stand in files
(`ktrial.studyfile.machine_models`).
"""

from typing import Literal

from pydantic import Field

from ktrial.model.base import Model

ModelName = Literal["none", "default"]
NO_MODEL = "none"
DEFAULT_MODEL = "default"
"""What stands for a machine in a study file: none, or that which comes first in ktrial's own file."""


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


class BufferSize(Model):
    """One translation buffer, with true LRU."""

    entries: int
    ways: int


class PagingCaches(Model):
    """Entries of page tables' upper levels that walks need not read again, fully associative."""

    pde: int
    """Those that lead to tables of pages of 4 KiB; and so on, each a level up."""
    pdpte: int
    pml4e: int


class BranchPredictor(Model):
    """gshare with a return stack and a buffer of indirect targets."""

    history_bits: int
    """Directions that are kept; the table has two to the power of so many counters."""
    returns: int
    targets: int


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
