"""What a check beyond its limit is explained by: the functions that weigh, for people and programs."""

from dataclasses import replace

import pytest
from rich.console import Console
from tests.support.making import a_table
from tests.support.profiles import a_profile

from ktrial.analysis.attribution.decomposition import explain
from ktrial.cli.render.regression_check import as_json, as_markdown, print_check
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.fidelity import NO_FIDELITY
from ktrial.model.regression_check import CheckedMetric, Decision, RegressionCheck
from ktrial.model.workload import Direction, Mode

BEFORE = a_profile({("fork", ""): 10_000, ("exit", ""): 5_000, ("tick", ""): 50})
AFTER = a_profile(
    {("fork", ""): 13_000, ("exit", ""): 4_000, ("tick", ""): 55, ("clear_page", ""): 10},
    string_bytes={("clear_page", ""): 40_960},
    kernel="path:/vmlinux",
)


def a_check(metric: str = "fork, exit, wait", *, secondary: bool = False) -> RegressionCheck:
    comparison = Comparison(
        workload="fork", metric=metric, unit="instructions", direction=Direction.LOWER,
        baseline="debian:6.1", treatment="path:/vmlinux", baseline_value=1505, value=1706.5, ratio=1.134,
        low=1.13, high=1.14, verdict=Verdict.WORSE, mode=Mode.EXACT_PLUGIN,
    )  # fmt: skip
    row = CheckedMetric(
        comparison, 0.01, Decision.BEYOND, secondary=secondary, explanation=explain(BEFORE, AFTER)
    )
    return RegressionCheck("path:/vmlinux", "6.1.7", "debian:6.1", Decision.BEYOND, (row,))


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_check(a_check(), 5, Console(width=100, markup=False, highlight=False))
    return capsys.readouterr().out.splitlines()


def test_the_functions_that_weigh_are_named_with_their_shares_and_a_tick_is_not(printed: list[str]) -> None:
    start = next(place for place, line in enumerate(printed) if "made of, in instructions" in line)
    assert [line.split() for line in printed[start + 1 : start + 4]] == [
        ["+300", "149", "%", "fork"],
        ["−100", "−50", "%", "exit"],
        [],
    ]


def test_a_row_of_bytes_is_explained_by_bytes() -> None:
    text = as_markdown(a_check("string-bytes", secondary=True), 5).replace("\xa0", " ")
    assert "| `fork string-bytes` | ✗ beyond |" in text
    assert "made of, in bytes of string instructions an operation" in text
    assert "| `clear_page` | +4,096 | 100 % |" in text


@pytest.mark.parametrize(("top", "functions"), [(0, 0), (1, 1), (5, 2)])
def test_no_more_functions_are_shown_than_were_asked_for(top: int, functions: int) -> None:
    text = as_markdown(a_check(), top)
    assert sum(text.count(f"| `{name}` |") for name in ("fork", "exit")) == functions + 1, "and the workload"


def test_names_from_a_kernel_are_no_markup() -> None:
    check = RegressionCheck(
        "path:/a|b`c", "6.1 @somebody <b>", "debian:6.1", Decision.NOT_RUN, (), "*no*", "\x1b[31mred\n"
    )
    text = as_markdown(check, 5)
    assert "@somebody" not in text
    assert "\x1b" not in text
    assert r"\*no\*" in text


def test_json_keeps_what_tables_round() -> None:
    (row,) = as_json(a_check())["rows"]
    assert (row["ratio"], row["decision"], row["explanation"]["workload"]) == (1.134, "beyond", "fork")


def test_a_change_is_cited_with_what_is_known_of_changes_of_its_size() -> None:
    check = replace(a_check(), fidelity=(a_table(3), a_table(58)))
    said = "on machines like this one (host, EPYC; calls) changes of 10 to 30 % by instructions had the right"
    assert said + " sign in 58 of 58 cases; real time left 2 undecided" in as_markdown(check, 5).replace(
        "\xa0", " "
    )
    cited = as_json(check)["rows"][0]["fidelity"]
    assert (cited["band"]["same_sign"], cited["names"], cited["count"]) == (58, ["calls"], "instructions")
    assert cited["sentence"].startswith(said)


def test_where_nothing_is_known_only_what_people_take_for_time_says_so() -> None:
    row = a_check().rows[0]
    told = row.comparison.model_copy(update={"unit": "cycles", "metric": "modelled-cycles"})
    cycles = replace(a_check(), rows=(replace(row, comparison=told),))
    assert NO_FIDELITY in as_markdown(cycles, 5)
    assert NO_FIDELITY not in as_markdown(a_check(), 5)
    assert as_json(cycles)["rows"][0]["fidelity"] is None
    same = told.model_copy(update={"verdict": Verdict.EQUIVALENT})
    assert NO_FIDELITY not in as_markdown(replace(cycles, rows=(replace(row, comparison=same),)), 5)
