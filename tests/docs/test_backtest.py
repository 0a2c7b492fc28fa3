"""What is kept of the backtest, and what ktrial's verdict is worth beside a public report."""

from typing import Any

import pytest
from docs.measured.backtest_result import kept, listed, reduced, scored, verdict_of
from docs.measured.backtest_run import STUDIES, cases, patch_of


def a_row(decision: str, verdict: str, metric: str = "call", ratio: float = 0.9) -> dict[str, Any]:
    numbers = {"ratio": ratio, "low": ratio, "high": ratio, "direction": "lower"}
    return {"workload": "poll1", "metric": metric, "decision": decision, "verdict": verdict, **numbers}


def a_check(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"release": "7.2.13", "rows": list(rows), "warnings": [], "decision": "within", **more}


WHY = {
    "functions": [
        {"function": "do_sys_poll", "difference": -34.0},
        {"function": "fput", "difference": 2.0},
        {"function": "nothing", "difference": 0.0},
    ]
}


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([("within", "better")], "better"),
        ([("within", "equivalent")], "equivalent"),
        ([("within", "inconclusive")], "undecided"),  # no worse: whether it is better is not decided
        ([("within", "identical")], "equivalent"),
        ([("undecided", "inconclusive")], "undecided"),
        ([("within", "better"), ("undecided", "inconclusive")], "undecided"),
        ([("within", "better"), ("beyond", "worse")], "worse"),
        ([("not-executed", "equivalent")], "cannot tell"),
        ([("same-code", "identical")], "cannot tell"),
        ([("beyond", "worse"), ("not-executed", "equivalent")], "worse"),
        ([], "undecided"),
    ],
)
def test_a_verdict_is_the_checks_own(rows: list[tuple[str, str]], verdict: str) -> None:
    assert verdict_of(a_check(*(a_row(*row) for row in rows))) == verdict


@pytest.mark.parametrize(
    ("change", "verdict", "score"),
    [
        (3.9, "better", "right"),
        (-3.9, "worse", "right"),
        (3.9, "worse", "wrong"),
        (-3.9, "better", "wrong"),
        (3.9, "equivalent", "wrong"),  # every report is of a change
        (3.9, "undecided", "undecided"),
        (3.9, "cannot tell", "cannot tell"),  # neither right nor wrong, and not decided
    ],
)
def test_a_verdict_is_right_where_it_has_the_reports_direction(
    change: float, verdict: str, score: str
) -> None:
    assert scored(change, verdict) == score


def test_of_two_answers_the_worse_is_the_verdict_and_the_other_a_warning() -> None:
    several = a_check(a_row("beyond", "worse", ratio=1.4))
    outcome = reduced(a_check(a_row("within", "better"), on_several=several), WHY, {"functions": ["fput"]})
    assert (outcome["verdict"], outcome["warned"], outcome["named"]) == ("worse", True, True)
    assert (outcome["one"]["verdict"], outcome["several"]["verdict"]) == ("better", "worse")
    assert outcome["functions"] == ["do_sys_poll", "fput"]


@pytest.mark.parametrize(
    ("kind", "warned"), [("same-image", True), ("change-not-run", True), ("limit-raised", False)]
)
def test_what_says_that_the_change_was_not_there_is_a_warning(kind: str, warned: bool) -> None:
    check = a_check(a_row("within", "equivalent"), warnings=[{"kind": kind}])
    outcome = reduced(check, WHY, {"functions": ["never_run"]})
    assert (outcome["warned"], outcome["named"]) == (warned, False)


NUMBERS = {change["commit"][:12]: change for change in listed()}


@pytest.mark.parametrize("number", NUMBERS)
def test_every_report_has_an_outcome_or_a_reason_of_its_own_why_not(number: str) -> None:
    reasons = (NUMBERS[number]["not_remade"], cases().get(number, {}).get("not_run", ""))
    assert bool(any(reasons)) != (number in kept())


@pytest.mark.parametrize("number", cases())
def test_a_case_is_one_of_the_list_with_its_patch_and_the_workload_that_the_list_names(number: str) -> None:
    case, change = cases()[number], NUMBERS[number]
    if "functions" not in case:
        assert set(case) == {"not_run"}
        return
    assert case["functions"]
    head = patch_of(number).read_text(encoding="utf-8").partition("\n")[0]
    assert head.endswith(f'{number} ("{change["subject"]}").') or f"{number} there again" in head
    names = case["command"] if "command" in case else [case["workload"].partition("(")[0]]
    assert change["workload"] in names


def test_there_is_no_patch_without_a_case() -> None:
    assert {file.stem for file in (STUDIES / "patches").iterdir()} == {
        number for number, case in cases().items() if "functions" in case
    }
