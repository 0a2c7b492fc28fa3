"""Tables of numbers, as CSV: columns, groups, blocks, and what is wrong with a table."""

import random
from pathlib import Path

import pytest
from tests.support.places import PAPERS
from tests.support.program_texts import only_family, read_file, table, written

from ktrial.analysis.imported_results import AnalysisOptions as HowToAnalyse
from ktrial.analysis.imported_results import analyse
from ktrial.importers.errors import ImportFailed
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Direction

RESULTS = [("a", 1, 5744.4), ("a", 2, 5750.4), ("b", 1, 5844.4), ("b", 2, 5850.9)]
HYPERFINE = (
    "command,mean,stddev,median,user,system,min,max",
    "sleep 0.002,0.002999480875,6.9224e-05,0.0029669475,0.000716875,0.000122,0.00295149,0.003138126",
    "sleep 0.003,0.005945635125,0.0020727454000162224,0.0057984895,0.000881875,0,0.003945124,0.008060111",
)
"""What hyperfine 1.15.0 exported."""
PYTEST_BENCHMARK = (
    "name,param:n,min,max,mean,stddev,median,iqr,outliers,ops,rounds,iterations",
    "t.py::sum[10],10,1.17e-07,0.00058,4.41e-07,8.89e-06,1.18e-07,1.97e-09,427;13509,2265976.28,197317,36",
    "t.py::sum[99],99,9.97e-06,0.02025,4.30e-05,0.000574,1.02e-05,3.90e-07,309;15542,23247.54,83697,1",
)
"""What pytest-benchmark 5.3.1 wrote, with fewer digits."""


def test_hyperfine_s_table_is_in_seconds_and_lacks_the_number_of_runs(tmp_path: Path) -> None:
    imported = read_file(table(tmp_path, *HYPERFINE))
    family = only_family(imported)
    assert (family.unit, family.direction) == ("s", Direction.LOWER)
    told = [one.text for one in analyse((imported,), HowToAnalyse()).findings]
    assert any(
        "2 of 2 groups have a mean and a standard deviation, and nothing says of how" in one for one in told
    )
    assert not any("no spread" in one for one in told)


def test_pytest_benchmark_s_table_says_how_many_rounds_there_were(tmp_path: Path) -> None:
    family = only_family(read_file(table(tmp_path, *PYTEST_BENCHMARK)))
    assert (family.unit, family.direction) == ("s", Direction.LOWER)
    assert [group.summary.runs for group in family.groups if group.summary] == [197317, 83697]
    assert [group.label for group in family.groups] == ["t.py::sum[10]", "t.py::sum[99]"]


def test_results_beside_their_indices_are_compared(tmp_path: Path) -> None:
    rows = [
        f"{group},{run},Process Creation,126.0,{result},{result / 12.6:.1f}" for group, run, result in RESULTS
    ]
    imported = read_file(table(tmp_path, "group,run,test,baseline,result,index", *rows))
    family = only_family(imported)
    assert {group.label: group.values for group in family.groups} == {
        "a": (5744.4, 5750.4),
        "b": (5844.4, 5850.9),
    }
    assert len(imported.index_rows) == 4
    assert not imported.warnings


def test_indices_without_the_results_behind_them_are_told_as_rounded() -> None:
    (told,) = read_file(PAPERS / "slab_muqss_unixbench_index.csv").warnings
    assert told.kind is WarningKind.COARSE_VALUES
    assert "only UnixBench's indices are there, rounded to 1\N{NO-BREAK SPACE}decimal" in told.text
    assert "up to 0.032\N{NO-BREAK SPACE}%" in told.text


def test_a_table_of_runs(tmp_path: Path) -> None:
    path = table(tmp_path, "kernel,run,time_ms", "6.1,1,10.5", "6.12,1,11.5", "6.1,2,10.25", "6.12,2,n/a")
    imported = read_file(path)
    family = only_family(imported)
    assert (family.unit, family.direction) == ("ms", Direction.LOWER)
    assert {group.label: group.values for group in family.groups} == {"6.1": (10.5, 10.25), "6.12": (11.5,)}
    assert "1 rows have no number in time_ms" in imported.warnings[0].text


def test_a_table_of_summaries_knows_how_its_numbers_were_rounded() -> None:
    family = read_file(PAPERS / "knobs_aio_stress.csv").families[0]
    summary = family.groups[2].summary
    assert summary is not None
    assert summary.standard_error is not None
    assert family.groups[2].is_default
    assert (summary.standard_error.value, summary.standard_error.half_unit) == (1.9, 0.005)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters(tmp_path: Path, delimiter: str) -> None:
    path = written(tmp_path, "level;value\na;1\nb;2\n".replace(";", delimiter))
    assert [group.values for group in only_family(read_file(path)).groups] == [(1.0,), (2.0,)]


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_bytes(b"\xef\xbb\xbflevel,value\r\na,1\r\nb,2\r\n")
    assert len(only_family(read_file(path)).groups) == 2


def test_the_user_may_say_which_columns_are_what(tmp_path: Path) -> None:
    path = table(tmp_path, "kernel,disk,x,y", "a,sda,1,5", "a,sdb,2,6", "b,sda,3,7", "b,sdb,4,8")
    family = only_family(read_file(path, group_by=("kernel",), value="y"))
    assert {group.label: group.values for group in family.groups} == {"a": (5.0, 6.0), "b": (7.0, 8.0)}
    with pytest.raises(ImportFailed, match=r"no column kernle \(did you mean kernel\?\)") as error:
        read_file(path, group_by=("kernle",))
    assert "kernel, disk, x, y" in str(error.value)


