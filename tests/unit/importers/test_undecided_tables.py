"""A table is read unasked only where its names leave no doubt; else it says what to add, and that is read."""

import shlex
from pathlib import Path

import pytest
from tests.support.program_texts import read_file, table, written

from ktrial.importers import Choices, read_all
from ktrial.importers.errors import ImportFailed
from ktrial.importers.undecided import ColumnsUndecided
from ktrial.model.imported import Imported

Labels = dict[str, list[str]]


def labels(imported: Imported) -> Labels:
    """Of each family the groups."""
    return {family.name: [group.label for group in family.groups] for family in imported.families}


def rows_of(*columns: str) -> list[str]:
    """Rows out of columns, whose cells spaces part."""
    return [",".join(cells) for cells in zip(*(column.split() for column in columns), strict=True)]


TIDY: list[tuple[str, list[str], str, Labels]] = [
    # The header, columns of cells, what is measured, the groups of each family
    (
        "kernel,run,latency_ms",
        ["a a b b", "1 2 1 2", "1.5 1.6 2.5 2.6"],
        "latency_ms",
        {"kernel": ["a", "b"]},
    ),
    ("kernel,seconds", ["6.1 6.12", "1.5 2.5"], "seconds", {"kernel": ["6.1", "6.12"]}),
    ("threads,ops_per_sec", ["1 2 4", "10 19 33"], "ops_per_sec", {"threads": ["1", "2", "4"]}),
    (
        "benchmark,kernel,value,unit",
        ["x x y y", "a b a b", "1 2 3 4", "ms ms MB/s MB/s"],
        "value",
        {"x": ["a", "b"], "y": ["a", "b"]},
    ),
    (
        "metric,benchmark,kernel,value",
        ["t t", "x x", "a b", "1 2"],
        "value",
        {"t · x": ["a", "b"]},
    ),
    (
        "algorithm,size,time_ms",
        ["q q h h", "10 100 10 100", "1 2 3 4"],
        "time_ms",
        {"size 10": ["q", "h"], "size 100": ["q", "h"]},
    ),
    (
        "name,mean_us,stddev_us,p99_us,n",
        ["a b", "1 2", "0.1 0.2", "3 4", "9 9"],
        "mean_us",
        {"name": ["a", "b"]},
    ),
    ("tool,avg,std,min,max,95%", ["a b", "1 2", "0.1 0.1", "1 1", "2 3", "2 3"], "avg", {"tool": ["a", "b"]}),
    ("timestamp,latency_ms", ["2024-01-01 2024-01-02", "1.5 1.6"], "latency_ms", {"latency_ms": ["results"]}),
    (
        "kernel,threads,governor,seconds",
        ["a b", "4 4", "performance performance", "1.5 2.5"],
        "seconds",
        {"kernel": ["a", "b"]},
    ),
    (
        "kernel,status,comment,errors,id,seconds",
        ["a b", "ok ok", "x y", "0 0", "17 18", "1.5 2.5"],
        "seconds",
        {"kernel": ["a", "b"]},
    ),
]


@pytest.mark.parametrize(("header", "columns", "value", "groups"), TIDY, ids=[row[0] for row in TIDY])
def test_a_tidy_table_is_read_unasked(
    tmp_path: Path, header: str, columns: list[str], value: str, groups: Labels
) -> None:
    imported = read_file(table(tmp_path, header, *rows_of(*columns)))
    assert imported.understood.startswith(f"numbers {value}")
    assert labels(imported) == groups


DOUBTFUL: list[tuple[str, list[str], list[str], str]] = [
    # The header, columns of cells, what is left open, the options that are suggested
    (
        "kernel,latency_ms,p99_ms",
        ["a b", "1.5 2.5", "3.5 4.5"],
        ["latency_ms", "p99_ms"],
        "--value latency_ms --group-by kernel",
    ),
    (
        "kernel,compiler,seconds",
        ["a a b b", "gcc clang gcc clang", "1 2 3 4"],
        ["kernel", "compiler"],
        "--value seconds --group-by kernel,compiler",
    ),
    (
        "kernel,depth,seconds",
        ["a a b b", "3 4 3 4", "1 2 3 4"],
        ["depth"],
        "--value seconds --group-by kernel,depth",
    ),
    ("tool,accuracy", ["a b", "0.5 0.6"], ["accuracy"], "--value accuracy --group-by tool"),
    (
        "algorithm,size,time_ms",
        ["q q h", "10 100 10", "1 2 3"],
        ["size"],
        "--value time_ms --group-by algorithm,size",
    ),
    (
        "size,time_ms,memory_mb",
        ["1 2", "1.5 2.5", "3.5 4.5"],
        ["time_ms", "memory_mb"],
        "--value time_ms --group-by size",
    ),
    ("run,time_ms", ["10 1000", "1.5 2.5"], ["run"], "--value time_ms --group-by run"),
    ("iteration,kernel,ms", ["1 2 4 8", "a b a b", "1 2 3 4"], ["iteration"], "--value ms --group-by kernel"),
    (
        "case,old_x,new_x",
        ["p q", "1.5 2.5", "1.6 2.6"],
        ["old_x", "new_x"],
        "--value old_x,new_x --group-by header",
    ),
    ("block,rate", ["64 128", "1.5 2.5"], ["block"], "--value rate --group-by block"),
    ("test,kernel,seconds", ["1 2", "a b", "1.5 2.5"], ["test"], "--value seconds --group-by kernel"),
    (
        "disk,written,ms",
        ["a b", "12KiB(12kB) 13KiB(13kB)", "1.5 2.5"],
        ["written"],
        "--value ms --group-by disk",
    ),
    ("name,mean,cv,n", ["a b", "1.5 2.5", "0.1 0.1", "5 6"], ["n"], "--value mean --group-by name,n"),
    ("kernel,failed,seconds", ["a b", "3 4", "1.5 2.5"], ["failed"], "--value seconds --group-by kernel"),
]


