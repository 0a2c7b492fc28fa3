"""Tables with many columns of numbers: what was measured names no group, what was set is no result."""

from pathlib import Path

import pytest
from tests.support.program_texts import only_family, read_file, table, written

from ktrial.analysis.imported_results import AnalysisOptions, analyse
from ktrial.importers.errors import ImportFailed
from ktrial.importers.undecided import ColumnsUndecided
from ktrial.model.imported import Imported
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Direction


def labels(imported: Imported) -> dict[str, list[str]]:
    """Of each family the groups."""
    return {family.name: [group.label for group in family.groups] for family in imported.families}


def told(imported: Imported) -> str:
    """All warnings."""
    return " ".join(warning.text for warning in imported.warnings)


def test_n_counts_runs_beside_a_spread_and_is_a_size_without_one(tmp_path: Path) -> None:
    sizes = read_file(table(tmp_path, "mode,N,time_ms", "a,1000,1.5", "b,1000,2.5", "a,2000,3", "b,2000,5"))
    assert labels(sizes) == {"N 1000": ["a", "b"], "N 2000": ["a", "b"]}
    runs = only_family(read_file(table(tmp_path, "mode,N,mean,sd", "a,10,1.5,0.1", "b,12,2.5,0.1")))
    assert [group.summary.runs for group in runs.groups if group.summary] == [10, 12]


def test_clocks_and_numbers_of_processes_name_no_group(tmp_path: Path) -> None:
    rows = [f"{place},{900 + at},{at}417,{at}517,{at}.5" for at, place in enumerate("aabb")]
    imported = read_file(table(tmp_path, "place,pid,start_timestamp,end_timestamp,latency", *rows))
    assert labels(imported) == {"place": ["a", "b"]}
    assert "not read start_timestamp, end_timestamp, pid" in imported.understood


def test_a_group_that_lacks_a_number_is_a_group(tmp_path: Path) -> None:
    path = table(tmp_path, "test,one,two,three", "a,5,4,2", "b,7,nan,4", "c,8,9,6")
    imported = read_file(path, group_by=("header",), value="one,two,three")
    assert labels(imported) == {
        "a": ["one", "two", "three"],
        "b": ["one", "three"],
        "c": ["one", "two", "three"],
    }
    assert "1 rows have no number in value" in told(imported)


def test_columns_that_a_wide_table_has_besides_are_told(tmp_path: Path) -> None:
    rows = ["a,5,4,x", "b,7,6,y", "c,8,9,y"]
    imported = read_file(table(tmp_path, "case,one,two,colour", *rows), group_by=("header",), value="one,two")
    assert labels(imported).keys() == {"a", "b", "c"}
    assert "not read colour" in imported.understood


def test_names_of_metrics_tell_units_as_names_of_columns_do(tmp_path: Path) -> None:
    rows = [f"{name},{metric},5" for metric in ("wall_seconds", "rate_mib_s", "ease") for name in "ab"]
    families = read_file(table(tmp_path, "store,metric,mean", *rows)).families
    assert [(family.metric, family.unit, family.direction) for family in families] == [
        ("wall_seconds", "s", Direction.LOWER),
        ("rate_mib_s", "MiB/s", Direction.HIGHER),
        ("ease", "", None),
    ]


def test_words_that_capitals_part_say_which_way_is_better(tmp_path: Path) -> None:
    family = only_family(read_file(table(tmp_path, "sets,AverageTime", "a,1.5", "b,2.5")))
    assert (family.unit, family.direction) == ("", Direction.LOWER)


def test_other_sizes_are_no_repeats(tmp_path: Path) -> None:
    rows = [f"{name},{size},{size * at}" for at, name in enumerate("ab", 1) for size in (10, 100)]
    imported = read_file(table(tmp_path, "store,size,seconds", *rows))
    kinds = {finding.kind for finding in analyse((imported,), AnalysisOptions()).findings}
    assert WarningKind.REPEATS_DISAGREE not in kinds


def test_columns_called_as_percentiles_are_no_groups_and_counts_of_failures_are_told(tmp_path: Path) -> None:
    rows = ["GET,a,7,0,4.5,5,9", "GET,b,8,2,5.5,6,9", ",Aggregated,15,2,5,6,9"]
    header = "Type,Name,Request Count,Failure Count,Average Response Time,50%,99.9%"
    imported = read_file(table(tmp_path, header, *rows))
    assert labels(imported) == {"Name": ["a", "b"]}
    assert "Failure Count is 2 in line 3" in told(imported)
    assert "from line 4 on, Aggregated are computed of the rest" in imported.understood


