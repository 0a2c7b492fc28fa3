"""Tables with many columns of numbers: what was measured names no group, what was set is no result."""

from pathlib import Path

import pytest
from tests.support.program_texts import only_family, read_file, table, written

from ktrial.analysis.imported_results import AnalysisOptions, analyse
from ktrial.importers.errors import ImportFailed
from ktrial.model.imported import Imported
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Direction


def labels(imported: Imported) -> dict[str, list[str]]:
    """Of each family the groups."""
    return {family.name: [group.label for group in family.groups] for family in imported.families}


def told(imported: Imported) -> str:
    """All warnings."""
    return " ".join(warning.text for warning in imported.warnings)


@pytest.mark.parametrize(
    ("header", "rows", "groups", "left_out"),
    [
        (
            "width,height,whole_s,time_per_step_ms",
            ["64,64,1.25,0.5", "128,128,5.5,2.2", "256,256,21.75,8.7", "512,512,88.5,35.4"],
            ["64 · 64", "128 · 128", "256 · 256", "512 · 512"],
            "whole_s",
        ),
        (
            "window,points,predicted,throughput",
            ["0,900,2.5,3", "1,901,2.25,4", "2,902,2.5,5", "3,903,2.125,6"],
            ["0 · 900", "1 · 901", "2 · 902", "3 · 903"],
            "predicted",
        ),
        (
            "Users,TotalRequests,Successful,P50LatencyMs,AvgLatencyMs,LastedSec",
            ["10,400,400,4,4.5,30.5", "20,790,789,5,5.01,30.7", "40,1500,1500,6,5.75,31.2"],
            ["10", "20", "40"],
            "TotalRequests, Successful, P50LatencyMs, LastedSec",
        ),
        (
            "config,frequency,joules_ext,time,time_stdev",
            ["a,200,8.5,10.5,0.01", "b,200,8.5,10.75,0.0", "a,300,8.75,10.25,0.0", "b,300,9.5,10.5,0.01"],
            ["a", "b", "a", "b"],
            "joules_ext, time_stdev",
        ),
    ],
)
def test_fractions_beside_columns_that_tell_each_row_apart_were_measured(
    tmp_path: Path, header: str, rows: list[str], groups: list[str], left_out: str
) -> None:
    imported = read_file(table(tmp_path, header, *rows))
    assert [label for of_family in labels(imported).values() for label in of_family] == groups
    assert f"{left_out}: taken for measurements, and left out" in told(imported)


def test_fractions_that_tell_rows_apart_are_levels(tmp_path: Path) -> None:
    rows = [f"{threads},{skew},{threads * skew}" for threads in (1, 2) for skew in (0.5, 0.9)]
    imported = read_file(table(tmp_path, "threads,skew,throughput", *rows))
    assert labels(imported) == {"threads · skew": ["1 · 0.5", "1 · 0.9", "2 · 0.5", "2 · 0.9"]}


def test_means_that_only_some_rows_have_split_no_table(tmp_path: Path) -> None:
    rows = ["9000,250.5,a,X,", "8000,,a,Y,530.5", "4000,310.5,b,X,", "3000,,b,Y,610.25"]
    imported = read_file(table(tmp_path, "throughput,read_avg,store,workload,insert_95th", *rows))
    assert labels(imported) == {"X": ["a", "b"], "Y": ["a", "b"]}


def test_columns_p1_and_p2_with_a_few_levels_are_no_percentiles(tmp_path: Path) -> None:
    rows = [f"{first},{second},{first * 10 + second}" for first in (1, 2) for second in (1, 2)]
    imported = read_file(table(tmp_path, "P1,P2,Time", *rows))
    assert labels(imported) == {"P1 · P2": ["1 · 1", "1 · 2", "2 · 1", "2 · 2"]}
    many = [f"{first},{second},5" for first in range(15) for second in range(15)]
    with pytest.raises(ImportFailed, match=r"line 202: there are more than 200 groups .* by P1, P2"):
        read_file(table(tmp_path, "P1,P2,Time", *many))