@pytest.mark.parametrize(
    ("header", "columns", "open_columns", "options"), DOUBTFUL, ids=[row[0] for row in DOUBTFUL]
)
def test_a_column_that_may_mean_several_things_is_asked_about_with_the_options(
    tmp_path: Path, header: str, columns: list[str], open_columns: list[str], options: str
) -> None:
    path = table(tmp_path, header, *rows_of(*columns))
    with pytest.raises(ColumnsUndecided, match="so nothing is read") as refused:
        read_file(path)
    assert [column.name for column in refused.value.columns if column.doubt] == open_columns
    assert [column.name for column in refused.value.columns] == header.split(",")
    assert refused.value.advice == f"say what they mean: ktrial analyze {path} {options}"
    assert len(refused.value.message) - len(str(path)) < 200


@pytest.mark.parametrize(
    ("header", "columns", "open_columns", "options"), DOUBTFUL, ids=[row[0] for row in DOUBTFUL]
)
def test_what_is_suggested_is_read(
    tmp_path: Path, header: str, columns: list[str], open_columns: list[str], options: str
) -> None:
    """Every number of the columns, and none of another one."""
    path = table(tmp_path, header, *rows_of(*columns))
    _, value, _, group_by = shlex.split(options)
    imported = read_file(path, value=value, group_by=tuple(group_by.split(",")))
    cells = dict(zip(header.split(","), columns, strict=True))
    groups = [group for family in imported.families for group in family.groups]
    summaries = [group.summary.mean.value for group in groups if group.summary]
    numbers = [*summaries, *(number for group in groups for number in group.values)]
    assert sorted(numbers) == sorted(float(cell) for name in value.split(",") for cell in cells[name].split())


def test_the_options_decide_alone(tmp_path: Path) -> None:
    path = table(tmp_path, "kernel,disk,x,y", "a,sda,1,5", "a,sdb,2,6", "b,sda,3,7", "b,sdb,4,8")
    (family,) = read_file(path, group_by=("disk",), value="x").families
    assert {group.label: group.values for group in family.groups} == {"sda": (1, 3), "sdb": (2, 4)}
    imported = read_file(path, group_by=("file",), value="x,y")
    assert [[group.values for group in family.groups] for family in imported.families] == [
        [(1, 2, 3, 4)],
        [(5, 6, 7, 8)],
    ]
    assert "the file is one group" in imported.understood
    assert "not read kernel, disk" in imported.understood


def test_one_option_leaves_the_other_question_open(tmp_path: Path) -> None:
    path = table(tmp_path, "kernel,depth,ms,us", "a,1,5.5,1.5", "b,2,6.5,2.5")
    with pytest.raises(ColumnsUndecided, match=r"3 of 4 columns .* depth, ms, us"):
        read_file(path)
    with pytest.raises(ColumnsUndecided, match=r"2 of 4 columns .* depth, us") as refused:
        read_file(path, value="ms")
    assert refused.value.options == ("--value", "ms", "--group-by", "kernel")
    with pytest.raises(ColumnsUndecided, match=r"2 of 4 columns .* ms, us"):
        read_file(path, group_by=("kernel",))


def test_columns_of_a_wide_table_are_groups_where_the_user_says_so(tmp_path: Path) -> None:
    path = table(tmp_path, "run,6.1,6.12", "1,3.5,3.0", "2,3.7,3.1")
    with pytest.raises(ImportFailed, match=r"its header is run, 6\.1, 6\.12") as refused:
        read_file(path)
    assert refused.value.advice.endswith("if these are names of groups: --value 6.1,6.12 --group-by header")
    (family,) = read_file(path, value="6.1,6.12", group_by=("header",)).families
    assert {group.label: group.values for group in family.groups} == {"6.1": (3.5, 3.7), "6.12": (3.0, 3.1)}
    with pytest.raises(ImportFailed, match="no columns that --value names"):
        read_file(path, group_by=("header",))
    with pytest.raises(ImportFailed, match=r"has no column 6\.2"):
        read_file(path, value="6.1,6.2", group_by=("header",))


def test_several_tables_in_one_text_are_asked_about(tmp_path: Path) -> None:
    lines = ["# One", "", "| kernel | ms |", "|---|---|", "| a | 1.5 |", "| b | 2.5 |", ""]
    path = written(tmp_path, "\n".join((*lines, *lines)), "two.md")
    with pytest.raises(
        ImportFailed, match="has 2 Markdown tables, so nothing is read: in lines 3, 10"
    ) as refused:
        read_file(path)
    assert refused.value.advice == f"take one: sed -n 3,6p {path} > table.md; ktrial analyze table.md"


def test_of_several_files_the_options_alone_are_suggested(tmp_path: Path) -> None:
    files = [
        ("", written(tmp_path, f"depth,ms\n1,{first}.5\n2,7.5\n", name))
        for first, name in ((1, "a.csv"), (2, "b.csv"))
    ]
    with pytest.raises(ColumnsUndecided, match=r"a\.csv, line 1: 1 of 2 columns") as refused:
        read_all(files, Choices())
    assert refused.value.advice == "say what they mean: --value ms --group-by depth"


def test_conditions_that_all_rows_share_are_kept(tmp_path: Path) -> None:
    path = table(tmp_path, "kernel,threads,seconds", "a,4,1.5", "b,4,2.5")
    imported = read_file(path)
    assert imported.families[0].groups[0].conditions == {"threads": "4"}
    assert "the same in all rows threads" in imported.understood
