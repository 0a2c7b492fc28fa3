"""Several CPUs in simulated time: guest instructions a second of a host core, beside plain TCG.

CPU time of QEMU for the same program, a long run less a short one: what starts a guest does not count.
Plain TCG is QEMU as it is, with a thread for each CPU and the host's time; it counts nothing, so that its
seconds are for as many instructions as the program has in simulated time.
"""

from collections.abc import Iterator
from typing import NamedTuple

from bench.row import Row, median
from bench.subjects.plugin import cpu_seconds
from ktrial.kernels import kernel_registry
from ktrial.machines.exact_parallel import ParallelMachine
from ktrial.machines.kvm import KvmMachine, KvmProbe
from ktrial.model.machine import Boot
from ktrial.model.parallel import QUANTUM_NS, MemoryModel
from ktrial.target import Run, StepResult, Target

KERNEL = "debian:6.12"
CPUS = 4
ROUNDS = 3
UNIT = 100_000_000
"""Instructions that a row's seconds are for."""
LEAST_RATE, LEAST_RATE_WITH_LINES = 50_000_000, 30_000_000
"""Instructions a second of a host core."""
QUANTA = (25, 50, 300, 1000, 3000, 10_000)
"""Beside the default."""
SHORT, LONG, LONGEST = 1, 9, 90
"""Loops of hackbench; the last where each run is a boot, whose own time scatters."""


class _Cost(NamedTuple):
    """What a long run took more than a short one."""

    seconds: float
    instructions: int


def rows() -> Iterator[Row]:
    """The default; with cache lines; other quanta beside the default."""
    boot = Boot(kernel=kernel_registry.add(KERNEL), cpus=CPUS)
    with_lines = boot.model_copy(update={"memory_model": MemoryModel.COHERENCE})
    default, lines, plain = [], [], []
    for _ in range(ROUNDS):
        default.append(_in_simulated_time(boot))
        lines.append(_in_simulated_time(with_lines))
        plain.append(_in_plain_tcg(boot, default[-1]))
    what = f"parallel, {CPUS} CPUs, hackbench: {UNIT:,} guest instructions"
    beside = ("plain TCG", median(list(map(_per_unit, plain))))
    yield _row(what, default, *beside, most_seconds=UNIT / LEAST_RATE)
    yield _row(f"{what}, coherence", lines, most_seconds=UNIT / LEAST_RATE_WITH_LINES)
    usual = (f"rounds of {QUANTUM_NS} ns", median(list(map(_per_unit, default))))
    for quantum in QUANTA:
        other = boot.model_copy(update={"quantum_ns": quantum})
        costs = [_in_simulated_time(other) for _ in range(ROUNDS)]
        yield _row(f"{what}, rounds of {quantum} ns", costs, *usual)


def _row(
    what: str,
    costs: list[_Cost],
    against: str = "",
    other: float | None = None,
    most_seconds: float | None = None,
) -> Row:
    seconds = median(list(map(_per_unit, costs)))
    note = f"{what}: {UNIT / seconds / 1e6:.0f} million a second of a host core"
    return Row(what, seconds, against, other, most_seconds=most_seconds, note=note)


def _per_unit(cost: _Cost) -> float:
    return cost.seconds * UNIT / cost.instructions


def _in_simulated_time(boot: Boot) -> _Cost:
    with ParallelMachine().start(boot) as target:
        short, long = (_run(target, loops) for loops in (SHORT, LONG))
    return _Cost(long[0] - short[0], _instructions(long[1]) - _instructions(short[1]))


def _in_plain_tcg(boot: Boot, counted: _Cost) -> _Cost:
    without_kvm = KvmProbe(usable=False, reason="plain TCG is wanted")
    boot = boot.model_copy(update={"allow_emulated_time": True})
    with KvmMachine(probe=without_kvm).start(boot) as target:
        short, long = (_run(target, loops)[0] for loops in (SHORT, LONGEST))
    return _Cost(long - short, counted.instructions * (LONGEST - SHORT) // (LONG - SHORT))


def _run(target: Target, loops: int) -> tuple[float, StepResult]:
    arguments = ("hackbench", "--fds", "4", "--loops", str(loops * 40), "--passes", "2")
    step = Run(argv=("/ktrial/work", *arguments, "--clock", "tsc"))
    results: list[StepResult] = []
    seconds = cpu_seconds(lambda: results.extend(target.perform((step,))))
    return seconds, results[0]


def _instructions(result: StepResult) -> int:
    assert result.parallel is not None
    return sum(result.parallel.cpus)