def test_n_counts_runs_beside_a_spread_and_is_a_size_without_one(tmp_path: Path) -> None:
    sizes = read_file(table(tmp_path, "mode,N,mean_ms", "a,1000,1.5", "b,1000,2.5", "a,2000,3", "b,2000,5"))
    assert labels(sizes) == {"N 1000": ["a", "b"], "N 2000": ["a", "b"]}
    runs = only_family(read_file(table(tmp_path, "mode,N,mean,sd", "a,10,1.5,0.1", "b,12,2.5,0.1")))
    assert [group.summary.runs for group in runs.groups if group.summary] == [10, 12]


@pytest.mark.parametrize(
    ("seconds", "metric"), [(("5.02", "5.06", "9.5"), "Avg Latency(ms)"), (("5", "50", "500"), "Duration(s)")]
)
def test_a_duration_that_was_set_is_no_result(tmp_path: Path, seconds: tuple[str, ...], metric: str) -> None:
    rates = ("22.5", "2250.5", "104000.5")
    rows = [f"{name},{time},{rate},4.5" for name, time, rate in zip("abc", seconds, rates, strict=True)]
    imported = read_file(table(tmp_path, "server,Duration(s),QPS,Avg Latency(ms)", *rows))
    assert only_family(imported).metric == metric


def test_clocks_and_numbers_of_processes_name_no_group(tmp_path: Path) -> None:
    rows = [f"{place},{900 + at},{at}417,{at}517,{at}.5" for at, place in enumerate("aabb")]
    imported = read_file(table(tmp_path, "place,pid,start_timestamp,end_timestamp,latency", *rows))
    assert labels(imported) == {"place": ["a", "b"]}
    assert "not read start_timestamp, end_timestamp, pid" in imported.understood


def test_a_group_that_lacks_a_number_is_a_group(tmp_path: Path) -> None:
    imported = read_file(table(tmp_path, "test,one,two,three", "a,5,4,2", "b,7,nan,4", "c,8,9,6"))
    assert labels(imported) == {
        "a": ["one", "two", "three"],
        "b": ["one", "three"],
        "c": ["one", "two", "three"],
    }
    assert "1 rows have no number in value" in told(imported)


def test_columns_that_a_wide_table_has_besides_are_told(tmp_path: Path) -> None:
    rows = ["a,5,4,x", "b,7,6,y", "c,8,9,y"]
    imported = read_file(table(tmp_path, "case,one,two,colour", *rows))
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
    imported = read_file(table(tmp_path, "iter,how,throughput", *rows))
    assert labels(imported) == {f"iter {size}": ["a", "b"] for size in (1000, 10000, 50000)}
    runs = read_file(table(tmp_path, "iter,how,throughput", "1,a,5", "3,a,6", "1,b,7", "2,b,8", "3,b,9"))
    assert labels(runs) == {"how": ["a", "b"]}
    assert "a has no iter 2" in told(runs)


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
        read_file(table(tmp_path, "tool,Error-rate,Time", *rows))


def test_cells_that_mean_those_above_are_refused_with_their_line(tmp_path: Path) -> None:
    with pytest.raises(
        ImportFailed, match=r"line 3: size is empty, and '10' in line 2: write it in each row"
    ):
        read_file(table(tmp_path, "size,tool,seconds", "10,a,1.5", ",b,2.5", "20,a,3.5", ",b,4.5"))


def test_numbers_called_after_the_ones_that_are_read_were_measured_and_limits_were_set(
    tmp_path: Path,
) -> None:
    rows = [f"{at},{at}0,{at + 4},{at + 1}.5" for at in range(1, 4)]
    imported = read_file(table(tmp_path, "angle,runtime_limit,runtime_plain,runtime", *rows))
    assert labels(imported) == {"angle · runtime_limit": ["1 · 10", "2 · 20", "3 · 30"]}
    assert "the column runtime_plain: taken for measurements" in told(imported)


def test_means_without_a_spread_that_a_group_has_twice_are_its_runs(tmp_path: Path) -> None:
    family = only_family(read_file(table(tmp_path, "game,avg", "a,102", "a,103", "b,88", "b,89")))
    assert {group.label: group.values for group in family.groups} == {"a": (102, 103), "b": (88, 89)}


