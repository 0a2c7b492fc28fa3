"""docs/fidelity.md: the built-in workloads, whose number in real time is the time on the wall."""

from typing import Any

from docs.measured.blocks.fidelity import figures_row, is_decided
from docs.measured.declaration import Block
from docs.measured.fidelity_result import kept
from docs.measured.measuring import Measuring
from docs.measured.wording import decimal, percent, table

from ktrial.analysis.fidelity import cross_sections
from ktrial.model.fidelity import CrossSection, Interval, WorkloadCost

_PAGE = "docs/fidelity.md"
_KEPT = "fidelity_built_in"


def _figures(measuring: Measuring) -> str:
    """Signs, ranks and errors of each count, over all pairs of parameters and settings."""
    del measuring
    told = kept(_KEPT)
    heads = ("count", "pairs", "decided in time", "same sign", "Spearman", "Pearson", "RMS error", "slope")
    return table(heads, map(_figures_row, told["all"]), right=True)


def _figures_row(one: dict[str, Any]) -> tuple[str, ...]:
    name, _, *figures = figures_row(one, "")
    return (name, str(one["pairs"]), str(one["pairs"] - one["undecided_in_time"]), *figures)


def _disagreements(measuring: Measuring) -> str:
    """Each pair of which a count has another sign than time."""
    del measuring
    told = kept(_KEPT)
    counts = [one["count"] for one in told["all"]]
    wrong = {tuple(each) for one in told["all"] for each in one["disagreements"]}
    heads = ("change", "workload", "in time, %", *(f"{one}, %" for one in counts))
    of = (one for one in told["pairs"] if (one["study"], one["workload"], one["treatment"]) in wrong)
    return table(
        heads,
        (
            (
                f"`{one['treatment']}`", one["workload"],
                *(_change(each) for each in (one["time"], *(one["exact"][count] for count in counts))),
            )
            for one in of
        ),
    )  # fmt: skip


def _change(change: list[Any]) -> str:
    return percent(change[0]) if is_decided(change) else f"? {percent(change[0])}"


def _workloads(measuring: Measuring) -> str:
    """What an operation of each costs, the cheapest first, and its time for one instruction and one cycle."""
    del measuring
    told = kept(_KEPT)
    rows = sorted(told["workloads"], key=lambda one: one["time"])
    heads = ("workload", "time, ns", "instructions", "modelled cycles", "ns an instruction", "ns a cycle")
    return table(heads, map(_workload_row, rows), right=True)


def _workload_row(one: dict[str, Any]) -> tuple[str, ...]:
    instructions, cycles = one["exact"]["instructions"], one["exact"]["modelled-cycles"]
    counts = (f"{value:,.0f}" for value in (one["time"], instructions, cycles))
    rates = (decimal(one["time"] / value, 3) for value in (instructions, cycles))
    return (f"`{one['workload']}`", *counts, *rates)


_ON_DISKS = ("metadata", "random-read", "seq-read", "stream-write", "file-server")
"""They wait for a file system's storage, which nothing that is counted knows."""


def _across(measuring: Measuring) -> str:
    """How the counts stand to time over workloads: all, and those that wait for no storage."""
    del measuring
    told = kept(_KEPT)
    costs = [WorkloadCost.model_validate(one) for one in told["workloads"]]
    others = [one for one in costs if one.workload not in _ON_DISKS]
    heads = ("workloads", "count", "Spearman", "scatter")
    groups = ((f"all {len(costs)}", costs), (f"the {len(others)} that use no disk", others))
    rows = ((name, *_across_row(one)) for name, some in groups for one in cross_sections(some, told["seed"]))
    return table(heads, rows, right=True)


def _across_row(one: CrossSection) -> tuple[str, str, str]:
    scatter = "unknown" if one.scatter is None else f"{decimal(one.scatter, 2)}-fold"
    return (one.count, _rank(one.spearman), scatter)


def _rank(one: Interval) -> str:
    if one.value is None:
        return "unknown"
    ends = (
        "" if one.low is None or one.high is None else f" ({decimal(one.low, 2)} to {decimal(one.high, 2)})"
    )
    return f"{decimal(one.value, 2)}{ends}"


BLOCKS = tuple(
    Block(f"fidelity-{name}", _PAGE, text, simulated=True)
    for name, text in (
        ("built-in", _figures),
        ("built-in-disagreements", _disagreements),
        ("workloads", _workloads),
        ("across", _across),
    )
)
