"""The list of published changes: each with its claim, its source and a workload that is there."""

import re
import tomllib

import pytest
from tests.support.places import ROOT

from ktrial.cli.installed import registry

LISTED = tomllib.loads((ROOT / "docs" / "measured" / "published_changes.toml").read_text(encoding="utf-8"))
CHANGES = LISTED["changes"]
KEYS = {
    "commit", "subject", "tree", "reported", "benchmark", "change", "hardware", "report", "contended",
    "workload", "alike", "remade",
}  # fmt: skip


def test_there_are_at_least_fifteen_commits_in_both_directions() -> None:
    assert len({one["commit"] for one in CHANGES}) == len(CHANGES) >= 15
    assert {one["change"] > 0 for one in CHANGES} == {True, False}


@pytest.mark.parametrize("one", CHANGES, ids=[change["commit"][:12] for change in CHANGES])
def test_a_change_says_what_was_claimed_by_whom_and_how_it_is_remade(one: dict[str, str | float]) -> None:
    assert one.keys() == KEYS
    assert re.fullmatch("[0-9a-f]{40}", str(one["commit"]))
    assert re.fullmatch(r"20(2[0-6])-(0[1-9]|1[0-2])", str(one["reported"]))
    assert (one["tree"] in {"linux", "linux-next", "tip"}, one["remade"]) == (True, "revert")
    assert re.fullmatch(r"\d{12}\.[0-9a-f]+-[\w.]+@intel\.com", str(one["report"]))
    assert one["workload"] in registry().workloads
