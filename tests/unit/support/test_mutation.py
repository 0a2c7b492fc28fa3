"""The areas whose mutants are drawn at night, and how the shares are told and kept."""

import tomllib
from pathlib import Path

import pytest
from tests.mutation.scores import Score, record
from tests.support.places import ROOT

LISTED = tomllib.loads((ROOT / "tests/mutation/areas.toml").read_text(encoding="utf-8"))
EQUIVALENT = tomllib.loads((ROOT / "tests/mutation/equivalent.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("area", LISTED)
def test_every_module_and_test_of_an_area_is_there(area: str) -> None:
    for pattern in (name for names in LISTED[area].values() for name in names):
        assert list(ROOT.glob(pattern)), f"{area}: {pattern}"


@pytest.mark.parametrize("area", EQUIVALENT)
def test_every_equivalent_mutant_is_of_a_file_of_its_area_and_has_a_reason(area: str) -> None:
    mutated = {path for pattern in LISTED[area]["mutate"] for path in ROOT.glob(pattern)}
    for entry in EQUIVALENT[area]:
        assert ROOT / entry["file"] in mutated
        assert entry["before"] != entry["after"]
        assert entry["reason"]


def score(seed: int, survived: int) -> Score:
    outcomes = dict.fromkeys(("a", "b", "c"), "tests/x.py::test") | {"d": "mypy", "e": "ruff"}
    outcomes |= {f"s{place}": "survived" for place in range(survived)}
    return Score("store", seed, 900, outcomes)


def test_the_share_is_of_what_tests_mypy_or_ruff_have_noticed() -> None:
    assert (score(1, 3).noticed, score(1, 3).share) == (5, 5 / 8)
    assert score(1, 3).survivors == {"s0", "s1", "s2"}
    assert score(1, 3).row == "| store | 900 | 1 | 8 | 5 | 3 | 2 | 62% (31% to 86%) |"


def test_a_new_measurement_takes_the_place_of_the_one_with_the_same_seed(tmp_path: Path) -> None:
    file = tmp_path / "measured.md"
    for one in (score(2, 3), score(1, 1), score(2, 0)):
        record(file, one)
    rows = file.read_text().splitlines()[2:]
    assert rows[:3] == [score(1, 1).row, score(2, 0).row, ""]
    assert rows[-1] == "| store | 11 | 10 | 91% (62% to 98%) |", "all seeds together"
    assert sum(row == rows[-1] for row in rows) == 1