def test_whole_numbers_of_each_row_in_a_table_of_sizes_were_measured(tmp_path: Path) -> None:
    rows = [
        f"{name},{size},{size}{at}77,{at}.5,{size}{at}9" for size in (10, 100) for at, name in enumerate("ab")
    ]
    imported = read_file(table(tmp_path, "how,entries,insert_ns,avg_lookup_ns,bytes_used", *rows))
    assert labels(imported) == {"entries 10": ["a", "b"], "entries 100": ["a", "b"]}
    assert "the columns insert_ns, bytes_used: taken for measurements" in told(imported)


def test_a_number_sign_behind_run_changes_nothing(tmp_path: Path) -> None:
    imported = read_file(table(tmp_path, "run #,march,time(sec)", "1,a,5", "2,a,6", "1,b,7", "2,b,8"))
    assert labels(imported) == {"march": ["a", "b"]}


def test_things_before_ms_or_ns_are_what_the_time_is_of(tmp_path: Path) -> None:
    families = read_file(table(tmp_path, "how,avg_miss_ns,avg_malloc_ms", "a,5.5,6.5", "b,7.5,8.5")).families
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


def test_times_of_day_and_a_clock_behind_one_name_are_no_groups_and_no_numbers(tmp_path: Path) -> None:
    rows = [f"2015-01-0{at} 16:40:4{at}.5,{at}.5" for at in (3, 4, 5)]
    (family,) = read_file(table(tmp_path, "collected,value", *rows)).families
    assert [group.values for group in family.groups] == [(3.5, 4.5, 5.5)]
    rows = [f"q3,{at}.001,3{at}8" for at in range(1, 6)]
    imported = read_file(table(tmp_path, "id,time (s),sent (msg/s)", *rows))
    assert [family.metric for family in imported.families] == ["sent (msg/s)"]
    assert "not read time (s)" in imported.understood


def test_a_duration_that_was_measured_is_no_size(tmp_path: Path) -> None:
    rows = ["a,10.5,1.5,0.1", "b,10.5,2.5,0.1", "a,11.25,1.6,0.1", "b,11.25,2.6,0.1"]
    imported = read_file(table(tmp_path, "request,duration,avg,stddev", *rows))
    assert "the column duration: taken for measurements" in told(imported)


def test_a_duration_of_all_rows_alike_is_no_result(tmp_path: Path) -> None:
    imported = read_file(table(tmp_path, "profile,duration_s,latency_ms_avg", "a,60,0.5", "b,60,0.25"))
    assert [family.metric for family in imported.families] == ["latency_ms_avg"]


def test_an_index_without_decimals_is_no_measurement(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match=r"no column is one of numbers|no name says"):
        read_file(table(tmp_path, "index,system,repetition_index", "15671,a,0", "37608,b,0"))


def test_runs_may_be_called_run_index(tmp_path: Path) -> None:
    rows = [f"{name},{run},{run}.5" for run in (1, 2, 3) for name in "ab"]
    (family,) = read_file(table(tmp_path, "Tool,RunIndex,MetricValue", *rows)).families
    assert {group.label: group.values for group in family.groups} == {
        "a": (1.5, 2.5, 3.5),
        "b": (1.5, 2.5, 3.5),
    }


def test_the_rows_names_of_a_wide_table_are_no_group(tmp_path: Path) -> None:
    imported = read_file(table(tmp_path, ",chi,echo", "100,1663.5,1662.5", "1000,1500.5,1600.5"))
    assert labels(imported) == {"100": ["chi", "echo"], "1000": ["chi", "echo"]}


def test_cells_under_a_unit_that_are_no_numbers_name_no_group(tmp_path: Path) -> None:
    rows = ["a,2837KiB/s(2905kB/s),12.5", "b,2900KiB/s(2969kB/s),13.5"]
    imported = read_file(table(tmp_path, "Node,Disk (MiB/s),Network (Mbit/s)", *rows))
    assert labels(imported) == {"Node": ["a", "b"]}
    assert "not read Disk (MiB/s)" in imported.understood


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


def test_a_whole_score_beside_a_time_is_what_a_program_computed(tmp_path: Path) -> None:
    rows = [f"{name},580,{run}.5,{run}" for run in (1, 2, 3) for name in "ab"]
    family = only_family(read_file(table(tmp_path, "input,score,time_sec,run", *rows)))
    assert (family.metric, family.unit) == ("time_sec", "s")
    scores = only_family(read_file(table(tmp_path, "host,score", "a,580", "b,590")))
    assert scores.direction is Direction.HIGHER
