"""docs/parallel.md: page faults of threads in one address space, on one CPU and on four."""

from collections.abc import Iterator
from typing import NamedTuple

from docs.measured.changed_kernels import ChangedByte, changed
from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.study_numbers import StudyNumbers
from docs.measured.wording import decimal, prose, table

from ktrial.analysis.guest_time import TimePart, by_cpu, places, together
from ktrial.analysis.scaling import curves
from ktrial.model.profile import Profile

_KERNELS = tuple(f"debian:{series}" for series in ("5.10", "6.1", "6.12", "6.18", "7.2"))
_STEP = "debian:6.1"
_CPUS = 4
_QUANTUM_NS = 1000
_SEEDS = 3
_COUNTED = "page-fault2"
_PARAMETERS: dict[str, int | str] = {"kind": "threads", "operations": 60, "passes": 1}
_WORKLOADS = (
    {"name": "page-fault1", "kind": "processes", "operations": 20, "passes": 1},
    {"name": "page-fault1", "kind": "threads", "operations": 60, "passes": 1},
    {"name": _COUNTED, **_PARAMETERS},
)
_NO_STEALING = ChangedByte(
    "without-read-lock-stealing",
    # cmp $0x1ff,%rsi; jle; test $1,%al; jne; test $5,%sil in rwsem_down_read_slowpath
    rb"\x48\x81\xfe\xff\x01\x00\x00\x7e.\xa8\x01\x0f\x85....\x40\xf6\xc6\x05",
    0x07,
)
_HEADS = (
    "kernel",
    "page-fault1, processes",
    "page-fault1, threads",
    "page-fault2, threads",
    "idle, %",
    "asleep in",
    "waiting, %",
    "waiting in",
)
_TEXT = """
Tasks map 64 pages, touch each (a page fault), and unmap them: how many times as fast {cpus} CPUs are as
one, on average over {seeds} seeds, in rounds of {quantum} ns. `page-fault1` has anonymous pages, which a
fault clears; in `page-fault2` it also copies a page of a file. What the {cpus} CPUs idled and waited stands
beside it for `page-fault2` with threads, with the place that has most of it, and who wanted the lock.
"""
_CAUSE = """
Processes scale: each has an address space of its own. Threads wait for that of all, `mmap_lock`: faults
take it to read (`lock_mm_and_find_vma`, before it `do_user_addr_fault`), `mmap` and `munmap` to write.
Since 6.4 a fault takes a lock of its mapping instead, and what is left is the lock of the page table
(`pte_offset_map_lock`).

On 6.1 four threads get no more done than one where a fault takes long. The cause is one condition in
`rwsem_down_read_slowpath`: since 5.11
([1a728dff855a](https://git.kernel.org/linus/1a728dff855a318bb58bcc1259b1826a7ad9f0bd)) a reader may take
the lock though a writer sleeps in front of it (`!(count & (RWSEM_WRITER_LOCKED | RWSEM_FLAG_HANDOFF))`).
Whom the lock's release wakes then finds it taken by the next fault, and sleeps again: {switches} changes of
tasks per operation, and {changed_switches} where one byte of the same kernel is another one, so that readers
do not pass tasks that wait (`RWSEM_FLAG_WAITERS` in that condition, too). On one CPU the two take the same
time, to {apart} %.
"""


class _Counted(NamedTuple):
    """What four CPUs did in page-fault2 with threads."""

    idle: float
    waiting: float
    asleep_in: str
    waiting_in: str
    switches: float


def speed_ups_of(measuring: Measuring) -> dict[str, list[float]]:
    """Kernel → speed-ups by four CPUs in page-fault1 of processes, of threads, page-fault2."""
    return _speed_ups(_measured(measuring, _kernels(measuring)))[0]


def _kernels(measuring: Measuring) -> tuple[str, ...]:
    return (*_KERNELS, changed(_STEP, _NO_STEALING, measuring.place))


def _text(measuring: Measuring) -> str:
    kernels = _kernels(measuring)
    other = kernels[-1]
    numbers = _measured(measuring, kernels)
    speed_ups, one_cpu = _speed_ups(numbers)
    counted = {name: _counted(_profile(measuring, name)) for name in kernels}
    _hold_to_claims(measuring, speed_ups, other)
    apart = abs(one_cpu[other] / one_cpu[_STEP] - 1)
    return "\n".join(
        (
            prose(_TEXT, cpus=str(_CPUS), seeds=str(_SEEDS), quantum=str(_QUANTUM_NS)),
            table(_HEADS, _rows(kernels, speed_ups, counted, other)),
            prose(
                _CAUSE,
                switches=decimal(counted[_STEP].switches, 0),
                changed_switches=decimal(counted[other].switches, 0),
                apart=decimal(100 * apart, 2),
            ),
        )
    )


def _measured(measuring: Measuring, kernels: tuple[str, ...]) -> StudyNumbers:
    data = {
        "machine": {"kind": "exact-parallel", "quantum": _QUANTUM_NS},
        "factors": {"kernel": {"levels": list(kernels)}, "cpus": {"levels": [1, _CPUS]}},
        "workloads": list(_WORKLOADS),
        "perturbations": _SEEDS,
    }
    return measuring.study("page faults on several CPUs", data)


def _speed_ups(numbers: StudyNumbers) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Kernel → its speed-ups, in the workloads' order; kernel → throughput of the last on one CPU."""
    speed_ups: dict[str, list[float]] = {}
    one_cpu = {}
    for curve in curves(numbers.record):
        speed_ups.setdefault(curve.treatment, []).append(curve.points[-1].speed_up)
        one_cpu[curve.treatment] = curve.points[0].value
    return speed_ups, one_cpu


def _profile(measuring: Measuring, kernel: str) -> Profile:
    return measuring.profile(kernel, _COUNTED, _PARAMETERS, cpus=_CPUS, quantum_ns=_QUANTUM_NS)


def _counted(profile: Profile) -> _Counted:
    time = together(by_cpu(profile))
    idle, waiting = (next(iter(places(profile, part))).name for part in (TimePart.IDLE, TimePart.WAITING))
    return _Counted(
        100 * time.idle / time.whole, 100 * time.waiting / time.whole, idle, waiting, time.switches
    )


def _rows(
    kernels: tuple[str, ...],
    speed_ups: dict[str, list[float]],
    counted: dict[str, _Counted],
    other: str,
) -> Iterator[tuple[str, ...]]:
    for name in kernels:
        one = counted[name]
        yield (
            f"`{_STEP}`, one byte changed" if name == other else f"`{name}`",
            *(decimal(value, 2) for value in speed_ups[name]),
            decimal(one.idle, 0),
            f"`{one.asleep_in}`",
            decimal(one.waiting, 0),
            f"`{one.waiting_in}`",
        )


def _hold_to_claims(measuring: Measuring, speed_ups: dict[str, list[float]], other: str) -> None:
    for name, (processes, threads, copies) in speed_ups.items():
        measuring.claim(processes > 3 and threads < 3, f"{name}: processes scale, threads less")
        if name == _STEP:
            measuring.claim(copies < 1.1, f"{name}: four threads get no more done than one")
        else:
            measuring.claim(copies > 1.5, f"{name}: page-fault2 is faster on four CPUs")
    measuring.claim(speed_ups[other][-1] > 2, "6.1 scales with one byte changed")


BLOCKS = (Block("parallel-page-faults", "docs/parallel.md", _text),)
