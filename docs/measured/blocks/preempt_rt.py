"""docs/preempt-rt.md: each patch of Debian's PREEMPT_RT series, by the results that are kept of it."""

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.series_result import kept
from docs.measured.series_rows import percent_of, plain, row_of, value_of
from docs.measured.wording import count, prose, signed, table

_PAGE = "docs/preempt-rt.md"
_OFF = "preempt_rt"
_ON = "preempt_rt_on"
_STATES = {
    "not configurable": "before the option can be set: the kernel of the patch with which it can is the base",
    "not compiled": "nothing of it is compiled in this configuration: neither built nor booted",
    "same image": "built, and the kernel is the same to the last byte that is loaded",
    "built": "another kernel, and measured",
    "does not build": "no kernel comes out",
    "does not boot": "no kernel that boots comes out",
    "does not apply": "not on this source",
}
_SUMMARY = """
{measured} of the {all} patches are measured here, in {workloads}. {exercised}
"""


def _summary(measuring: Measuring, name: str) -> str:
    told = kept(name)
    del measuring
    measured, rest = len(told["patches"]), len(told["not_measured"])
    states = Counter(one["state"] for one in told["patches"])
    values = {
        "all": str(measured + rest),
        "measured": f"The first {measured}" if rest else "All",
        "workloads": ", ".join(f"`{one}`" for one in told["workloads"]),
        "exercised": re.sub(r"\b\w*_\w+(?:\.\w+)*", r"`\g<0>`", told["exercised"]).rstrip(".") + ".",
    }
    rows = [(f"`{state}`", str(states[state]), what) for state, what in _STATES.items() if states[state]]
    states_of = table(("a patch is", "patches", "which means"), rows)
    return f"{prose(_SUMMARY, **values)}\n{states_of}"


def _patches(measuring: Measuring, name: str) -> str:
    del measuring
    told = kept(name)
    rows = [row_of(one) for one in told["patches"]]
    first = len(rows) + 1
    rows += [
        (str(number), plain(subject), "not measured", "")
        for number, subject in enumerate(told["not_measured"], start=first)
    ]
    state = "with `PREEMPT_RT` on" if name == _ON else "with `PREEMPT_RT` off"
    return table(("", "patch", state, "instructions per operation"), rows)


def _costs(measuring: Measuring, name: str) -> str:
    del measuring
    told = kept(name)
    lines = [line for patch in told["patches"] for line in _costs_of(patch)]
    beyond = [one for one in told["totals"] if one["ratio"]]
    beyond.sort(key=lambda one: -abs(one["ratio"] - 1))
    rows = [
        (
            f"`{one['workload']}`",
            count(value_of(one["before"])),
            count(value_of(one["after"])),
            percent_of(one),
        )
        for one in beyond
    ]
    heads = ("base to tip", "before", "after", "change")
    differing = (
        "\n".join(lines) or "None leaves the margin, and none has a part in a function that a patch changes."
    )
    return f"{differing}\n\n{table(heads, rows, right=True)}"


def _costs_of(patch: dict[str, Any]) -> list[str]:
    """A line for each cell in which something leaves the margin, with its functions."""
    lines = []
    for cell in patch["cells"]:
        if cell["inside"]:
            continue
        rows = [
            f"`{row['function']}` {signed(value_of(row['difference']))}"
            for row in cell["functions"]
            if round(value_of(row["difference"]))
        ]
        more = f"{signed(value_of(cell['difference']))} ({percent_of(cell)})"
        lines.append(prose(f"- {patch['number']}, {cell['workload']}: {more}: {', '.join(rows)}").rstrip())
    return lines


def _block(what: str, name: str, text: Callable[..., str]) -> Block:
    beside = "-on" if name == _ON else ""
    return Block(f"preempt-rt{beside}-{what}", _PAGE, partial(text, name=name), simulated=True)


BLOCKS = tuple(
    _block(what, name, text)
    for name in (_OFF, _ON)
    for what, text in (("summary", _summary), ("patches", _patches), ("costs", _costs))
)
