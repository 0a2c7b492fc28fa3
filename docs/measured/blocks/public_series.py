"""docs/series.md: series that others made, patch by patch, by the results that are kept of them."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.series_result import kept
from docs.measured.series_rows import plain, row_of
from docs.measured.wording import prose, table, with_commas

_SERIES = {"cachyos": "CachyOS", "clear": "Clear Linux", "openwrt": "OpenWrt's `hack-6.1`, as lede has it"}
_SUMMARY = """
**{title}**, {count} onto `{base}`, in {workloads}: {states}.{functions} It took {cpu} CPU
seconds, without the base{base_cost}.{out}
"""
_FUNCTIONS = " Of the {all} functions that it changes {executed} ran."
_OUT = " Left out, as they recompile most of the kernel: {subjects}."
_BUILT = ("built", "same image", "does not build", "does not boot")
_WITHOUT_KERNEL = ("not compiled", "does not apply")
"""States of which the numbers stand in the sentence, and no row in the table."""


def _text(measuring: Measuring, name: str) -> str:
    """A sentence on the whole, and a row for each patch that was built."""
    del measuring
    result = kept(f"series_{name}")
    patches, out, rest = result["patches"], result["commented_out"], result["not_measured"]
    length = len(patches) + len(out) + len(rest)
    functions, executed = result["functions"], result["functions"] - result["not_executed"]
    ran = _FUNCTIONS.format(all=with_commas(functions), executed=with_commas(executed))
    summary = prose(
        _SUMMARY,
        title=_SERIES[name],
        count=f"the first {length - len(rest)} of {length} patches" if rest else f"{length} patches",
        base=result["base"],
        workloads=", ".join(f"`{workload}`" for workload in result["workloads"]),
        states=", ".join(_states(patches)),
        functions=ran if functions else "",
        cpu=with_commas(result["cpu_seconds"]),
        base_cost=f" ({with_commas(result['base_cpu_seconds'])})" if result["base_cpu_seconds"] else "",
        out=_OUT.format(subjects="; ".join(f"“{plain(subject)}”" for subject in out)) if out else "",
    )
    rows = [(*row_of(patch), _seconds(patch)) for patch in patches if patch["state"] in _BUILT]
    built = "build and boot, CPU s" if result.get("with_boots") else "build, CPU s"
    heads = ("", "patch", "it is", "instructions per operation", built)
    return f"{summary}\n{table(heads, rows)}"


def _states(patches: list[dict[str, Any]]) -> Iterator[str]:
    """`built` 11, `not compiled` 2 (3, 5)."""
    for state in (*_BUILT, *_WITHOUT_KERNEL):
        numbers = [str(patch["number"]) for patch in patches if patch["state"] == state]
        which = f" ({', '.join(numbers)})" if state in _WITHOUT_KERNEL else ""
        if numbers:
            yield f"`{state}` {len(numbers)}{which}"


def _seconds(patch: dict[str, Any]) -> str:
    seconds = patch["cpu_seconds"]
    return "" if seconds is None else with_commas(seconds)


BLOCKS = tuple(
    Block(f"series-of-{name}", "docs/series.md", partial(_text, name=name), simulated=True)
    for name in _SERIES
)
