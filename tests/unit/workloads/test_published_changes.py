"""The lists of published changes: each change with its claim, its source and a workload that is there."""

import re
import tomllib

import pytest
from tests.support.places import ROOT

from ktrial.cli.studies import registry
from ktrial.studyfile.reader import load

PUBLISHED = ROOT / "studies" / "published"
MEASURED = ROOT / "docs" / "measured"
CHANGES = tomllib.loads((MEASURED / "published_changes.toml").read_text(encoding="utf-8"))["changes"]
BACKTEST = tomllib.loads((MEASURED / "backtest.toml").read_text(encoding="utf-8"))["changes"]
KEYS = {
    "commit", "subject", "tree", "reported", "benchmark", "change", "hardware", "report", "contended",
    "workload", "alike", "remade", "source", "not_remade",
}  # fmt: skip


def test_there_are_at_least_fifteen_commits_in_both_directions() -> None:
    assert len({one["commit"] for one in CHANGES}) == len(CHANGES) >= 15
    assert {one["change"] > 0 for one in CHANGES} == {True, False}


@pytest.mark.parametrize("one", CHANGES, ids=[change["commit"][:12] for change in CHANGES])
def test_a_change_says_what_was_claimed_by_whom_and_how_it_is_remade(one: dict[str, str | float]) -> None:
    assert one.keys() == KEYS
    assert re.fullmatch("[0-9a-f]{40}", str(one["commit"]))
    assert re.fullmatch(r"20(2[0-6])-(0[1-9]|1[0-2])", str(one["reported"]))
    assert one["tree"] in {"linux", "linux-next", "tip"}
    assert one["remade"] in {"revert", "setting", "byte"}
    assert re.fullmatch(r"\d{12}\.[0-9a-f]+-[\w.]+@intel\.com", str(one["report"]))
    assert one["workload"] in registry().workloads


COUNTED = [one for one in CHANGES if not one["not_remade"]]


@pytest.mark.parametrize("one", COUNTED, ids=[change["commit"][:12] for change in COUNTED])
def test_a_study_counts_it_beside_a_kernel_that_is_without_it(one: dict[str, str | float]) -> None:
    number = str(one["commit"])[:12]
    table = tomllib.loads((PUBLISHED / f"{number}.toml").read_text(encoding="utf-8"))
    (use,) = table["workloads"]
    assert (use["name"], table["machine"]["model"]) == (one["workload"], "server")
    if one["remade"] == "byte":
        assert table["factors"]["kernel"]["levels"] == ["path:without", one["source"]]
        return
    load(PUBLISHED / f"{number}.toml", registry())
    if one["remade"] == "setting":
        assert table["machine"]["kernel"] == one["source"]
        return
    assert table["kernels"]["source"]["source"] == one["source"]
    assert table["factors"]["change"]["baseline"] == f"patches/{number}.patch"
    head = (PUBLISHED / "patches" / f"{number}.patch").read_text(encoding="utf-8")
    assert head.startswith(f'Takes back commit {number} ("{one["subject"]}")\n')


def test_the_backtest_has_sixty_reports_at_least_half_of_which_are_newer_than_linux_6_1() -> None:
    numbers = {change["commit"][:12] for change in BACKTEST}
    assert len(numbers) == len(BACKTEST) >= 60
    assert sum(change["reported"] >= "2023-01" for change in BACKTEST) * 2 >= len(BACKTEST)
    assert not numbers & {change["commit"][:12] for change in CHANGES}
    assert {change["change"] > 0 for change in BACKTEST} == {True, False}


@pytest.mark.parametrize("change", BACKTEST, ids=[change["commit"][:12] for change in BACKTEST])
def test_a_report_of_the_backtest_says_where_it_can_be_read_and_how_it_is_remade(
    change: dict[str, str | float],
) -> None:
    assert change.keys() == KEYS
    assert re.fullmatch("[0-9a-f]{12}|[0-9a-f]{40}", str(change["commit"]))
    assert re.fullmatch(r"20(1[89]|2[0-6])-(0[1-9]|1[0-2])", str(change["reported"]))
    assert re.fullmatch(r"[\w./+-]+@[\w.-]+|lkml\.org/lkml/[\d/]+", str(change["report"]))
    assert change["tree"] in {"linux", "linux-next", "tip", "vfs", "list", "not read"}
    assert all(change[name] for name in ("change", "hardware", "alike"))
    assert change["workload"] in registry().workloads
    assert change["remade"] in {"revert", "apply", "setting"}
    place = "debian:" if change["remade"] == "setting" else "debian:linux-source-"
    assert re.fullmatch(re.escape(place) + r"\d+\.\d+", str(change["source"]))
