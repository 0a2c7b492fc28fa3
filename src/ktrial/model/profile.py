"""Profiles: what the QEMU plugin counted, by function, operation and call; and where functions' source is."""

import re
from functools import lru_cache

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.machine import BasePrices, ModelCounts
from ktrial.model.parallel import CpuCounts
from ktrial.model.warnings import DataWarning

PROGRAM = "[program]"
"""What runs in user mode, in a tree of calls."""
UNKNOWN = "[unknown]"
"""Kernel code that no symbol covers, and what runs before the first call that was seen."""
GENERATED = "[generated]"
"""Code that the kernel made while it ran, and gave no name (a classic socket filter)."""


class StringCounts(Model):
    """Repeated string instructions (`rep movsb`…). Hardware runs each as one instruction."""

    instructions: int = 0
    """Those that came to their end."""
    passes: int = 0
    """Iterations as QEMU runs them, with one more at the end of each instruction, and those that faulted."""
    bytes: int = 0
    """Bytes that they worked on."""


class CacheCounts(Model):
    """Memory accesses, and how they fell in the modelled caches."""

    loads: int = 0
    stores: int = 0
    code_misses: int = 0
    """Lines of code that were not in the first level."""
    data_misses: int = 0
    """Lines of data that were not in the first level."""
    last_misses: int = 0
    """Lines, of either, that were not in the last level."""


class CycleModel(Model):
    """What an instruction and a miss are taken to cost, in cycles. Chosen, not measured.

    The latencies are of the order of those in Intel's Optimization Reference Manual (third-level hit) and of
    DRAM on a server; nothing overlaps, nothing is prefetched. The figure orders functions: it predicts no
    time.
    """

    instruction: float = 1.0
    string_byte: float = 1 / 32
    first_miss: float = 40.0
    """A line that the last level has."""
    last_miss: float = 200.0
    """A line that memory has, on top of `first_miss`."""

    def cycles(self, instructions: int, strings: StringCounts, caches: CacheCounts) -> float:
        """Modelled cycles."""
        first = caches.code_misses + caches.data_misses
        return (
            instructions * self.instruction
            + strings.bytes * self.string_byte
            + first * self.first_miss
            + caches.last_misses * self.last_miss
        )


class FunctionCount(Model):
    """One function of the kernel or of a module."""

    symbol: str
    module: str = ""
    """Empty: the kernel image itself."""
    instructions: int
    """Its own (self)."""
    inclusive: int | None = None
    """Its own and those of what it called; None where calls were not followed."""
    entered: int = 0
    """Times that its first instruction ran."""
    strings: StringCounts = StringCounts()
    caches: CacheCounts | None = None
    modelled: ModelCounts | None = Field(default=None, exclude_if=lambda value: value is None)
    copies: tuple[tuple[int, int], ...] = Field(default=(), exclude_if=lambda value: not value)
    """Of a name that several functions of the image have: the address of each that ran, and its instructions.
    Empty where only one has it, and in profiles that tell of names alone."""


class PageCount(Model):
    """One page of a program's code."""

    address: int
    """In the program; 0 for code that is in no RAM, or did not fit."""
    checksum: int
    """CRC-32 (as in zlib) of the page's 4096 bytes."""
    instructions: int
    strings: StringCounts = StringCounts()
    caches: CacheCounts | None = None
    modelled: ModelCounts | None = Field(default=None, exclude_if=lambda value: value is None)


class ProgramCount(Model):
    """One program's code."""

    program: str
    """Its name; empty for code that is in none of the files that were looked at (vDSO, generated code)."""
    instructions: int
    strings: StringCounts = StringCounts()


class TaskCount(Model):
    """What one task ran, told by its kernel stack. Tasks that had the same stack in turn are one."""

    stack: int
    """The stack's lowest address; 0 where it was not known yet."""
    kernel: int
    program: int


