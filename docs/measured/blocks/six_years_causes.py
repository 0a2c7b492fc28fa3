"""docs/six-years.md: what the five largest changes are made of, function by function."""

from math import log

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.six_years import PAGE, STUDY, SixYears
from docs.measured.wording import Lookup, decimal, prose, signed, table, with_commas

_FIVE = ("seq-read", "stream-write", "timer", "metadata", "fork")
_SEQ_READ = """
### 1. seq-read: {whole[seq-read 5.10 7.2]} %, nearly all of it in 6.18
Two causes; the second was taken back and measured (`ktrial explain --prove`):

- **Large folios.** ext4 reads into folios of many pages since 7ac67301e82f ("ext4: enable large folio for
regular file", 6.16). Work that was done once a page is done once a folio: `get_page_from_freelist`
{was[seq-read 6.12 6.18 get_page_from_freelist]} → {now[seq-read 6.12 6.18 get_page_from_freelist]}
instructions, `lru_gen_add_folio` {was[seq-read 6.12 6.18 lru_gen_add_folio]} → {now[seq-read 6.12 6.18
lru_gen_add_folio]}, `__filemap_add_folio` {was[seq-read 6.12 6.18 __filemap_add_folio]} → {now[seq-read
6.12 6.18 __filemap_add_folio]}, `xas_load` {was[seq-read 6.12 6.18 xas_load]} → {now[seq-read 6.12 6.18
xas_load]}. The disk still copies as many bytes.
- **A setting**, with {proved[seq-read 6.12 7.2 *read_ahead_kb]} of the saving from 6.12 to 7.2.
`read_ahead_kb` of this disk is 128 up to 6.12 and 8192 from 6.18 on: since 459779d04ae8
("block: Improve read ahead size for rotational devices", 6.17) a disk that turns and names no optimal size
gets twice its largest request. {count[seq-read 6.12 read requests]} requests become {count[seq-read 6.18
read requests]}. `ktrial explain` names it without being told (`read_ahead_kb: 128 → 8192: … read
requests`). It is not free: who reads waits for megabytes at once, so that the slowest hundredth of reads
takes {times} times as long.

Up to 6.12 ({whole[seq-read 5.10 6.12]} %): half as many requests,
as 5.10's null_blk takes 124 KiB at most and splits each read-ahead in two (its limit cannot be set there),
and {count[seq-read 6.12 context switches]} context switches instead of {count[seq-read 5.10 context
switches]}. Of the saving {proved[seq-read 5.10 6.12 *queue/scheduler]} are the disk's I/O scheduler
(`queue/scheduler`), which is another one in 6.12.
"""
_STREAM_WRITE = """
### 2. stream-write: {whole[stream-write 5.10 7.2]} %
Large folios again, in 6.18 ({whole[stream-write 6.12 6.18]} % against 6.12): `__mod_memcg_lruvec_state`
{was[stream-write 6.12 6.18 __mod_memcg_lruvec_state]} → {now[stream-write 6.12 6.18
__mod_memcg_lruvec_state]} (now `mod_memcg_lruvec_state`), `xas_load` {was[stream-write 6.12 6.18 xas_load]}
→ {now[stream-write 6.12 6.18 xas_load]}, `filemap_get_folios_tag` {was[stream-write 6.12 6.18
filemap_get_folios_tag]} → {now[stream-write 6.12 6.18 filemap_get_folios_tag]}. Of the way from 5.10 to 7.2
{checksum} % is the checksum of metadata: see 4.
"""
_TIMER = """
### 3. timer: {whole[timer 5.10 7.2]} %, in 7.2
The workload arms a timerfd with a time that has passed. Up to 6.18 the kernel programs the clock device,
takes the interrupt (`hrtimer_interrupt` entered {entered[hrtimer_interrupt before]} times for {operations}
operations) and runs the callback (`timerfd_tmrproc`: {entered[timerfd_tmrproc before]}). In 7.2 it runs
`hrtimer_start_range_ns_user` instead ("hrtimer: Provide hrtimer_start_range_ns_user()", Thomas Gleixner,
2026), which finds that the time has passed and says so to timerfd: no interrupt ({entered[hrtimer_interrupt
after]} entries) and no callback (none). A timer that lies ahead still takes its interrupt; this gain is for
those that do not.
"""
_METADATA = """
### 4. metadata: {whole[metadata 5.10 7.2]} %, in 6.18
One function: `crc32_body`, {was_millions[metadata 6.12 6.18 crc32_body]} of {millions[metadata 6.12]}
million instructions in 6.12, is not run in 6.18; `crc32c_x86_3way` and `crc32c` do its work with
{now_millions[metadata 6.12 6.18 crc32c_x86_3way crc32c]} million. ext4 and jbd2 ask the library for CRC32C
since 6.14 ("ext4: switch to using the crc32c library", Eric Biggers, with "x86/crc32: expose CRC32
functions through lib"), and the library uses the CPU's instruction by itself. Before, they asked the crypto
layer, which has the fast version in a module (`crc32c_intel`). Debian's cloud kernels have ext4 and the
slow version built in, and ktrial's guests load no module that nobody asks for; a system whose initial RAM
disk loads it before the file system is mounted never had this cost. The proof: with `modules =
["crc32c_intel"]` in `[machine]`, 5.10 takes {with_module} million instructions, fewer than 6.18 or 7.2
({millions[metadata 6.18]} and {millions[metadata 7.2]}).
"""
_FORK = """
### 5. fork: {whole[fork 5.10 6.18]} % up to 6.18
`vfork`, `exec` and `thread` go with it. Of {total[fork 5.10 6.18]} instructions (mean) from 5.10 to 6.18:
"""
_FORK_PARTS = (
    (
        "maple tree",
        "`mas_next_slot` and others: since 6.1 a maple tree holds the mappings"
        ' (d4af56c5c7c6, "mm: start tracking VMAs with maple tree")',
    ),
    (
        "page tables",
        "`___pte_offset_map`, a function since 6.5, as it may fail"
        ' (0d940a9b270b, "mm/pgtable: allow pte_offset_map[_lock]() to fail")',
    ),
    ("scheduler", "no function stands out"),
    ("per-CPU memory", "cause not looked for"),
)
_MMAP = """
**mmap** ({change[mmap 6.12]} % up to 6.12, the sixth) is of the same making: maple tree {part[mmap 5.10
6.12 maple tree]}, page tables {part[mmap 5.10 6.12 page tables]}, page allocator {part[mmap 5.10 6.12 page
allocator]} (`free_unref_folios`, `__alloc_pages_noprof`; cause not found), memory control groups {part[mmap
5.10 6.12 memory control groups]}. `lru_gen_add_folio` and `lru_gen_del_folio` ({now[mmap 5.10 6.12
lru_gen_add_folio lru_gen_del_folio]}) stand for `__pagevec_lru_add_fn` and others: Debian switches lists by
generation on (`LRU_GEN_ENABLED=y` in 6.12 and later, not set in 6.1). Since 6.18 every second mapping costs
up to a third more than the next; the workload times four in a row, so that its median goes with the mean.
In 7.2 some of it is gone again ({step[mmap 6.18 7.2]} % against 6.18); cause not looked for.
"""


