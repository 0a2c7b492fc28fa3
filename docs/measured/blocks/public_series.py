"""docs/series.md: series that others made, patch by patch, by the results that are kept of them."""

from collections import Counter
from functools import partial

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.series_result import kept
from docs.measured.series_rows import row_of
from docs.measured.wording import prose, table, with_commas

_SERIES = {"cachyos": "CachyOS", "clear": "Clear Linux, patches that change C files alone"}
_SUMMARY = """
**{title}**, {all} patches onto `{base}`, in {workloads}: {states}. Of the {functions} functions that it
changes {executed} ran.{cost}
"""


def _text(measuring: Measuring, name: str) -> str:
    """A sentence on the whole, and a row a patch."""
    del measuring
    told = kept(f"series_{name}")
    seconds = told.get("cpu_seconds", 0)
    states = Counter(one["state"] for one in told["patches"])
    summary = prose(
        _SUMMARY,
        title=_SERIES[name],
        all=str(len(told["patches"])),
        base=told["base"],
        workloads=", ".join(f"`{one}`" for one in told["workloads"]),
        states=", ".join(f"{number} {state}" for state, number in states.most_common()),
        functions=with_commas(told["functions"]),
        executed=with_commas(told["functions"] - told["not_executed"]),
        cost=f" It took {with_commas(seconds)} CPU seconds, without the base's build." if seconds else "",
    )
    rows = [row_of(one) for one in told["patches"]]
    return f"{summary}\n{table(('', 'patch', 'it is', 'instructions per operation'), rows)}"


BLOCKS = tuple(
    Block(f"series-of-{name}", "docs/series.md", partial(_text, name=name), simulated=True)
    for name in _SERIES
)