class CallNode(Model):
    """A function, called in one way."""

    parent: int
    """Index of its caller among the nodes; node 0 is the root, node 1 the program."""
    function: int
    """Index into the functions; -1 for the first two nodes."""
    instructions: int
    """Its own."""
    entered: int


class OperationCounts(Model):
    """Instructions of each operation: from one mark to the next."""

    count: int
    total: int
    minimum: int
    maximum: int
    median: float
    string_bytes: float | None = None
    """The median of the bytes that string instructions worked on; None where that was not told."""
    cycles: float | None = Field(default=None, exclude_if=lambda value: value is None)
    """The median of the modelled cycles; None where none were modelled."""
    vector: tuple[int, ...] | None = None
    """Each operation's, in order; None where it was not asked for."""

    @property
    def mean(self) -> float | None:
        """Instructions per operation; None where there was none."""
        return self.total / self.count if self.count else None


class Marking(Model):
    """How a program marked regions of its own in one run, and what is wrong with that."""

    regions: int = 0
    """Regions that have ended. 0: it marks none, and the whole run is counted."""
    nested: int = 0
    """Regions that began while another one was under way, of this process or of another one."""
    loose_operations: int = 0
    """Operations outside of a region."""
    loose_ends: int = 0
    """Ends of regions that had not begun."""
    unclosed: int = 0
    """Regions that were under way when the program ended."""
    dropped: int = 0
    """Operations and regions that were not kept, because there were too many."""
    foreign: int = 0
    """Marks of another task than the one that began the region; told only where calls are followed."""


class RegionCounts(Model):
    """One marked region."""

    whole: bool
    """It ended with its mark, not with the guest."""
    instructions: int
    """A repeated string instruction counts once, when it is done; marks do not count."""
    marks: int
    strings: StringCounts
    functions: tuple[FunctionCount, ...]
    pages: tuple[PageCount, ...]
    operations: OperationCounts
    nodes: tuple[CallNode, ...] | None = None
    """The tree of calls, callers first; None where calls were not followed."""
    tasks: tuple[TaskCount, ...] = ()
    unmatched: int = 0
    """Returns that no call was found for."""
    cycles: float | None = Field(default=None, exclude_if=lambda value: value is None)
    """Modelled cycles; None where none were modelled."""
    marking: Marking = Field(default=Marking(), exclude=True)
    cpus: CpuCounts | None = Field(default=None, exclude_if=lambda value: value is None)
    """The same by CPU, with waiting and idling: machine exact-parallel only."""

    @property
    def clock(self) -> int:
        """Instructions by the guest's clock: every pass of a string instruction, and the marks."""
        return self.instructions - self.strings.instructions + self.strings.passes + self.marks

    @property
    def kernel(self) -> int:
        """Instructions in the kernel and its modules."""
        return sum(function.instructions for function in self.functions)

    @property
    def unknown(self) -> int:
        """Instructions in kernel code that no symbol covers, without code that it made while it ran.

        Nearly all of the kernel's, where the symbols are another kernel's, or addresses are random (KASLR).
        """
        return sum(function.instructions for function in self.functions if function.symbol == UNKNOWN)

    @property
    def program(self) -> int:
        """Instructions in user mode."""
        return sum(page.instructions for page in self.pages)


class PluginCounts(Model):
    """All that one QEMU's plugin wrote."""

    api: int
    """Version of the plugin API."""
    symbols: int
    """Functions that the plugin knew by name."""
    inline: bool
    """QEMU counted in translated code, not by calling the plugin."""
    complete: bool
    """QEMU ended by itself. Where it was ended, the regions that are there are whole all the same."""
    regions: tuple[RegionCounts, ...]


