"""docs/parallel.md: what scales over CPUs, and what does not."""

import json
import statistics
from typing import NamedTuple

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.parallel_values import value
from docs.measured.wording import decimal, prose, table

from ktrial.file_digests import digest_of_file
from ktrial.kernels import kernel_registry
from ktrial.machines.exact_parallel import ParallelMachine
from ktrial.machines.guest_programs import directory, parallel
from ktrial.model.machine import Boot
from ktrial.model.parallel import MemoryModel
from ktrial.model.workload import WorkloadUse

_KERNEL = "debian:6.12"
_CPUS = (1, 2, 4, 8)
_SEEDS = (0, 1, 2)


class _Row(NamedTuple):
    """What is measured: a workload with a task for each CPU."""

    what: str
    name: str
    parameters: dict[str, int | str]


_SHORT = "a loop, for 3 ms"
_ROWS = (
    _Row("a loop", "loop1", {"passes": 1, "operations": 50_000}),
    _Row(_SHORT, "loop1", {"passes": 1, "operations": 5000}),
    _Row("getppid", "getppid1", {"passes": 1, "operations": 50_000}),
    _Row("open, a file of one's own", "open1", {"passes": 1, "operations": 2000}),
    _Row("open, one file", "open2", {"passes": 1, "operations": 2000}),
    _Row("append, a file of one's own", "append1", {"passes": 1, "operations": 3000}),
    _Row("append, one file", "append2", {"passes": 1, "operations": 1000}),
    _Row("page faults, processes", "page-fault1", {"passes": 1, "operations": 20}),
    _Row("page faults, threads", "page-fault1", {"kind": "threads", "passes": 1, "operations": 20}),
    _Row("spin lock in user space", "spin1", {"passes": 1}),
    _Row("mutex in user space", "futex3", {"passes": 1, "operations": 500}),
)
_LINES = tuple(row for row in _ROWS if row.what in {"getppid", "open, one file", "spin lock in user space"})
_LOOPS, _SHARED = ("a loop",), ("append, one file", "page faults, threads")
_TEXT = """
How many times as much {most} and fewer CPUs get done as one, with `{kernel}`, a task for each of them, on
average over {seeds} seeds:
"""
_WORDS = """
A loop that shares nothing takes as long on each of {most} CPUs as on one, to {apart} %, in a pass of 31
ms. In a pass of 3 ms more than {most} CPUs' worth seems to be done ({short}): on one CPU the process
that has started the tasks works beside them in the first milliseconds (its page faults after `fork`,
its `wait4`, what is freed of it later), on several CPUs it does so before they begin, or elsewhere.
That is no gain: where a number is to be trusted to a percent, have a pass take 10 ms or more
(`operations`).
"""


def speed_ups_of(measuring: Measuring, model: MemoryModel = MemoryModel.NONE) -> dict[str, list[float]]:
    """Row → how many times as much 2, 4 and 8 CPUs get done as one, on average over the seeds.

    With a memory model: the rows only in which tasks lock the same cache line, and one in which they do not.
    """
    rows = _ROWS if model is MemoryModel.NONE else _LINES
    values = {cpus: _measured(measuring, cpus, rows, model) for cpus in _CPUS}
    return {
        row.what: [
            statistics.fmean(
                cpus * one / all_of_them
                for one, all_of_them in zip(values[1][row.what], values[cpus][row.what], strict=True)
            )
            for cpus in _CPUS[1:]
        ]
        for row in rows
    }


def _text(measuring: Measuring) -> str:
    speed_ups = speed_ups_of(measuring)
    for what in _LOOPS:
        shares = [times / cpus for times, cpus in zip(speed_ups[what], _CPUS[1:], strict=True)]
        measuring.claim(min(shares) >= 0.99, "independent loops are at least 99 % efficient")
        measuring.claim(max(shares) <= 1.005, "and no more than all of it")
    for what in _SHARED:
        measuring.claim(speed_ups[what][-1] < 0.6 * _CPUS[-1], f"{what} are clearly below")
    heads = ("workload", *(f"{cpus} CPUs" for cpus in _CPUS[1:]))
    rows = [(what, *(decimal(times, 2) for times in each)) for what, each in speed_ups.items()]
    told = prose(_TEXT, most=str(_CPUS[-1]), kernel=_KERNEL, seeds=str(len(_SEEDS)))
    apart = max(abs(times / cpus - 1) for times, cpus in zip(speed_ups["a loop"], _CPUS[1:], strict=True))
    words = prose(
        _WORDS, most=str(_CPUS[-1]), apart=decimal(100 * apart, 2), short=decimal(speed_ups[_SHORT][-1], 2)
    )
    return f"{told}\n{table(heads, rows, right=True)}\n{words}"


def _measured(
    measuring: Measuring, cpus: int, rows: tuple[_Row, ...], model: MemoryModel
) -> dict[str, list[float]]:
    """Row → guest nanoseconds per operation, by seed."""
    kernel = kernel_registry.add(_KERNEL)
    programs = [digest_of_file(path) for path in (parallel(), directory() / "tasks")]
    key = ["scaling", cpus, kernel.digest, list(_SEEDS), [list(row) for row in rows], programs]
    if model is not MemoryModel.NONE:
        key.append(model.value)
    boot = Boot(kernel=kernel, cpus=cpus, memory_model=model)
    measuring.made_with.add(kernel.name, kernel.release)
    values: dict[str, list[float]] = json.loads(measuring.kept(key, lambda: json.dumps(_values(boot, rows))))
    return values


def _values(boot: Boot, rows: tuple[_Row, ...]) -> dict[str, list[float]]:
    with ParallelMachine().start(boot) as target:
        return {
            row.what: [
                value(target, WorkloadUse(name=row.name, parameters=row.parameters), seed) for seed in _SEEDS
            ]
            for row in rows
        }


BLOCKS = (Block("parallel-scaling", "docs/parallel.md", _text),)
