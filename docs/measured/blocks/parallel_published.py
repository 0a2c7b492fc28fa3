"""docs/parallel.md: what was published of scaling, and what is measured here."""

from docs.measured.blocks.parallel_page_faults import speed_ups_of as page_faults
from docs.measured.blocks.parallel_scaling import speed_ups_of as scaling
from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.wording import Lookup, decimal, table

from ktrial.model.parallel import MemoryModel

_HEADS = ("published", "measured here", "")
_ROWS = (
    (
        "Threads that fault in one address space wait for its `mmap_sem`; without a lock they scale to 80 "
        "cores ([Zeldovich 2012](http://www.linuxsymposium.org/2012/view_abstract.php?content_key=4))",
        "`page-fault2` of threads, 4 CPUs against one: {copies[5.10]} on 5.10, {copies[6.1]} on 6.1, asleep "
        "in `rwsem_down_read_slowpath`; processes {processes[5.10]} and {processes[6.1]}",
        "as published",
    ),
    (
        "Locks of mappings (6.4) let faults of threads pass each other "
        "([LWN 2022](https://lwn.net/Articles/906852/))",
        "the same on later kernels: {copies[6.12]} on 6.12, {copies[6.18]} on 6.18, {copies[7.2]} on 7.2",
        "as published",
    ),
    (
        "Faults in memory that nobody has touched need no `mmap_lock` (6.10): 3 times the throughput in a "
        "run of the kernel test robot ([Wilcox 2024](http://mail.spinics.net/lists/linux-mm/msg383231.html))",
        "`page-fault1` of threads, 4 CPUs against one: {faults[6.1]} on 6.1, {faults[6.12]} on 6.12",
        "the direction; `mmap` and `munmap`, which still take it to write, are in the operation",
    ),
    (
        "File systems have threads that write to one file wait for each other "
        "([2021](https://aminer.org/pub/60926e9c91e0116eaca3e97e/concurrent-file-metadata-structure-using-readers-writer-lock))",
        "8 CPUs against one append to one file: {times[append, one file]}; to files of their own: "
        "{times[append, a file of one's own]}",
        "as published",
    ),
    (
        "A count that all cores change limits what only reads "
        "([2021](https://doaj.org/article/95e779783a034fd696059895f3c2a6b8): readers of one file)",
        "8 CPUs against one open one file, which is counted: {times[open, one file]}; with "
        '`memory_model = "coherence"` {coherence[open, one file]}',
        "only with the memory model, and little: the rest of `open` is long beside 40 ns",
    ),
    (
        "Locks that do not queue collapse: each more core means less "
        "([Boyd-Wickizer et al. 2012](https://pdos.csail.mit.edu/6.828/2014/readings/linux-lock.pdf))",
        "`spin1`, a lock by compare-and-exchange, 2, 4, 8 CPUs against one: {spin[none]}; with "
        '`memory_model = "coherence"` {spin[coherence]}',
        "only with the memory model",
    ),
    (
        "Processes that fault wait for `zone->lock` on big servers "
        "([Lu 2018](https://lkml.indiana.edu/hypermail/linux/kernel/1802.0/02579.html))",
        "`page-fault1` of processes, 8 CPUs against one: {times[page faults, processes]}",
        "something; 8 CPUs are no big server",
    ),
)


def _text(measuring: Measuring) -> str:
    plain, lines, faults = (
        scaling(measuring),
        scaling(measuring, MemoryModel.COHERENCE),
        page_faults(measuring),
    )
    _hold_to_claims(measuring, plain, lines, faults)
    spin = {"none": plain["spin lock in user space"], "coherence": lines["spin lock in user space"]}
    values = {
        "processes": _of(faults, 0),
        "faults": _of(faults, 1),
        "copies": _of(faults, 2),
        "times": _most(plain),
        "coherence": _most(lines),
        "spin": Lookup(lambda model: ", ".join(decimal(value, 2) for value in spin[model])),
    }
    return table(_HEADS, ([cell.format(**values) for cell in row] for row in _ROWS))


def _of(faults: dict[str, list[float]], place: int) -> Lookup:
    return Lookup(lambda series: decimal(faults[f"debian:{series}"][place], 2))


def _most(speed_ups: dict[str, list[float]]) -> Lookup:
    return Lookup(lambda *words: decimal(speed_ups[" ".join(words)][-1], 2))


def _hold_to_claims(
    measuring: Measuring,
    plain: dict[str, list[float]],
    lines: dict[str, list[float]],
    faults: dict[str, list[float]],
) -> None:
    spin, collapsed = plain["spin lock in user space"], lines["spin lock in user space"]
    measuring.claim(spin == sorted(spin), "without a memory model a spin lock does not collapse")
    measuring.claim(
        collapsed == sorted(collapsed, reverse=True) and collapsed[0] < 1, "with one each CPU more means less"
    )
    measuring.claim(plain["append, one file"][-1] < 2, "appends to one file wait for each other")
    measuring.claim(faults["debian:6.12"][1] > faults["debian:6.1"][1], "page-fault1 gains from 6.1 to 6.12")
    opened = lines["open, one file"][-1] / plain["open, one file"][-1]
    measuring.claim(0.9 < opened < 1, "the memory model costs opens of one file little")


BLOCKS = (Block("parallel-published", "docs/parallel.md", _text),)