def test_numbers_too_far_apart_count_no_runs(tmp_path: Path) -> None:
    rows = [f"{size},{name},{size / 8 + at}" for size in (1000, 10000, 50000) for at, name in enumerate("ab")]
    with pytest.raises(ColumnsUndecided) as refused:
        read_file(table(tmp_path, "iter,how,throughput", *rows))
    assert refused.value.options == ("--value", "throughput", "--group-by", "iter,how")
    runs = read_file(table(tmp_path, "iter,how,throughput", "1,a,5", "2,a,6", "1,b,7", "2,b,8", "3,b,9"))
    assert labels(runs) == {"how": ["a", "b"]}
    assert "a has no iter 3" in told(runs)


def test_a_rank_is_no_measurement_and_no_group(tmp_path: Path) -> None:
    words = [
        "| Rank | fast | slow |",
        "|---:|:--|:--|",
        "| 1 | one 900 | two 500 |",
        "| 2 | two 800 | one 400 |",
    ]
    with pytest.raises(ImportFailed, match="line 1: no column is one of numbers"):
        read_file(written(tmp_path, "\n".join(words) + "\n", "a.md"))
    imported = read_file(table(tmp_path, "rank,name,score", "1,a,9.5", "2,b,8.5", "3,c,7.5"))
    assert labels(imported) == {"name": ["a", "b", "c"]}


def test_a_time_written_in_another_way_is_refused_with_its_line(tmp_path: Path) -> None:
    rows = ["a,0.5,1.5s", "b,0.75,48.25s", "c,0.75,1m:51s"]
    with pytest.raises(ImportFailed, match=r"line 4: Time is '1m:51s', where most are numbers with a unit"):
        read_file(table(tmp_path, "tool,Error-rate,Time", *rows), group_by=("tool",), value="Time")


def test_cells_that_mean_those_above_are_refused_with_their_line(tmp_path: Path) -> None:
    with pytest.raises(
        ImportFailed, match=r"line 3: size is empty, and '10' in line 2: write it in each row"
    ):
        read_file(
            table(tmp_path, "size,tool,seconds", "10,a,1.5", ",b,2.5", "20,a,3.5", ",b,4.5"),
            group_by=("size", "tool"),
        )


def test_means_without_a_spread_that_a_group_has_twice_are_its_runs(tmp_path: Path) -> None:
    family = only_family(read_file(table(tmp_path, "game,avg", "a,102", "a,103", "b,88", "b,89")))
    assert {group.label: group.values for group in family.groups} == {"a": (102, 103), "b": (88, 89)}


def test_a_number_sign_behind_run_changes_nothing(tmp_path: Path) -> None:
    imported = read_file(table(tmp_path, "run #,march,time(sec)", "1,a,5", "2,a,6", "1,b,7", "2,b,8"))
    assert labels(imported) == {"march": ["a", "b"]}


def test_things_before_ms_or_ns_are_what_the_time_is_of(tmp_path: Path) -> None:
    path = table(tmp_path, "how,avg_miss_ns,avg_malloc_ms", "a,5.5,6.5", "b,7.5,8.5")
    families = read_file(path, value="avg_miss_ns,avg_malloc_ms").families
    assert [(family.unit, family.direction) for family in families] == [
        ("ns", Direction.LOWER),
        ("ms", Direction.LOWER),
    ]


def test_marks_of_code_within_a_cell_stay(tmp_path: Path) -> None:
    lines = ["| Server | Latency |", "|:--|--:|", "| `one` | 5.5 |", "| `two` (small) | **6.5** |"]
    imported = read_file(written(tmp_path, "\n".join(lines) + "\n", "a.md"))
    assert labels(imported) == {"Server": ["one", "`two` (small)"]}


def test_a_scale_of_numbers_is_no_unit(tmp_path: Path) -> None:
    imported = read_file(table(tmp_path, "profile,scale,latency_ms", "a,800,1.5", "b,800,2.5"))
    assert [(family.unit, family.direction) for family in imported.families] == [("ms", Direction.LOWER)]