def test_a_table_with_a_group_in_every_row_is_refused(tmp_path: Path) -> None:
    runs = table(tmp_path, "size,value", *(f"{at},{at}.5" for at in range(1000)))
    with pytest.raises(ImportFailed, match="more than 200 groups in one comparison"):
        read_file(runs)
    means = table(tmp_path, "size,mean,se", *(f"{at},{at}.5,1" for at in range(1000)))
    with pytest.raises(ImportFailed):
        read_file(means)


@pytest.mark.nightly
def test_a_large_table_is_read_and_audited_in_seconds(tmp_path: Path) -> None:
    rng = random.Random(1)
    rows = (f"{at % 5},{rng.gauss(100, 1):.6f}" for at in range(20_000))
    analysis = analyse((read_file(table(tmp_path, "level,value", *rows)),), HowToAnalyse())
    assert analysis.families[0].groups[0].runs == 4_000


def test_one_level_of_two_knobs_is_not_one_treatment_and_of_two_sessions_it_is(tmp_path: Path) -> None:
    def kinds(split: str) -> set[WarningKind]:
        rows = [
            f"{name},{level},{100 * at + each}"
            for level in "xy"
            for at, name in enumerate("pq", start=1)
            for each in (1, 2, 4, 5)
        ]
        imported = read_file(table(tmp_path, f"{split},level,value", *rows))
        return {finding.kind for finding in analyse((imported,), HowToAnalyse()).findings}

    assert WarningKind.REPEATS_DISAGREE not in kinds("knob")
    assert WarningKind.REPEATS_DISAGREE in kinds("session")


def test_a_column_block_makes_blocks(tmp_path: Path) -> None:
    family = only_family(
        read_file(table(tmp_path, "block,arm,value", "1,a,1", "1,b,2", "2,b,2.1", "2,a,1.1"))
    )
    assert family.blocked
    assert family.groups[1].runs == ("1", "2")


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (("level,value", "a,1,2"), "line 2: 3 cells, where the header has 2"),
        (("level,value", "a,1", "b,fast"), "line 3: value is 'fast', not a number"),
        (("level,value,value", "a,1,2"), "line 1: 2 of 3 columns may mean several things"),
        (("level,,value", "a,1,2"), "column 2 has no name"),
        (("level,mean,se", "a,1,-2"), "line 2: se is -2: below zero"),
        (("level,mean,se,n", "a,1,2,2.5"), "n is '2.5', no run count"),
        (("level,value,is_default", "a,1,maybe"), "is_default is 'maybe'; 1 or 0 is expected"),
        (("block,arm,value", "1,a,1", "1,a,2"), "line 3: block 1 has a twice"),
        (("level,value", '"a,1'), "line 2: unexpected end of data"),
        (("test,baseline,result,index", "x,0,1,2"), "baseline is '0', not a number above zero"),
        (("level,value", "b,1", "a,1e999"), "not a number"),
        (("level,value", "b,1", "a,0x10"), "not a number"),
        (("level,value", "b,1", "a," + "9" * 50), "not a number"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_with_its_line(
    tmp_path: Path, lines: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(ImportFailed) as error:
        read_file(table(tmp_path, *lines))
    assert problem in str(error.value)
    assert error.value.advice


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (("level,value",), "nothing below it"),
        ((",", ",,"), "every cell is empty"),
        (("level,value", "a,n/a"), "no row has a number in value"),
        (("alpha,beta", "a,x"), "line 1: no column is one of numbers"),
        (("alpha,beta", "a,1"), "line 1: 1 of 2 columns may mean several things, so nothing is read: beta"),
    ],
)
def test_a_table_without_measurements_says_what_is_missing(
    tmp_path: Path, lines: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(ImportFailed, match=problem):
        read_file(table(tmp_path, *lines))


def test_times_since_1970_may_begin_again_with_each_group(tmp_path: Path) -> None:
    """They say when, also where each kernel's rows begin at the same moment."""
    rows = [f"{kernel},{1700000000 + 60 * at},{12.5 + at / 10}" for kernel in "ab" for at in range(6)]
    imported = read_file(table(tmp_path, "kernel,time,latency_ms", *rows))
    assert "not read time" in imported.understood
    assert {group.label: len(group.values) for group in only_family(imported).groups} == {"a": 6, "b": 6}


def test_durations_of_two_seconds_in_nanoseconds_are_no_moments(tmp_path: Path) -> None:
    rows = [f"{kernel},{1_900_000_000 + 7_000_000 * (3 * at % 7)}" for kernel in "ab" for at in range(7)]
    imported = read_file(table(tmp_path, "kernel,time", *rows))
    assert {group.label: len(group.values) for group in only_family(imported).groups} == {"a": 7, "b": 7}


def test_a_number_of_results_numbers_runs(tmp_path: Path) -> None:
    rows = [f"{kernel},{at},{10 + at / 7:.3f}" for kernel in "ab" for at in range(5)]
    imported = read_file(table(tmp_path, "kernel,result_id,seconds", *rows))
    assert {group.label: len(group.values) for group in only_family(imported).groups} == {"a": 5, "b": 5}


def test_a_column_of_numbers_without_any_is_named(tmp_path: Path) -> None:
    """BenchmarkDotNet writes `NA` where every benchmark failed: no other column stands in for it."""
    with pytest.raises(ImportFailed, match="lines 1 to 3: no row has a number in Mean"):
        read_file(table(tmp_path, "Method,Affinity,Mean,Error", "a,11111111,NA,NA", "b,11111111,NA,NA"))
