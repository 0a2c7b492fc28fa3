"""docs/exact-mode.md: the same two kernels, counted by the plugin and by the clock."""

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.study_numbers import StudyNumbers
from docs.measured.wording import count, decimal, percent, prose, table

_OLD, _NEW = "debian:6.1", "debian:6.12"
_WORKLOADS = ("fork", "exec", "mmap", "copy-4096", "pipe")
_HEADS = ("workload", "plugin: 6.1", "6.12", "change", "bytes, change", "clock: 6.1", "6.12", "change")
_TOLD = """
Of the difference that the clock has for fork ({fork} instructions) {of_fork} %, and of that for exec
({exec}) {of_exec} %, is copying and clearing that hardware with fast string instructions does otherwise.
`memset` is another matter: from 6.4 on it uses `rep stosb` only where the CPU has FSRS, which QEMU 7.2 has
no name for. What it shows is right for CPUs without FSRS.
"""


def _text(measuring: Measuring) -> str:
    plugin, clock = (_counted(measuring, by) for by in ("plugin", "clock"))
    rows = [
        (workload, *_counts(plugin, workload), _bytes(plugin, workload), *_counts(clock, workload))
        for workload in _WORKLOADS
    ]
    values = {}
    for workload in ("fork", "exec"):
        by_plugin, by_clock = (_more(each, workload) for each in (plugin, clock))
        measuring.claim(0 < by_plugin < by_clock, f"{workload}: the clock counts more than hardware runs")
        values[workload] = count(by_clock)
        values[f"of_{workload}"] = decimal(100 * (1 - by_plugin / by_clock), 0)
    return f"{table(_HEADS, rows)}\n{prose(_TOLD, **values)}"


def _counted(measuring: Measuring, by: str) -> StudyNumbers:
    data = {
        "question": "What do 6.1 and 6.12 count?",
        "perturbations": 1,
        "workloads": list(_WORKLOADS),
        "machine": {"count": by},
        "factors": {"kernel": {"levels": [_OLD, _NEW]}},
    }
    return measuring.study(f"counted-by-{by}", data)


def _counts(numbers: StudyNumbers, workload: str) -> tuple[str, str, str]:
    old, new = (count(numbers.value(kernel, workload)) for kernel in (_OLD, _NEW))
    return old, new, f"{percent(numbers.ratio(_NEW, _OLD, workload))} %"


def _bytes(numbers: StudyNumbers, workload: str) -> str:
    changed = percent(numbers.ratio(_NEW, _OLD, workload, "string-bytes"))
    return "0" if changed == "0.0" else f"{changed} %"


def _more(numbers: StudyNumbers, workload: str) -> float:
    return numbers.value(_NEW, workload) - numbers.value(_OLD, workload)


BLOCKS = (Block("counted-by-plugin-and-clock", "docs/exact-mode.md", _text),)
