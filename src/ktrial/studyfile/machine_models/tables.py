"""The tables of a file of machine models. Each field's description says what it may be; messages quote it."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ktrial.model import quantities
from ktrial.model.machine_model import TRUE_LRU, Replacement
from ktrial.studyfile.schema import KeyTable
from ktrial.studyfile.value_types import Name, Prose, Text

_MOST_ENTRIES = 1 << 20
_LARGEST = 1 << 30


def _size(text: str) -> str:
    size = quantities.size_bytes(text)
    if not 64 <= size <= _LARGEST:
        raise ValueError("a cache has 64 bytes to 1G")
    return text


class SourcedTable(KeyTable):
    """A table that says where its numbers come from."""

    source: Text = Field(description='where that is from: "Agner Fog, instruction tables: DIV r64"')


class CostTable(SourcedTable):
    """One constant."""

    value: float = Field(ge=0, le=1e6, allow_inf_nan=False, description="a number from 0 to 1000000")


class ShareTable(SourcedTable):
    """A part of a whole."""

    value: float = Field(ge=0, le=1, allow_inf_nan=False, description="a share from 0 to 1")


class RateTable(SourcedTable):
    """Bytes in a cycle."""

    value: int = Field(ge=1, le=4096, description="a whole number of bytes from 1 to 4096")


class LinesTable(SourcedTable):
    """A number of lines."""

    value: int = Field(ge=0, le=16, description="a whole number from 0 to 16")


class InstructionsTable(SourcedTable):
    """A number of instructions that a table has room for."""

    value: int = Field(ge=0, le=1024, description="a whole number from 0 to 1024")


class CacheTable(SourcedTable):
    """One cache."""

    size: Annotated[Text, AfterValidator(_size)] = Field(description='a size, as text: "32K", "8M"')
    ways: int = Field(ge=1, le=1024, description="a whole number from 1 to 1024")
    line: int = Field(64, ge=8, le=4096, description="bytes, a power of two from 8 to 4096")
    replacement: Replacement = Field(TRUE_LRU, description='"lru" or "tree-plru"')


class BufferTable(SourcedTable):
    """One translation buffer."""

    entries: int = Field(ge=1, le=_MOST_ENTRIES, description=f"a whole number from 1 to {_MOST_ENTRIES}")
    ways: int = Field(ge=1, le=1024, description="a whole number from 1 to 1024")


_PAGING = Field(ge=0, le=4096, description="a whole number of entries from 0 to 4096")


class PagingTable(SourcedTable):
    """The paging-structure caches."""

    pde: int = _PAGING
    pdpte: int = _PAGING
    pml4e: int = _PAGING


class BranchTable(SourcedTable):
    """The branch predictor."""

    history_bits: int = Field(ge=1, le=20, description="a whole number from 1 to 20")
    returns: int = Field(ge=1, le=1024, description="a whole number from 1 to 1024: return addresses")
    targets: int = Field(
        ge=4, le=1 << 16, multiple_of=4, description="a multiple of 4 from 4 to 65536: indirect branches"
    )


_A_COST = 'a table: { value = 26, source = "…" }, in cycles'


class CyclesTable(KeyTable):
    """`[machines.NAME.cycles]`."""

    instruction: CostTable = Field(description=_A_COST)
    string_bytes: RateTable = Field(description='a table: { value = 32, source = "…" }, in bytes a cycle')
    string: CostTable = Field(description=_A_COST)
    l2: CostTable = Field(description=_A_COST)
    llc: CostTable = Field(description=_A_COST)
    memory: CostTable = Field(description=_A_COST)
    store_share: ShareTable = Field(description='a table: { value = 0.5, source = "…" }, from 0 to 1')
    stlb: CostTable = Field(description=_A_COST)
    walk: CostTable = Field(description=_A_COST)
    walk_level: CostTable | None = Field(None, description=_A_COST)
    misprediction: CostTable = Field(description=_A_COST)
    interrupt: CostTable = Field(description=_A_COST)
    device: CostTable = Field(description=_A_COST)
    divide: CostTable = Field(description=_A_COST)
    locked: CostTable = Field(description=_A_COST)
    fence: CostTable = Field(description=_A_COST)
    pause: CostTable = Field(description=_A_COST)
    rdtsc: CostTable = Field(description=_A_COST)
    cpuid: CostTable = Field(description=_A_COST)
    rdmsr: CostTable = Field(description=_A_COST)
    wrmsr: CostTable = Field(description=_A_COST)
    spec_ctrl: CostTable | None = Field(None, description=_A_COST)
    ibpb: CostTable | None = Field(None, description=_A_COST)
    l1d_flush: CostTable | None = Field(None, description=_A_COST)
    invlpg: CostTable = Field(description=_A_COST)
    mov_cr3: CostTable = Field(description=_A_COST)
    mov_cr: CostTable = Field(description=_A_COST)
    swapgs: CostTable = Field(description=_A_COST)
    verw: CostTable = Field(description=_A_COST)
    port: CostTable = Field(description=_A_COST)
    syscall: CostTable = Field(description=_A_COST)
    sysret: CostTable = Field(description=_A_COST)
    iret: CostTable = Field(description=_A_COST)


class MachineModelTable(KeyTable):
    """`[machines.NAME]`."""

    summary: Prose = Field("", description="text: what it is")
    like: Name | None = Field(
        None, description="a machine of this file, or one of ktrial's: what is not named is its"
    )
    l1i: CacheTable = Field(description='a table: { size = "32K", ways = 8, line = 64, source = "…" }')
    l1d: CacheTable = Field(description='a table: { size = "32K", ways = 8, line = 64, source = "…" }')
    l2: CacheTable = Field(description='a table: { size = "256K", ways = 4, line = 64, source = "…" }')
    llc: CacheTable | None = Field(None, description='a table: { size = "8M", ways = 16, source = "…" }')
    prefetch: LinesTable = Field(description='a table: { value = 1, source = "…" }, in lines')
    strides: InstructionsTable | None = Field(
        None, description='a table: { value = 24, source = "…" }, in instructions'
    )
    sample: Literal[1, 3, 7, 9, 21, 63] = Field(1, description="one of 1, 3, 7, 9, 21, 63: divisors of 63")
    itlb: BufferTable = Field(description='a table: { entries = 128, ways = 8, source = "…" }')
    dtlb: BufferTable = Field(description='a table: { entries = 64, ways = 4, source = "…" }')
    stlb: BufferTable = Field(description='a table: { entries = 1536, ways = 12, source = "…" }')
    paging: PagingTable | None = Field(
        None, description='a table: { pde = 32, pdpte = 4, pml4e = 0, source = "…" }, in entries'
    )
    branches: BranchTable = Field(
        description='a table: { history_bits = 16, returns = 16, targets = 4096, source = "…" }'
    )
    cycles: CyclesTable = Field(description="a table of constants: [machines.NAME.cycles]")