def inclusive_counts(nodes: tuple[CallNode, ...], functions: int) -> tuple[int, ...]:
    """For each of `functions` functions: its own instructions and those of what it called, once a call."""
    below = [node.instructions for node in nodes]
    for index in range(len(nodes) - 1, 1, -1):
        below[nodes[index].parent] += below[index]
    totals = [0] * functions
    # The functions that are being called at each node: a function that calls itself is counted once.
    callers: list[frozenset[int]] = [frozenset(), frozenset()]
    for index, node in enumerate(nodes[2:], start=2):
        above = callers[node.parent]
        if node.function not in above:
            totals[node.function] += below[index]
        callers.append(above | {node.function})
    return tuple(totals)


class Profile(Model):
    """One kernel, one workload, counted once by the QEMU plugin. The same again gives the same."""

    kernel: str
    release: str = ""
    workload: str
    """The label of the workload's use."""
    parameters: tuple[str, ...] = ()
    """Boot parameters beside the machine's own."""
    operations: int
    """Operations in the region: what all counts are divided by."""
    region: RegionCounts
    programs: tuple[ProgramCount, ...] = ()
    """The region's user part, by program."""
    qemu: str = ""
    cpu_model: str = ""
    prices: BasePrices | None = Field(default=None, exclude_if=lambda value: value is None)
    """Where cycles were modelled: with them, a function's cycles are its `modelled` and these."""
    warnings: tuple[DataWarning, ...] = Field(default=(), exclude_if=lambda value: not value)
    """What is odd about it, where it is no trial's: a trial has its own."""

    @property
    def label(self) -> str:
        """The kernel, with its boot parameters."""
        return " ".join((self.kernel, *self.parameters))

    def per_operation(self, count: int) -> float:
        """A count of the region, per operation."""
        return count / self.operations

    @property
    def median(self) -> float:
        """Instructions per operation: the median, where all else is the mean."""
        marked = self.region.operations
        return marked.median / (self.operations / marked.count)

    def contradiction(self, median: float | None = None) -> str:
        """Why it cannot be of one measurement, in a sentence; empty where it can.

        `median`: instructions per operation, as the workload's sample has them: at most those of the
        longest operation. Programs take off what marking costs, so that it may be less than the shortest.
        """
        region, marked = self.region, self.region.operations
        parts = region.kernel + region.program
        if parts != region.instructions:
            return (
                f"its functions and programs come to {parts:,} instructions, not to {region.instructions:,}"
            )
        if median is None or not marked.count:
            return ""
        most = marked.maximum / (self.operations / marked.count)
        if median <= most:
            return ""
        return f"its sample is {median:,.10g} instructions per operation, its longest has {most:,.10g}"


class FunctionFiles(Model):
    """The functions of one kernel image, without its modules."""

    files: dict[str, str] = Field(default_factory=dict)
    """Function → its source: `mm/memory.c`, or `mm/` where only the directory is known. Functions of which
    nothing is known are left out."""
    functions: frozenset[str] = frozenset()
    """The names of all functions; empty where the kernel's symbols are not known."""
    locking: frozenset[str] = frozenset()
    """Those with an instruction that locks memory (prefix LOCK): they take a lock, or count references."""


_NUMBERED = re.compile(r"\.\d+")
"""GCC's numbers differ between builds: `copy.isra.0`, `copy.isra.1`."""


def called(symbol: str, module: str = "") -> str:
    """A function's name as a difference has it: `copy.isra` for `copy.isra.0`; `read [ext4]` in a module."""
    return without_numbers(symbol) + (f" [{module}]" if module else "")


def copy_of(name: str, file: str, number: int = 1) -> str:
    """A name for one of the functions that share a name: `init_once (inode.c)`; with a number, from 2 on, of
    the functions in files of that name, in the linker's order.
    """
    which = file or "global"
    return f"{name} ({which})" if number == 1 else f"{name} ({which}, no. {number})"


def plain_name(name: str) -> str:
    """What `copy_of` was made of: `init_once`. Other names are as they are."""
    return name.partition(" (")[0]


@lru_cache(maxsize=1 << 17)
def without_numbers(symbol: str) -> str:
    """A function's name as a difference has it: `copy.isra` for `copy.isra.0`."""
    return _NUMBERED.sub("", symbol)
