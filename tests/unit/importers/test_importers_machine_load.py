"""What a machine did meanwhile (vmstat, sadf) is a condition of results, unless somebody says otherwise."""

from pathlib import Path

import pytest
from tests.support.places import PROGRAM_OUTPUTS
from tests.support.program_texts import only_family

from ktrial.importers import Choices, read_all
from ktrial.importers.errors import ImportFailed
from ktrial.model.imported import Imported

RESULT = PROGRAM_OUTPUTS / "hackbench-2.40.txt"
BUSY, SWAPPING = PROGRAM_OUTPUTS / "sysstat-12.6.1.json", PROGRAM_OUTPUTS / "vmstat-3.3.txt"


def imported(*files: tuple[str, Path], value: str = "") -> Imported:
    (whole,) = read_all(files, Choices(value=value))
    return whole


def test_what_the_machine_did_is_a_condition_of_the_results_with_its_label() -> None:
    whole = imported(("old", RESULT), ("new", RESULT), ("old", BUSY), ("new", SWAPPING))
    conditions = {group.label: group.conditions for group in only_family(whole).groups}
    assert (conditions["old"]["CPU use"], conditions["old"]["swapping"]) == ("100 %", "no")
    assert (conditions["new"]["CPU use"], conditions["new"]["swapping"]) == ("90 %", "yes")
    assert conditions["old"]["groups"] == "2"


def test_sar_s_own_tables_are_conditions_too() -> None:
    whole = imported(("old", RESULT), ("new", RESULT), ("old", PROGRAM_OUTPUTS / "sar-12.6.1.txt"))
    conditions = {group.label: group.conditions for group in only_family(whole).groups}
    assert (conditions["old"]["CPU use"], conditions["old"]["swapping"]) == ("100 %", "no")
    assert "CPU use" not in conditions["new"]


def test_what_belongs_to_no_group_is_told() -> None:
    whole = imported(("old", RESULT), ("new", RESULT), ("newer", BUSY))
    assert "belongs to no group" in " ".join(warning.text for warning in whole.warnings)


def test_alone_it_is_no_result() -> None:
    with pytest.raises(ImportFailed, match="tells what a machine did, which is no result"):
        imported(("", BUSY))


def test_it_is_a_result_where_one_of_its_numbers_is_named() -> None:
    family = only_family(imported(("a", BUSY), value="run queue"))
    assert (family.metric, family.groups[0].values) == ("run queue", (63.25,))
    with pytest.raises(ImportFailed, match="has no number seconds"):
        imported(("a", BUSY), value="seconds")


def test_a_value_that_is_another_file_s_leaves_it_a_condition(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    table.write_text("kernel,seconds\nold,1.5\nold,1.6\nnew,1.4\nnew,1.3\n")
    whole = imported(("", table), ("old", BUSY), value="seconds")
    assert {group.label: group.conditions.get("CPU use") for group in only_family(whole).groups} == {
        "old": "100 %",
        "new": None,
    }
