"""docs/fidelity.md: published changes, by their reports and as exact mode counts them."""

from collections.abc import Mapping
from typing import Any

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.published_result import kept, listed
from docs.measured.wording import percent, table

_HEADS = (
    "commit",
    "benchmark",
    "theirs",
    "source, workload",
    "by instructions",
    "by modelled cycles",
    "sign",
)
_NOTHING = 0.0005
"""What two decimals of a percent do not tell apart from no change: half of 0.1 %."""


def _text(measuring: Measuring) -> str:
    del measuring
    counted = kept()
    return table(_HEADS, (_row(one, counted.get(one["commit"][:12])) for one in listed()))


def _row(change: Mapping[str, Any], counted: Mapping[str, Any] | None) -> tuple[str, ...]:
    theirs = 1 + change["change"] / 100
    mark = " (contended)" if change["contended"] else ""
    told = f"`{change['commit'][:12]}`", change["benchmark"].partition(" (")[0], f"{percent(theirs)} %{mark}"
    if not counted:
        return *told, "–", "–", "–", change["not_remade"] or "not counted yet"
    where = f"{change['source'].rpartition('-')[2]}, `{counted['workload']}`"
    rates = [_rate(counted[name]) for name in ("instructions", "cycles")]
    return *told, where, *rates, sign(theirs, counted["cycles"])


def _rate(counted: Mapping[str, Any]) -> str:
    """The change of the rate: work that costs 1 % more is done at 1 / 1.01 of the rate; with its interval."""
    low, high = percent(1 / counted["high"], 2), percent(1 / counted["low"], 2)
    return f"{percent(1 / counted['ratio'], 2)} % ({low} … {high})"


def sign(theirs: float, counted: Mapping[str, Any]) -> str:
    """Whether what was counted has the sign of what was reported, as ratios of rates."""
    low, high = 1 / counted["high"], 1 / counted["low"]
    if low <= 1 <= high or abs(1 / counted["ratio"] - 1) < _NOTHING:
        return "none"
    return "the same" if (low > 1) == (theirs > 1) else "the other"


BLOCKS = (Block("published-changes", "docs/fidelity.md", _text, simulated=True),)
