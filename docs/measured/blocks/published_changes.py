"""docs/fidelity.md: published changes, by their reports and as exact mode counts them."""

from collections.abc import Mapping, Sequence
from typing import Any

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.published_result import kept, listed
from docs.measured.wording import percent, prose, table

_HEADS = (
    "commit",
    "benchmark",
    "theirs",
    "source, workload",
    "by instructions",
    "by modelled cycles",
    "sign by both",
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
    return *told, where, *rates, _signs(theirs, counted)


def _signs(theirs: float, counted: Mapping[str, Any]) -> str:
    """By instructions and by modelled cycles; once where they say the same."""
    if not counted["ran"]:
        return "no code of it ran"
    return ", ".join(dict.fromkeys(sign(theirs, counted[name]) for name in ("instructions", "cycles")))


_IN_SHORT = """
Of the {listed} changes, {counted} were counted, and code of the change ran in {ran}. Of the {plain} of them
whose effect is not contention, instructions have the reported sign in {instructions_same}, the other one in
{instructions_other}, and see nothing in {instructions_none}; modelled cycles in {cycles_same}, {cycles_other}
and {cycles_none}. Of the {contended} others, of which nothing is expected, instructions have it in
{contended_instructions}, modelled cycles in {contended_cycles}.
"""


def _in_short(measuring: Measuring) -> str:
    del measuring
    counted = [(one, kept()[one["commit"][:12]]) for one in listed() if one["commit"][:12] in kept()]
    ran = [(one, told) for one, told in counted if told["ran"]]
    plain = [each for each in ran if not each[0]["contended"]]
    contended = [each for each in ran if each[0]["contended"]]
    signs = {
        f"{name}_{says.rpartition(' ')[2]}": str(_count(plain, name, says))
        for name in ("instructions", "cycles")
        for says in ("the same", "the other", "none")
    }
    return prose(
        _IN_SHORT,
        **{"listed": str(len(listed())), "counted": str(len(counted)), "ran": str(len(ran))},
        **{"plain": str(len(plain)), "contended": str(len(contended)), **signs},
        **{
            f"contended_{name}": str(_count(contended, name, "the same"))
            for name in ("instructions", "cycles")
        },
    )


def _count(changes: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], name: str, says: str) -> int:
    return sum(sign(1 + one["change"] / 100, told[name]) == says for one, told in changes)


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


BLOCKS = (
    Block("published-changes", "docs/fidelity.md", _text, simulated=True),
    Block("published-in-short", "docs/fidelity.md", _in_short, simulated=True),
)
