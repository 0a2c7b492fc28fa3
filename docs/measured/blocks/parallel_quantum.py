"""docs/parallel.md: what the length of a round changes in results."""

import math
from collections.abc import Mapping

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.wording import decimal, percent, prose, table

from ktrial.model.parallel import QUANTUM_NS

_KERNEL = "debian:6.12"
_CPUS = 4
_SEEDS = 3
_QUANTA = (100, 300, 1000, 3000, 10_000)
_WORKLOADS: Mapping[str, Mapping[str, int | str]] = {
    "open1": {"passes": 1},
    "append2": {"passes": 1},
    "page-fault1": {"kind": "threads", "passes": 1},
    "futex3": {"passes": 1},
    "hackbench": {"fds": 10, "loops": 3},
}
_MOST = 0.02
_TEXT = """
What a round's length changes: guest time an operation on {cpus} CPUs with `{kernel}`, the mean over
{seeds} seeds, in percent more or less than with rounds of {least} ns; and what seeds alone change with
those, from the lowest to the highest.
"""
_WORDS = """
What shares nothing (`open1`) is the same. Of `append2`, `page-fault1` with threads and `hackbench` seeds
alone change as much. A mutex that changes hands within a round (`futex3`) gets other results: only rounds
of 300 ns are near those of {least} ns. So the default is not within 2 % for all workloads; where locks of
user space that are held for less than a microsecond matter, ask for `quantum = 300` or less.
"""
_Means = dict[str, tuple[float, float]]


def _text(measuring: Measuring) -> str:
    found = {quantum: _measured(measuring, quantum) for quantum in _QUANTA}
    least = found[_QUANTA[0]]
    heads = ("workload", *(f"{quantum} ns" for quantum in _QUANTA[1:]), "seeds, %")
    rows = [
        (
            name,
            *(percent(found[quantum][name][0] / mean) for quantum in _QUANTA[1:]),
            decimal(100 * spread, 1),
        )
        for name, (mean, spread) in least.items()
    ]
    _hold_to_claims(measuring, found)
    told = prose(_TEXT, cpus=str(_CPUS), kernel=_KERNEL, seeds=str(_SEEDS), least=str(_QUANTA[0]))
    words = prose(_WORDS, least=str(_QUANTA[0]))
    return f"{told}\n{table(heads, rows, right=True)}\n{words}"


def _measured(measuring: Measuring, quantum: int) -> _Means:
    """Workload → guest time an operation, the geometric mean over the seeds, and what they span of it."""
    data = {
        "machine": {"kind": "exact-parallel", "kernel": _KERNEL, "quantum": quantum},
        "factors": {"cpus": {"levels": [1, _CPUS]}},
        "workloads": [{"name": name, **parameters} for name, parameters in _WORKLOADS.items()],
        "perturbations": _SEEDS,
    }
    values: dict[str, list[float]] = {}
    for trial in measuring.study(f"rounds of {quantum} ns", data).record.trials:
        if trial.planned.treatment.levels["cpus"] != _CPUS:
            continue
        first = {sample.workload: sample.value for sample in reversed(trial.samples)}
        for label, value in first.items():
            values.setdefault(label.partition("(")[0], []).append(value)
    return {name: _mean_and_spread(values[name]) for name in _WORKLOADS}


def _mean_and_spread(values: list[float]) -> tuple[float, float]:
    mean = math.exp(math.fsum(map(math.log, values)) / len(values))
    return mean, (max(values) - min(values)) / mean


def _hold_to_claims(measuring: Measuring, found: dict[int, _Means]) -> None:
    apart = abs(found[QUANTUM_NS]["open1"][0] / found[_QUANTA[0]]["open1"][0] - 1)
    measuring.claim(apart < _MOST, "what shares nothing is the same with the default")
    mutex = {
        quantum: abs(found[quantum]["futex3"][0] / found[_QUANTA[0]]["futex3"][0] - 1) for quantum in found
    }
    measuring.claim(
        mutex[300] < 2 * _MOST < mutex[QUANTUM_NS], "a mutex is near with 300 ns, and not with more"
    )
    for name in ("append2", "page-fault1", "hackbench"):
        mean, spread = found[_QUANTA[0]][name]
        moved = abs(found[QUANTUM_NS][name][0] / mean - 1)
        measuring.claim(moved < spread, f"{name}: seeds alone change as much as the default")


BLOCKS = (Block("parallel-quantum", "docs/parallel.md", _text),)
