"""Units of tables: what each column and cell is in, what is converted, and what is asked for."""

from pathlib import Path

import pytest
from tests.support.program_texts import HIGHER, LOWER, only_family, read_file, table

from ktrial.importers import Choices, read_all
from ktrial.importers.errors import ImportFailed
from ktrial.model.imported import Imported
from ktrial.program_outputs.units import units_said


def with_units(path: Path, *texts: str) -> Imported:
    (whole,) = read_all([("", path)], Choices(units=units_said(texts)))
    return whole


def test_more_megabits_a_second_are_better(tmp_path: Path) -> None:
    family = only_family(read_file(table(tmp_path, "kernel,throughput_mbit_s", "a,940", "b,980")))
    assert (family.unit, family.direction) == ("Mbit/s", HIGHER)


def test_every_cell_is_converted_to_the_unit_of_the_first(tmp_path: Path) -> None:
    rows = ("kernel,latency,unit", "a,10,ms", "a,0.0105,s", "b,9000,us")
    imported = read_file(table(tmp_path, *rows))
    family = only_family(imported)
    assert (family.unit, family.direction) == ("ms", LOWER)
    assert {group.label: group.values for group in family.groups} == {"a": (10, 10.5), "b": (9,)}
    assert "results.csv: numbers in s, us were converted to ms" in [each.text for each in imported.warnings]


def test_means_and_their_errors_are_converted_too(tmp_path: Path) -> None:
    rows = ("kernel,mean,se,unit", "a,10,0.5,ms", "b,9000,400,us")
    summary = only_family(read_file(table(tmp_path, *rows))).groups[1].summary
    assert summary is not None
    assert summary.standard_error is not None
    assert (summary.mean.value, summary.standard_error.value) == (9, 0.4)


@pytest.mark.parametrize("other", ["MB/s", "", "widgets", "lightyears"])
def test_units_of_two_quantities_in_a_family_are_refused_with_the_line(tmp_path: Path, other: str) -> None:
    path = table(tmp_path, "kernel,latency,unit", "a,10,ms", f"b,9000,{other}")
    with pytest.raises(ImportFailed, match=r"line 3: the unit is .*, where line 2 has ms"):
        read_file(path)


def test_a_unit_in_doubt_is_asked_for(tmp_path: Path) -> None:
    path = table(tmp_path, "kernel,rate_builds_s", "a,940", "b,980")
    with pytest.raises(ImportFailed, match="so nothing is read: rate_builds_s"):
        read_file(path)
    imported = read_file(path, value="rate_builds_s")
    assert only_family(imported).direction is None
    (told,) = imported.warnings
    assert "the unit builds_s is not known, and none is assumed" in told.text
    assert told.advice == "say what it is: --unit builds_s=s or --unit builds_s=builds/s"
    assert only_family(with_units(path, "builds_s=builds/s")).direction is HIGHER
    assert only_family(with_units(path, "builds_s=s")).direction is LOWER


@pytest.mark.parametrize("name", ["messages_per_10_seconds", "Core(s)", "rows_per_100_ms"])
def test_what_only_looks_like_seconds_is_no_time(tmp_path: Path, name: str) -> None:
    path = table(tmp_path, f"kernel,{name}", "a,940", "b,980")
    with pytest.raises(ImportFailed, match="may mean several things"):
        read_file(path)
    family = only_family(read_file(path, value=name))
    assert (family.unit, family.direction) == ("", None)


def test_a_unit_that_is_not_known_is_asked_for(tmp_path: Path) -> None:
    path = table(tmp_path, "kernel,value,unit", "a,940,zorps", "b,980,zorps")
    (told,) = read_file(path).warnings
    assert told.text.endswith("units that are not known: zorps")
    assert "--unit 'zorps=zorps:higher' or :lower" in told.advice
    assert only_family(with_units(path, "zorps=zorps:lower")).direction is LOWER


@pytest.mark.parametrize(
    ("header", "rows", "value"),
    [
        ("kernel,time_stamp,seconds", ["a,2024-05-01T10:00:00,3.1", "b,2024-05-01T10:01:00,3.2"], "seconds"),
        ("kernel,result_id,value", ["a,1,3.1", "b,2,3.2"], "value"),
        ("kernel,time,duration", ["a,1600000000,3.1", "b,1600000010.5,3.2"], "duration"),
        ("kernel,time,duration", ["a,1600000000000,3.1", "b,1600000010500,3.2"], "duration"),
        ("kernel,seconds,wait_tx_s", ["a,1600000000,1", "b,1600000010,1"], "wait_tx_s"),
        ("kernel,time,latency", ["a,20210427175649,3.1", "b,20210427180310,3.2"], "latency"),
    ],
)
def test_moments_and_numbers_of_rows_are_no_measurements(
    tmp_path: Path, header: str, rows: list[str], value: str
) -> None:
    family = only_family(read_file(table(tmp_path, header, *rows)))
    assert (family.name, family.metric) == ("kernel", value)


def test_how_the_columns_were_taken_is_told_with_the_options(tmp_path: Path) -> None:
    rows = ["a,1,1600000000,10,5", "a,2,1600000010,11,5", "b,1,1600000020,12,6", "b,2,1600000030,13,6"]
    imported = read_file(table(tmp_path, "kernel,run,timestamp,Mean (ms),median", *rows))
    assert imported.understood == (
        "numbers Mean (ms) (ms, lower is better) (--value); groups kernel (--group-by); also read run; "
        "not read timestamp, median"
    )
