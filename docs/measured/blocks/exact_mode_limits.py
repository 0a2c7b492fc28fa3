"""docs/exact-mode.md: sentences on bytes, modelled cycles and page tables, with what was counted for each."""

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.wording import count, decimal, prose

from ktrial.machines.qemu.plugin import CacheShapes
from ktrial.model.profile import CacheCounts, CycleModel, Profile, StringCounts

_PAGE = "docs/exact-mode.md"
_MILLION = 1_000_000
_STAGE: dict[str, int | str] = {"size": 4, "stage": "write"}
_CLEARED_PAGES = """
**Instructions and bytes can tell different stories; look at both.** `init_on_alloc=1` has the kernel clear
each page that it hands out. In `aio-stress` (4 MiB of new page cache per operation, 6.1) that is {more} %
more instructions ({before} → {after}), {more_bytes} % more bytes ({bytes_before} → {bytes_after} MB), and
{more_cycles} % more modelled cycles ({cycles_before} → {cycles_after} million): one instruction a page says
next to nothing of what a memory bus has to do for it.
"""
_NO_CACHES = """
- **No caches, unless modelled.** `ktrial profile --caches` models two first-level caches and a last-level
one (sizes, ways, lines; true LRU; physical addresses) and adds their misses up to *modelled cycles*, at
costs that were chosen, not measured ([which](architecture/plugin.md#what-is-counted)). There is no
prefetching, no second level, no write-back, nothing overlaps, and what TCG itself reads (page tables) is
not seen. It says which function touches many lines, and orders functions: {cycles} % of the modelled cycles
of copy-4096 on 6.12 are in its two copies, which have {instructions} % of its instructions. It predicts no
time.
"""
_NO_PAGE_TABLES = """
- **No TLB, no speculation, no branch prediction.** A walk of page tables, a flush, a mispredicted branch
cost nothing here. Mitigations are therefore far too cheap: page-table isolation (`pti=on`) is {more} more
instructions a system call on 6.1 ({without} → {isolated}), two of which change the page table, and that is
where its price on hardware lies; a retpoline is three instructions, and on hardware a branch that is always
mispredicted.
"""


def _cleared_pages(measuring: Measuring) -> str:
    """What `init_on_alloc` costs, told in three ways."""
    profiles = [
        measuring.profile("debian:6.1", "aio-stress", _STAGE, (f"init_on_alloc={on}",), CacheShapes())
        for on in (0, 1)
    ]
    instructions = [each.per_operation(each.region.instructions) for each in profiles]
    moved = [each.per_operation(each.region.strings.bytes) / _MILLION for each in profiles]
    cycles = [_cycles(each) / each.operations / _MILLION for each in profiles]
    more, more_bytes, more_cycles = (100 * (new / old - 1) for old, new in (instructions, moved, cycles))
    measuring.claim(10 * more < more_bytes, "instructions say next to nothing of pages that are cleared")
    return prose(
        _CLEARED_PAGES,
        more=decimal(more, 1),
        before=count(instructions[0]),
        after=count(instructions[1]),
        more_bytes=decimal(more_bytes, 0),
        bytes_before=decimal(moved[0], 1),
        bytes_after=decimal(moved[1], 1),
        more_cycles=decimal(more_cycles, 1),
        cycles_before=decimal(cycles[0], 1),
        cycles_after=decimal(cycles[1], 1),
    )


def _no_caches(measuring: Measuring) -> str:
    """How much of the modelled cycles of a copy is in the two functions that copy."""
    profile = measuring.profile("debian:6.12", "copy-4096", caches=CacheShapes())
    copies = sorted(profile.region.functions, key=lambda each: -each.strings.bytes)[:2]
    moved = sum(each.strings.bytes for each in copies) / profile.region.strings.bytes
    measuring.claim(moved > 0.95, "copy-4096 on 6.12 copies in two functions")
    cycles = sum(_cycles_of(each.instructions, each.strings, each.caches) for each in copies) / _cycles(
        profile
    )
    instructions = sum(each.instructions for each in copies) / profile.region.instructions
    return prose(_NO_CACHES, cycles=decimal(100 * cycles, 0), instructions=decimal(100 * instructions, 0))


def _no_page_tables(measuring: Measuring) -> str:
    """What page-table isolation costs in instructions."""
    without, isolated = (
        measuring.profile("debian:6.1", "syscall", boot=(f"pti={on}",)).region.operations.median
        for on in ("off", "on")
    )
    return prose(
        _NO_PAGE_TABLES, more=count(isolated - without), without=count(without), isolated=count(isolated)
    )


def _cycles(profile: Profile) -> float:
    """Modelled cycles of the whole region."""
    region = profile.region
    functions = sum(_cycles_of(one.instructions, one.strings, one.caches) for one in region.functions)
    return functions + sum(_cycles_of(one.instructions, one.strings, one.caches) for one in region.pages)


def _cycles_of(instructions: int, strings: StringCounts, caches: CacheCounts | None) -> float:
    return CycleModel().cycles(instructions, strings, caches or CacheCounts())


BLOCKS = (
    Block("cleared-pages", _PAGE, _cleared_pages),
    Block("no-caches", _PAGE, _no_caches),
    Block("no-page-tables", _PAGE, _no_page_tables),
)
