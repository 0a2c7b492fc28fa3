"""docs/workloads.md, docs/check.md: how far what must not matter moves the built-in workloads' medians."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.wording import decimal, prose, table

from ktrial import workloads
from ktrial.experiment.regression_check import FLOOR
from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine
from ktrial.model.design import Perturbation
from ktrial.model.machine import Boot
from ktrial.model.workload import CountedBy, WorkloadUse

_KERNELS = ("debian:6.1", "debian:6.12")
_AS_IT_IS = Perturbation(number=0)
_LIMIT = 0.005
_CHANGES: tuple[tuple[Mapping[str, Any], Perturbation], ...] = (
    ({"memory_mib": 256}, _AS_IT_IS),
    ({"memory_mib": 1024}, _AS_IT_IS),
    ({"parameters": ("padding=" + "x" * 500,)}, _AS_IT_IS),
    ({"parameters": ("loglevel=3",)}, _AS_IT_IS),
    ({"initrd_padding": 5_000_000}, _AS_IT_IS),
    ({}, Perturbation(number=1, environment_bytes=4000)),
    ({}, Perturbation(number=2, layout_seed=12345)),
    ({}, Perturbation(number=3, layout_seed=54321)),
    ({}, Perturbation(number=4, start_offset=3_456_789)),
)
"""Of the boot, and of the trial."""
_CHAOTIC = "hackbench"
_BYTES = "string-bytes"
_PAIRS = 2
"""Workloads a line."""
_CHANGED = """
Largest change of the median when memory (256, 1024 MiB), command line, log level, size of the initial RAM
disk, environment (4000 bytes), address-space seed (two) or start offset change, against none of them, in
percent, counted by the plugin:
"""
_BUT_FOR = """
`{chaotic}` moves by up to {most} %, and the bytes of its string instructions by up to {bytes} %; those of
the others by at most {other_bytes} %.
"""
_MOST = 0.8
_LEAST_LIMIT = """
A limit below {floor} % is raised to {floor} %. Changes that must not matter (the initial RAM disk's size,
the guest's memory) move most medians by less, and none but `hackbench`'s by more than {most} % (`{name}` on
{series}; [all of them](workloads.md#how-far-irrelevant-changes-move-a-median)).
"""


def _text(measuring: Measuring) -> str:
    moved = {kernel: _moved(measuring, kernel) for kernel in _KERNELS}
    names = sorted(name for name in workloads.DEFAULT if name != _CHAOTIC)
    largest = max(each[name] for each in moved.values() for name in names)
    measuring.claim(
        largest < _LIMIT, f"all but {_CHAOTIC} keep to {_LIMIT:.1%}: the largest is {largest:.2%}"
    )
    cells = [(name, *(_percent(moved[kernel][name], 2) for kernel in _KERNELS)) for name in names]
    half = -(-len(cells) // _PAIRS)
    rows = [
        (*cells[place], "", *(cells[place + half] if place + half < len(cells) else ("", "", "")))
        for place in range(half)
    ]
    series = [kernel.partition(":")[2] for kernel in _KERNELS]
    heads = ("workload", *series, "", "workload", *series)
    bytes_ = {name: max(each[f"{name} {_BYTES}"] for each in moved.values()) for name in workloads.DEFAULT}
    told = prose(
        _BUT_FOR,
        chaotic=_CHAOTIC,
        most=_percent(max(each[_CHAOTIC] for each in moved.values()), 0),
        bytes=_percent(bytes_.pop(_CHAOTIC), 0),
        other_bytes=_percent(max(bytes_.values()), 2),
    )
    return "\n".join((prose(_CHANGED), table(heads, rows), told))


def _least_limit(measuring: Measuring) -> str:
    """Of the changes, those of the memory and of the initial RAM disk: a check has other ones of them."""
    changes = [each for each in _CHANGES if each[0].keys() & {"memory_mib", "initrd_padding"}]
    moved = {
        (name, kernel): share
        for kernel in _KERNELS
        for name, share in _moved(measuring, kernel, changes).items()
        if _CHAOTIC not in name and _BYTES not in name
    }
    (name, kernel), most = max(moved.items(), key=lambda item: item[1])
    within = sum(share < FLOOR for share in moved.values()) / len(moved)
    measuring.claim(within > _MOST, f"what must not matter moves most medians by less than {FLOOR:.1%}")
    return prose(
        _LEAST_LIMIT,
        floor=_percent(FLOOR, 1),
        name=name,
        series=kernel[len("debian:") :],
        most=_percent(most, 2),
    )


def _percent(share: float, digits: int) -> str:
    return decimal(100 * share, digits)


def _moved(
    measuring: Measuring, kernel: str, what: Iterable[tuple[Mapping[str, Any], Perturbation]] = _CHANGES
) -> dict[str, float]:
    """Workload, and workload with `string-bytes` → the largest relative change of its median."""
    plain = _medians(measuring, kernel, {}, _AS_IT_IS)
    moved = dict.fromkeys(plain, 0.0)
    for changes, perturbation in what:
        for name, value in _medians(measuring, kernel, changes, perturbation).items():
            if plain[name]:
                moved[name] = max(moved[name], abs(value / plain[name] - 1))
    return moved


def _medians(
    measuring: Measuring, kernel: str, changes: Mapping[str, Any], perturbation: Perturbation
) -> dict[str, float]:
    """All built-in workloads, one after another in one system."""
    added = kernel_registry.add(kernel)
    measuring.made_with.add(kernel, added.release)
    boot = Boot(kernel=added).model_copy(update=changes)
    changed = [dict(changes), perturbation.model_dump(mode="json"), list(workloads.DEFAULT)]
    text = measuring.kept(["medians", added.digest, *changed], lambda: json.dumps(_run(boot, perturbation)))
    told: dict[str, float] = json.loads(text)
    return told


def _run(boot: Boot, perturbation: Perturbation) -> dict[str, float]:
    machine = ExactMachine(count=CountedBy.PLUGIN)
    machine.check()
    uses = [workloads.check(WorkloadUse(name=name)) for name in workloads.DEFAULT]
    steps = tuple(step for use in uses for step in workloads.find(use).steps(use, machine.mode, perturbation))
    with machine.instrumented(boot) as target:
        results = target.counted(steps)
    medians: dict[str, float] = {}
    for use, result in zip(uses, results, strict=True):
        for sample in workloads.find(use).samples(use, machine.mode, (result,)):
            medians[f"{use.name} {_BYTES}" if sample.metric == _BYTES else use.name] = sample.value
    return medians


BLOCKS = (
    Block("irrelevant-changes", "docs/workloads.md", _text),
    Block("least-limit", "docs/check.md", _least_limit),
)
