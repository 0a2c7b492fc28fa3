"""Tables that no name explains at once: which column has the numbers, what splits them, odd headers."""

from pathlib import Path

import pytest
from tests.support.program_texts import read_file, table, written

from ktrial.importers import Choices, read_all
from ktrial.importers.errors import ImportFailed
from ktrial.model.imported import Imported

_METRIC_OF = dict[str, dict[str, tuple[float, ...]]]


def numbers(imported: Imported) -> _METRIC_OF:
    """Of each metric the values of each group."""
    return {
        family.metric: {group.label: group.values for group in family.groups} for family in imported.families
    }


@pytest.mark.parametrize(
    ("header", "metrics"),
    [
        ("team.name,processing.time", {"processing.time"}),
        ("VM,Normalized.Geometric.Mean", {"Normalized.Geometric.Mean"}),
        ("suite,rss_bytes", {"rss_bytes"}),
        ("tool,MetricValue", {"MetricValue"}),
    ],
)
def test_the_numbers_are_in_the_only_column_whose_words_say_so(
    tmp_path: Path, header: str, metrics: set[str]
) -> None:
    width = header.count(",")
    rows = [
        f"{name}{''.join(f',{at}.{place + 1}' for place in range(width))}" for at, name in enumerate("ab", 1)
    ]
    imported = read_file(table(tmp_path, header, *rows))
    assert numbers(imported).keys() == metrics
    assert all(metric in imported.understood for metric in metrics)


def test_algorithms_are_compared_at_each_size_and_sizes_where_the_user_says_so(tmp_path: Path) -> None:
    rows = [
        f"{name},{size},{size * time}" for name, time in (("quick", 2), ("heap", 3)) for size in (10, 100)
    ]
    path = table(tmp_path, "algorithm,size,time", *rows)
    imported = read_file(path)
    assert {family.name: [group.label for group in family.groups] for family in imported.families} == {
        "size 10": ["quick", "heap"],
        "size 100": ["quick", "heap"],
    }
    assert "split by size (--group-by)" in imported.understood
    (family,) = read_file(path, group_by=("algorithm", "size")).families
    assert [group.label for group in family.groups] == [
        "quick · 10",
        "quick · 100",
        "heap · 10",
        "heap · 100",
    ]


@pytest.mark.parametrize(
    ("lines", "groups"),
    [
        ((",kernel,seconds", "0,a,1.5", "1,b,2.5"), {"a": (1.5,), "b": (2.5,)}),
        ((",seconds", "a,1.5", "b,2.5"), {"a": (1.5,), "b": (2.5,)}),
        (("seconds,run", "a,1.5,1", "b,2.5,1"), {"a": (1.5,), "b": (2.5,)}),
        (("kernel,seconds,", "a,1.5,", "b,2.5,"), {"a": (1.5,), "b": (2.5,)}),
        (("kernel,seconds", "a,1.5,", "b,2.5,"), {"a": (1.5,), "b": (2.5,)}),
        (
            ("kernel,seconds,kernel,seconds", "a,1,c,3", "b,2,d,4"),
            {"a": (1,), "b": (2,), "c": (3,), "d": (4,)},
        ),
        (("kernel,seconds", '"a","[1.5, 2, 2.5]"', '"b","[3; 4]"'), {"a": (1.5, 2, 2.5), "b": (3, 4)}),
    ],
)
def test_columns_without_a_name_tables_side_by_side_and_lists_of_runs_are_read(
    tmp_path: Path, lines: tuple[str, ...], groups: dict[str, tuple[float, ...]]
) -> None:
    (family,) = read_file(table(tmp_path, *lines)).families
    assert {group.label: group.values for group in family.groups} == groups


def test_tables_side_by_side_of_other_columns_are_none(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="line 1: column 3 has no name"):
        read_file(table(tmp_path, "kernel,seconds,,", "a,1,3,c", "b,2,4,d"))


def test_requests_of_jmeter_are_compared_by_label_between_files(tmp_path: Path) -> None:
    header = "timeStamp,elapsed,label,responseCode,success,bytes,URL"
    rows = ["1653055803959,22,GET,200,true,10,/1", "1653055803960,24,GET,500,false,10,/2"]
    old, new = (written(tmp_path, "\n".join((header, *rows)), f"{name}.csv") for name in ("old", "new"))
    (imported,) = read_all([("old", old), ("new", new)], Choices())
    (family,) = imported.families
    assert (family.metric, family.unit) == ("GET", "ms")
    assert {group.label: (group.values, group.failed) for group in family.groups} == {
        "old": ((22,), 1),
        "new": ((22,), 1),
    }


def test_means_of_one_group_on_many_days_are_its_runs(tmp_path: Path) -> None:
    days = [f"{name},2022-01-0{day},{day}.5,0.1" for day in range(1, 5) for name in "ab"]
    (family,) = read_file(table(tmp_path, "request,date,avg,stddev", *days)).families
    assert {group.label: group.values for group in family.groups} == {
        "a": (1.5, 2.5, 3.5, 4.5),
        "b": (1.5, 2.5, 3.5, 4.5),
    }


def test_units_in_several_columns_of_a_table_of_benchmarkdotnet_are_told_and_converted(
    tmp_path: Path,
) -> None:
    rows = ["| A | 1,234.5 ns | 12.5 ns | 24 B |", "| B | 1.5 us | 100.0 ns | 1 KB |", "| C | NA | NA | - |"]
    table_of_means = "\n".join(["| Method | Mean | StdDev | Allocated |", "|---|---:|---:|---:|", *rows, ""])
    imported = read_file(written(tmp_path, table_of_means, "a.md"))
    (family,) = imported.families
    sums = {group.label: group.summary for group in family.groups}
    assert {label: (s.mean.value, s.sd.value) for label, s in sums.items() if s and s.sd} == {
        "A": (1234.5, 12.5),
        "B": (1500, pytest.approx(100)),
    }
    assert "StdDev in the unit of Mean" in imported.understood
    assert any("1 rows have no number in Mean" in warning.text for warning in imported.warnings)