def _causes(measuring: Measuring) -> str:
    six = SixYears(measuring)
    largest = [name for name in six.ranked() if name != "nqueens"][: len(_FIVE) + 1]
    order = (*_FIVE, "mmap")
    measuring.claim(tuple(largest) == order, f"the largest changes are {order}: they are {tuple(largest)}")
    _claims(measuring, six)
    timer = six.why("timer", "6.18", "7.2")
    values = six.lookups() | {
        "times": decimal(
            six.value("seq-read", "6.18", "latency p99") / six.value("seq-read", "6.12", "latency p99"), 0
        ),
        "checksum": decimal(100 * _checksum(six), 0),
        "entered": Lookup(lambda function, side: with_commas(getattr(timer.row(function), side).entered)),
        "operations": with_commas(timer.explanation.before.operations),
        "with_module": decimal(_with_module(measuring) / 1e6, 1),
        "total": Lookup(lambda name, old, new: signed(six.why(name, old, new).total, ",")),
    }
    texts = [prose(text, **values) for text in (_SEQ_READ, _STREAM_WRITE, _TIMER, _METADATA, _FORK, _MMAP)]
    return "\n".join((*texts[:-1], _fork_parts(six), texts[-1]))


def _slowest(six: SixYears, series: str) -> float:
    """What all but a hundredth of the reads stay below, in microseconds."""
    return six.value("seq-read", series, "latency p99")


def _fork_parts(six: SixYears) -> str:
    why = six.why("fork", "5.10", "6.18")
    rows = [(name, signed(why.subsystem(name), ","), what) for name, what in _FORK_PARTS]
    return table(("subsystem", "instructions", "what"), rows)


def _claims(measuring: Measuring, six: SixYears) -> None:
    """What the sections say in words."""
    share = log(six.ratio("seq-read", "6.18", "6.12")) / log(six.ratio("seq-read", "7.2"))
    measuring.claim(share > 0.8, "seq-read: nearly all of it in 6.18")
    timer = six.why("timer", "6.18", "7.2")
    measuring.claim(not timer.row("timerfd_tmrproc").after.entered, "timer: no callback in 7.2")
    started = timer.row("hrtimer_start_range_ns_user")
    measuring.claim(not started.before.names, "timer: hrtimer_start_range_ns_user is new in 7.2")
    metadata = six.why("metadata", "6.12", "6.18")
    measuring.claim(not metadata.row("crc32_body").after.instructions, "crc32_body is not run in 6.18")
    with_module = _with_module(measuring)
    least = min(six.value("metadata", series) for series in ("6.18", "7.2"))
    measuring.claim(with_module < least, "with crc32c_intel 5.10 takes fewer instructions than 6.18 or 7.2")
    parts = list(six.why("fork", "5.10", "6.18").explanation.subsystems)
    measuring.claim(parts[:2] == ["maple tree", "page tables"], f"fork: the largest parts are {parts[:4]}")
    measuring.claim(six.ratio("mmap", "7.2", "6.18") < 0.95, "mmap: in 7.2 some of it is gone again")


def _checksum(six: SixYears) -> float:
    """The share of checksums in what stream-write lost from 5.10 to 7.2."""
    explanation = six.why("stream-write", "5.10", "7.2").explanation
    rows = (row for row in explanation.rows if "crc32" in row.function)
    return float(sum(explanation.difference(row) for row in rows) / explanation.total)


def _with_module(measuring: Measuring) -> float:
    """Instructions of metadata on 5.10 with the fast checksum's module."""
    study = measuring.in_file(STUDY)
    machine = study.machine.model_copy(update={"modules": ("crc32c_intel",)})
    (factor,) = study.factors
    numbers = measuring.run(
        study.model_copy(
            update={
                "name": "crc32c-module",
                "machine": machine,
                "workloads": tuple(use for use in study.workloads if use.name == "metadata"),
                "factors": (factor.model_copy(update={"levels": factor.levels[:2]}),),
            }
        )
    )
    return numbers.value("debian:5.10", "metadata")


BLOCKS = (Block("six-years-causes", PAGE, _causes),)
