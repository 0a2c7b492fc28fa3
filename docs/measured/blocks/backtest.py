"""docs/fidelity.md: public reports that were remade, and what ktrial's own verdicts on them are worth."""

from collections.abc import Iterator, Mapping
from typing import Any

from docs.measured.backtest_result import CANNOT_TELL, kept, listed, scored
from docs.measured.backtest_run import cases
from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.wording import percent, prose, table

_VERDICTS = ("better", "worse", "equivalent", "undecided", CANNOT_TELL)
_NOT_DECIDED = frozenset({"undecided", CANNOT_TELL})
_HEADS = ("commit", "benchmark", "theirs", "workload", "ours", "verdict", "commit named", "warned of")


def _answered() -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """The reports that ktrial has a verdict on, with it."""
    outcomes = kept()
    for change in listed():
        outcome = outcomes.get(change["commit"][:12])
        if outcome and "verdict" in outcome:
            yield change, outcome


_IN_SHORT = """
Of the {listed} reports {run} were remade. ktrial decided {decided} of them ({decided_share}): {right} right
({right_share} of the decided), {wrong} wrong, {unwarned} of these without a warning. {undecided} it left
undecided. Of {silent} it said that the workload tells nothing of the change, which counts as not decided;
`--find` named workloads that run it for {followed} of these. A function of the commit was among the five that
differ most in {named} of the decided ones. {failed} gave no answer, {left} were not run.
"""


def _in_short(measuring: Measuring) -> str:
    del measuring
    answered = list(_answered())
    scores = [scored(change["change"], outcome["verdict"]) for change, outcome in answered]
    decided = [pair for pair, score in zip(answered, scores, strict=True) if score not in _NOT_DECIDED]
    wrong = [outcome for (_, outcome), score in zip(answered, scores, strict=True) if score == "wrong"]
    failed = sum("failed" in outcome for outcome in kept().values())
    return prose(
        _IN_SHORT,
        listed=str(len(listed())),
        run=str(len(answered)),
        decided=str(len(decided)),
        decided_share=_share(len(decided), len(answered)),
        right=str(scores.count("right")),
        right_share=_share(scores.count("right"), len(decided)),
        wrong=str(len(wrong)),
        unwarned=str(sum(not outcome["warned"] for outcome in wrong)),
        undecided=str(scores.count("undecided")),
        silent=str(scores.count(CANNOT_TELL)),
        followed=str(sum("found" in outcome for _, outcome in answered)),
        named=str(sum(outcome["named"] for _, outcome in decided)),
        failed=str(failed),
        left=str(len(listed()) - len(answered) - failed),
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}".replace("%", " %") if whole else "none"


def _matrix(measuring: Measuring) -> str:
    del measuring
    answered = list(_answered())
    rows = (
        (
            name,
            *(
                str(
                    sum(
                        outcome["verdict"] == verdict
                        for change, outcome in answered
                        if (change["change"] > 0) == better and change["contended"] == contended
                    )
                )
                for verdict in _VERDICTS
            ),
        )
        for name, better, contended in (
            ("better", True, False),
            ("better, contended", True, True),
            ("worse", False, False),
            ("worse, contended", False, True),
        )
    )
    return table(("the report", *(f"ktrial: {verdict}" for verdict in _VERDICTS)), rows, right=True)


def _cases(measuring: Measuring) -> str:
    del measuring
    outcomes, prepared = kept(), cases()
    return table(
        _HEADS,
        (
            _row(change, outcomes.get(change["commit"][:12]), prepared.get(change["commit"][:12], {}))
            for change in listed()
        ),
    )


def _row(
    change: Mapping[str, Any], outcome: Mapping[str, Any] | None, case: Mapping[str, Any]
) -> tuple[str, ...]:
    mark = " (contended)" if change["contended"] else ""
    theirs = f"{percent(1 + change['change'] / 100)} %{mark}"
    start = f"`{change['commit'][:12]}`", change["benchmark"], theirs
    if not outcome or "failed" in outcome:
        reason = outcome["failed"] if outcome else case.get("not_run") or change["not_remade"]
        return *start, "–", "–", _cell(reason), "–", "–"
    score = scored(change["change"], outcome["verdict"])
    ours = _rate(outcome["one"])
    if outcome["several"]:
        ours = f"one CPU {ours}; 4 CPUs {_rate(outcome['several'])}"
    verdict = f"{outcome['verdict']}, {score}"
    if score in _NOT_DECIDED:
        reason = outcome.get("reason", "").replace("-", " ")
        verdict = f"{score}: {reason}" if reason else score
    if other := outcome.get("found"):
        verdict += f"; in `{other['workload']}` {_rate(other['one'])}, {other['verdict']}"
    return (
        *start,
        f"`{outcome['workload']}`",
        ours,
        verdict,
        "yes" if outcome["named"] else "no",
        _warned(outcome) if score == "wrong" else "–",
    )


def _warned(outcome: Mapping[str, Any]) -> str:
    if not outcome["warned"]:
        return "no"
    return ", ".join(kind.replace("-", " ") for kind in outcome["warnings"]) or "the two answers differ"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").removesuffix(".")


def _rate(numbers: Mapping[str, Any]) -> str:
    """The change of the rate: work that costs 1 % more is done at 1 / 1.01 of the rate."""
    ratio = numbers["ratio"]
    if ratio is None:
        return "–"
    return f"{percent(1 / ratio if numbers['direction'] == 'lower' else ratio, 2)} %"


BLOCKS = (
    Block("backtest-in-short", "docs/fidelity.md", _in_short, simulated=True),
    Block("backtest-matrix", "docs/fidelity.md", _matrix, simulated=True),
    Block("backtest-cases", "docs/fidelity.md", _cases, simulated=True),
)
