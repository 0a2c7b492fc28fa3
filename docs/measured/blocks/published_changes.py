"""docs/fidelity.md: published changes, by their reports and as exact mode counts them."""

from collections.abc import Mapping, Sequence
from typing import Any

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.published_result import kept, listed
from docs.measured.wording import percent, prose, table

from ktrial.model.comparison import Verdict
from ktrial.model.workload import Direction
from ktrial.stats.verdict_rules import interval_verdict

_HEADS = (
    "commit",
    "benchmark",
    "theirs",
    "source, workload",
    "by instructions",
    "by modelled cycles",
    "verdict by both",
)
_MARGIN = 0.01
"""ktrial's own, where none is given."""


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
    return *told, where, *rates, _verdicts(theirs, counted)


def _verdicts(theirs: float, counted: Mapping[str, Any]) -> str:
    """By instructions and by modelled cycles; once where they say the same."""
    if not counted["ran"]:
        return "no code of it ran"
    return ", ".join(dict.fromkeys(scored(theirs, counted[name]) for name in ("instructions", "cycles")))


_IN_SHORT = """
Of the {listed} changes, {counted} were counted, and code of the change ran in {ran}. ktrial's own verdicts,
at the default margin of 1 %, on the {plain} of them whose effect is not contention: by instructions
{instructions_right} are right, {instructions_wrong} wrong (the other way), {instructions_equivalent}
missed (“equivalent”, where the report has more than 1 %) and {instructions_undecided} undecided; by
modelled cycles {cycles_right}, {cycles_wrong}, {cycles_equivalent} and {cycles_undecided}. Of the
{contended} others, of which nothing is expected, instructions are right in {contended_instructions},
modelled cycles in {contended_cycles}.
"""


def _in_short(measuring: Measuring) -> str:
    del measuring
    counted = [(one, kept()[one["commit"][:12]]) for one in listed() if one["commit"][:12] in kept()]
    ran = [(one, told) for one, told in counted if told["ran"]]
    plain = [each for each in ran if not each[0]["contended"]]
    contended = [each for each in ran if each[0]["contended"]]
    scores = {
        f"{name}_{score}": str(_count(plain, name, score))
        for name in ("instructions", "cycles")
        for score in ("right", "wrong", "equivalent", "undecided")
    }
    return prose(
        _IN_SHORT,
        **{"listed": str(len(listed())), "counted": str(len(counted)), "ran": str(len(ran))},
        **{"plain": str(len(plain)), "contended": str(len(contended)), **scores},
        **{f"contended_{name}": str(_count(contended, name, "right")) for name in ("instructions", "cycles")},
    )


def _count(changes: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], name: str, score: str) -> int:
    return sum(scored(1 + one["change"] / 100, told[name]) == score for one, told in changes)


def _rate(counted: Mapping[str, Any]) -> str:
    """The change of the rate: work that costs 1 % more is done at 1 / 1.01 of the rate; with its interval."""
    low, high = percent(1 / counted["high"], 2), percent(1 / counted["low"], 2)
    return f"{percent(1 / counted['ratio'], 2)} % ({low} … {high})"


def scored(theirs: float, counted: Mapping[str, Any]) -> str:
    """What ktrial's verdict on the counted change is worth beside the report; both as ratios of rates."""
    match interval_verdict(1 / counted["high"], 1 / counted["low"], Direction.HIGHER, _MARGIN):
        case Verdict.EQUIVALENT:
            return "equivalent"
        case Verdict.INCONCLUSIVE:
            return "undecided"
        case verdict:
            return "right" if (verdict is Verdict.BETTER) == (theirs > 1) else "wrong"


BLOCKS = (
    Block("published-changes", "docs/fidelity.md", _text, simulated=True),
    Block("published-in-short", "docs/fidelity.md", _in_short, simulated=True),
)
