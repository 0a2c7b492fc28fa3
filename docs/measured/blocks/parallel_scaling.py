"""docs/parallel.md: what scales over CPUs, and what does not."""

import json
import statistics
from typing import NamedTuple

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.parallel_values import value
from docs.measured.wording import decimal, prose, table

from ktrial import kernels
from ktrial.file_digests import digest_of_file
from ktrial.machines.exact_parallel import ParallelMachine
from ktrial.machines.guest_programs import directory, parallel
from ktrial.model.boot import Boot
from ktrial.model.workload import WorkloadUse

_KERNEL = "debian:6.12"
_CPUS = (1, 2, 4, 8)
_SEEDS = (0, 1, 2)


class _Row(NamedTuple):
    """What is measured: a workload with a task for each CPU."""

    what: str
    name: str
    parameters: dict[str, int | str]


_ROWS = (
    _Row("a loop", "loop1", {"passes": 1}),
    _Row("getppid", "getppid1", {"passes": 1}),
    _Row("open, a file of one's own", "open1", {"passes": 1}),
    _Row("open, one file", "open2", {"passes": 1, "operations": 200}),
    _Row("append, a file of one's own", "append1", {"passes": 1, "operations": 300}),
    _Row("append, one file", "append2", {"passes": 1, "operations": 300}),
    _Row("page faults, processes", "page-fault1", {"passes": 1, "operations": 20}),
    _Row("page faults, threads", "page-fault1", {"kind": "threads", "passes": 1, "operations": 20}),
    _Row("spin lock in user space", "spin1", {"passes": 1}),
    _Row("mutex in user space", "futex3", {"passes": 1, "operations": 500}),
)
_LOOPS, _SHARED = ("a loop",), ("append, one file", "page faults, threads")
_TEXT = """
How many times as much {most} and fewer CPUs get done as one, with `{kernel}`, a task for each of them, on
average over {seeds} seeds:
"""


def _text(measuring: Measuring) -> str:
    values = {cpus: _measured(measuring, cpus) for cpus in _CPUS}
    speed_ups = {
        row.what: [
            statistics.fmean(
                cpus * one / all_of_them
                for one, all_of_them in zip(values[1][row.what], values[cpus][row.what], strict=True)
            )
            for cpus in _CPUS[1:]
        ]
        for row in _ROWS
    }
    for what in _LOOPS:
        efficient = all(times >= 0.99 * cpus for times, cpus in zip(speed_ups[what], _CPUS[1:], strict=True))
        measuring.claim(efficient, "independent loops are at least 99 % efficient")
    for what in _SHARED:
        measuring.claim(speed_ups[what][-1] < 0.6 * _CPUS[-1], f"{what} are clearly below")
    heads = ("workload", *(f"{cpus} CPUs" for cpus in _CPUS[1:]))
    rows = [(what, *(decimal(times, 2) for times in each)) for what, each in speed_ups.items()]
    told = prose(_TEXT, most=str(_CPUS[-1]), kernel=_KERNEL, seeds=str(len(_SEEDS)))
    return f"{told}\n{table(heads, rows, right=True)}"


def _measured(measuring: Measuring, cpus: int) -> dict[str, list[float]]:
    """Row → guest nanoseconds an operation, by seed."""
    kernel = kernels.add(_KERNEL)
    programs = [digest_of_file(path) for path in (parallel(), directory() / "tasks")]
    key = ["scaling", cpus, kernel.digest, list(_SEEDS), [list(row) for row in _ROWS], programs]
    boot = Boot(kernel=kernel, cpus=cpus)
    measuring.made_with.add(kernel.name, kernel.release)
    found: dict[str, list[float]] = json.loads(measuring.kept(key, lambda: json.dumps(_values(boot))))
    return found


def _values(boot: Boot) -> dict[str, list[float]]:
    with ParallelMachine().start(boot) as target:
        return {
            row.what: [
                value(target, WorkloadUse(name=row.name, parameters=row.parameters), seed) for seed in _SEEDS
            ]
            for row in _ROWS
        }


BLOCKS = (Block("parallel-scaling", "docs/parallel.md", _text),)
