"""docs/parallel.md: what the length of a round changes in results."""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.parallel_values import value
from docs.measured.wording import decimal, percent, prose, table

from ktrial.file_digests import digest_of_file
from ktrial.kernels import kernel_registry
from ktrial.machines.exact_parallel import ParallelMachine
from ktrial.machines.guest_programs import directory, parallel
from ktrial.model.machine import Boot
from ktrial.model.parallel import QUANTUM_NS
from ktrial.model.workload import WorkloadUse

_KERNEL = "debian:6.12"
_CPUS = 4
_SEEDS = (0, 1, 2, 3)
_QUANTA = (100, 25, 50, 300, 1000, 3000, 10_000)
"""The first is what the others are compared with."""
_WORKLOADS: Mapping[str, Mapping[str, int | str]] = {
    "open1": {"passes": 1, "tasks": _CPUS},
    "append2": {"passes": 1, "tasks": _CPUS},
    "page-fault1": {"kind": "threads", "passes": 1, "operations": 60, "tasks": _CPUS},
    "futex3": {"passes": 1, "tasks": _CPUS},
    "hackbench": {"fds": 10, "loops": 3},
}
_MOST = 0.02
_TEXT = """
What a round's length changes: guest time per operation on {cpus} CPUs with `{kernel}`, the geometric mean
over {seeds} seeds, in percent more or less than with rounds of {least} ns, and the standard error of that,
in which the seeds' scatter is.
"""
_WORDS = """
What shares nothing (`open1`) is the same. A mutex of user space that is held for a hundred instructions
(`futex3`) is the one that minds most: within a round that is longer than it is held, a CPU takes it
several times before another one sees it. The default is the largest of 100, 300, 1000, 3000 and 10000
ns with which nothing is further than 2 % from 100 ns, which is 100 ns itself. That is no limit either:
shorter rounds still change `futex3` by a tenth and `hackbench` by some percent, and cost more. Where
such a difference matters, ask for `quantum = 25` as well, and see whether the answer stays.
"""


class _Mean(NamedTuple):
    """Over the seeds: of the logarithm of nanoseconds, and its standard error."""

    log: float
    error: float


def _text(measuring: Measuring) -> str:
    by_quantum = {quantum: _measured(measuring, quantum) for quantum in _QUANTA}
    least, *others = _QUANTA
    others.sort()
    heads = ("workload", *(f"{quantum} ns" for quantum in others))
    rows = [
        (name, *(_cell(by_quantum[quantum][name], mean) for quantum in others))
        for name, mean in by_quantum[least].items()
    ]
    _hold_to_claims(measuring, by_quantum)
    told = prose(_TEXT, cpus=str(_CPUS), kernel=_KERNEL, seeds=str(len(_SEEDS)), least=str(least))
    return f"{told}\n{table(heads, rows, right=True)}\n{prose(_WORDS)}"


def _cell(mean: _Mean, least: _Mean) -> str:
    error = 100 * math.hypot(mean.error, least.error)
    return f"{percent(math.exp(mean.log - least.log))} ± {decimal(error, 1)}"


def _measured(measuring: Measuring, quantum: int) -> dict[str, _Mean]:
    kernel = kernel_registry.add(_KERNEL)
    programs = [digest_of_file(path) for path in (parallel(), directory() / "tasks", directory() / "work")]
    key = ["quantum", quantum, kernel.digest, _CPUS, list(_SEEDS), {**_WORKLOADS}, programs]
    boot = Boot(kernel=kernel, cpus=_CPUS, quantum_ns=quantum)
    values = json.loads(measuring.kept(key, lambda: json.dumps(_values(boot))))
    measuring.made_with.add(kernel.name, kernel.release)
    return {name: _mean([math.log(value) for value in each]) for name, each in values.items()}


def _mean(logs: Sequence[float]) -> _Mean:
    return _Mean(statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs)))


def _values(boot: Boot) -> dict[str, list[float]]:
    """Workload → guest nanoseconds per operation, by seed."""
    with ParallelMachine().start(boot) as target:
        return {
            name: [
                value(target, WorkloadUse(name=name, parameters=dict(parameters)), seed) for seed in _SEEDS
            ]
            for name, parameters in _WORKLOADS.items()
        }


def _hold_to_claims(measuring: Measuring, by_quantum: dict[int, dict[str, _Mean]]) -> None:
    def apart(quantum: int, name: str) -> float:
        return abs(math.expm1(by_quantum[quantum][name].log - by_quantum[_QUANTA[0]][name].log))

    same = all(apart(quantum, "open1") < _MOST for quantum in _QUANTA)
    measuring.claim(same, "what shares nothing is the same with each quantum")
    measuring.claim(QUANTUM_NS == 100, "the default is 100 ns")
    longer = (300, 1000, 3000, 10_000)
    measuring.claim(
        all(any(apart(quantum, name) > _MOST for name in _WORKLOADS) for quantum in longer),
        "none of the longer ones is within 2 % for all workloads",
    )


BLOCKS = (Block("parallel-quantum", "docs/parallel.md", _text),)