def test_times_of_day_are_no_groups(tmp_path: Path) -> None:
    rows = [f"2015-01-0{at} 16:40:4{at}.5,{at}.5" for at in (3, 4, 5)]
    (family,) = read_file(table(tmp_path, "collected,value", *rows)).families
    assert [group.values for group in family.groups] == [(3.5, 4.5, 5.5)]


def test_runs_may_be_called_run_index(tmp_path: Path) -> None:
    rows = [f"{name},{run},{run}.5" for run in (1, 2, 3) for name in "ab"]
    (family,) = read_file(table(tmp_path, "Tool,RunIndex,MetricValue", *rows)).families
    assert {group.label: group.values for group in family.groups} == {
        "a": (1.5, 2.5, 3.5),
        "b": (1.5, 2.5, 3.5),
    }


def test_two_columns_that_number_runs_number_them_together(tmp_path: Path) -> None:
    rows = [f"{name},{run},{at},{run}.{at}" for name in "ab" for run in (1, 2) for at in (0, 1)]
    imported = read_file(table(tmp_path, "tool,RunIndex,Iteration,time", *rows))
    (family,) = imported.families
    assert {group.runs for group in family.groups} == {("1.0", "1.1", "2.0", "2.1")}
    assert "also read RunIndex, Iteration" in imported.understood
    assert told(imported) == ""
    missing = read_file(table(tmp_path, "tool,RunIndex,Iteration,time", *rows[1:]))
    assert "a has no RunIndex.Iteration 1.0" in told(missing)
    seeds = read_file(
        table(tmp_path, "tool,run,seed,time", "a,1,7,1.5", "a,2,9,1.6", "b,1,7,2.5", "b,2,9,2.6")
    )
    assert {group.runs for group in only_family(seeds).groups} == {("1", "2")}


def test_the_order_of_runs_names_no_group(tmp_path: Path) -> None:
    imported = read_file(table(tmp_path, "Order,kernel,seconds", "3,a,1.5", "1,b,2.5", "2,a,1.6", "4,b,2.4"))
    assert labels(imported) == {"kernel": ["a", "b"]}
    assert "not read Order" in imported.understood


def test_the_rows_names_of_a_wide_table_are_no_group(tmp_path: Path) -> None:
    path = table(tmp_path, ",chi,echo", "100,1663.5,1662.5", "1000,1500.5,1600.5")
    imported = read_file(path, group_by=("header",), value="chi,echo")
    assert labels(imported) == {"100": ["chi", "echo"], "1000": ["chi", "echo"]}


def test_fewer_watts_are_better(tmp_path: Path) -> None:
    (family,) = read_file(table(tmp_path, "stage,RAM (W/s)", "a,2878.5", "b,2900.5")).families
    assert (family.unit, family.direction) == ("W/s", Direction.LOWER)
    (family,) = read_file(table(tmp_path, "disk,value (w/s)", "a,2878.5", "b,2900.5")).families
    assert family.direction is Direction.HIGHER


def test_raw_samples_of_criterion_0_2_are_read(tmp_path: Path) -> None:
    rows = [
        "group,function,value,sample_time_nanos,iteration_count",
        "Sum,Plain,20,1000,10",
        "Sum,Plain,20,4200,20",
    ]
    imported = read_file(table(tmp_path, *rows))
    assert imported.format == "criterion"
    assert [group.values for group in only_family(imported).groups] == [(100, 210)]


def test_a_first_row_whose_words_are_cells_below_is_no_header(tmp_path: Path) -> None:
    rows = ["resize,fast,28783,28928", "resize,slow,29937,30010", "turn,fast,69140,69229"]
    with pytest.raises(ImportFailed, match=r"line 1: its header is resize, .* and resize is a cell, too"):
        read_file(table(tmp_path, *rows))


def test_repetitions_beside_a_spread_are_the_number_of_runs(tmp_path: Path) -> None:
    rows = ["a,1.5,0.1,10", "b,2.5,0.1,30"]
    family = only_family(read_file(table(tmp_path, "how,mean,std,repetitions", *rows)))
    assert [(group.label, group.summary.runs) for group in family.groups if group.summary] == [
        ("a", 10),
        ("b", 30),
    ]
