"""The areas whose mutants are drawn at night: what moves takes its name in the list along."""

import tomllib

import pytest
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
