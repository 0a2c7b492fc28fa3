"""docs/exact-mode.md: the same two kernels, counted by the plugin and by the clock."""

from collections.abc import Mapping

from docs.measured.declaration import Block
from docs.measured.errors import NotMeasured
from docs.measured.measuring import Measuring
from docs.measured.wording import count, decimal, percent, prose, table

from ktrial.model.comparison import Comparison
from ktrial.model.workload import STRING_BYTES

_OLD, _NEW = "debian:6.1", "debian:6.12"
_WORKLOADS = ("fork", "exec", "mmap", "copy-4096", "pipe")
_HEADS = ("workload", "plugin: 6.1", "6.12", "change", "bytes, change", "clock: 6.1", "6.12", "change")
_TOLD = """
Of the difference that the clock has for fork ({fork} instructions) {of_fork} %, and of that for exec
({exec}) {of_exec} %, is copying and clearing. Hardware with fast string instructions does that otherwise.
`memset` differs: from 6.4 on it uses `rep stosb` only on CPUs with FSRS, which QEMU 7.2 cannot show. Its
count is right for CPUs without FSRS.
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


def _counted(measuring: Measuring, by: str) -> Mapping[tuple[str, bool], Comparison]:
    """Comparisons by workload, and whether of bytes; with the perturbations of studies/quick.toml."""
    data = {
        "question": "What do 6.1 and 6.12 count?",
        "perturbations": 3,
        "workloads": list(_WORKLOADS),
        "machine": {"count": by},
        "factors": {"kernel": {"levels": [_OLD, _NEW]}},
    }
    compared = measuring.study(f"counted-by-{by}", data).record.result.comparisons
    return {(one.workload, one.metric == STRING_BYTES.name): one for one in compared}


def _counts(compared: Mapping[tuple[str, bool], Comparison], workload: str) -> tuple[str, str, str]:
    numbers = compared[workload, False]
    old, new = _values(numbers)
    return count(old), count(new), f"{percent(new / old, 2)} %"


def _bytes(compared: Mapping[tuple[str, bool], Comparison], workload: str) -> str:
    old, new = _values(compared[workload, True])
    changed = percent(new / old)
    return "0" if changed == "0.0" else f"{changed} %"


def _more(compared: Mapping[tuple[str, bool], Comparison], workload: str) -> float:
    old, new = _values(compared[workload, False])
    return new - old


def _values(comparison: Comparison) -> tuple[float, float]:
    """The geometric means over the perturbations. Raises NotMeasured."""
    if comparison.baseline_value is None or comparison.value is None:
        raise NotMeasured(f"{comparison.workload}: a kernel has no number")
    return comparison.baseline_value, comparison.value


BLOCKS = (Block("counted-by-plugin-and-clock", "docs/exact-mode.md", _text),)
