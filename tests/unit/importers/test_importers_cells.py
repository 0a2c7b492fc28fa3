"""Tables as others write them: units in cells, ±, sums, marks of failure, columns without names."""

from pathlib import Path

import pytest
from tests.support.program_texts import written

from ktrial.analysis.imported_results import AnalysisOptions, analyse
from ktrial.importers import Choices, read_all
from ktrial.importers.errors import ImportFailed
from ktrial.model.imported import Imported

Groups = dict[str, tuple[float, ...]]
READ: list[tuple[str, str, str, Groups, str]] = [
    # What it is, the table, the unit, the numbers, what is said of it
    (
        "units in cells",
        "kernel,latency\nold,10 ms\nold,10.2 ms\nnew,9000 us\n",
        "ms",
        {"old": (10, 10.2), "new": (9,)},
        "units in the cells of latency",
    ),
    (
        "Google Benchmark's name of the unit",
        "kernel,time,time_unit\nold,10,ms\nnew,9000,us\n",
        "ms",
        {"old": (10,), "new": (9,)},
        "numbers in us were converted to ms",
    ),
    (
        "commas by threes",
        'kernel,ops_per_sec\nold,"1,234,567"\nnew,"1,334,567"\n',
        "ops/s",
        {"old": (1234567,), "new": (1334567,)},
        "commas by threes",
    ),
    (
        "a header in a comment",
        "# kernel,seconds\nold,1.01\nnew,1.11\n",
        "s",
        {"old": (1.01,), "new": (1.11,)},
        "the comment in line 1 is the header",
    ),
    (
        "spaces",
        "kernel   seconds\nold      1.01\nnew      1.11\n",
        "s",
        {"old": (1.01,), "new": (1.11,)},
        "numbers seconds",
    ),
    (
        "row numbers without a name, and a comma at the end",
        ",kernel,seconds,\n0,old,1.01,\n1,new,1.11,\n",
        "s",
        {"old": (1.01,), "new": (1.11,)},
        "the column without a name numbers the rows",
    ),
    (
        "a mean below",
        "kernel,seconds\nold,1.01\nold,1.02\nnew,1.11\nMean,1.05\n",
        "s",
        {"old": (1.01, 1.02), "new": (1.11,)},
        "from line 5 on, Mean are computed of the rest",
    ),
    (
        "a failed run",
        "kernel,seconds,exit_code\nold,1.01,0\nold,0.02,137\nnew,1.11,0\n",
        "s",
        {"old": (1.01,), "new": (1.11,)},
        "exit_code is 137 in line 3: left out",
    ),
    (
        "a run that says that it was no success",
        "kernel,seconds,success\nold,1.01,true\nnew,0.02,false\nnew,1.11,true\n",
        "s",
        {"old": (1.01,), "new": (1.11,)},
        "success is false in line 3",
    ),
    (
        "errors beside",
        "kernel,req/s,errors\nold,100,0\nnew,170,7000\n",
        "req/s",
        {"old": (100,), "new": (170,)},
        "errors is 7000 in line 3",
    ),
    (
        "a time of nothing",
        "kernel,seconds\nold,1.01\nold,0\nnew,1.11\n",
        "s",
        {"old": (1.01, 0), "new": (1.11,)},
        "of 3 numbers are 0: 1 in old",
    ),
    (
        "a run twice",
        "kernel,run,seconds\nold,1,1.01\nold,1,1.02\nnew,1,1.11\nnew,2,1.12\n",
        "s",
        {"old": (1.01, 1.02), "new": (1.11, 1.12)},
        "line 3: old has run 1 twice",
    ),
    (
        "a time whose name has a byte in it",
        "kernel,time_to_first_byte_ms\nold,12.5\nnew,12.7\n",
        "ms",
        {"old": (12.5,), "new": (12.7,)},
        "lower is better",
    ),
    (
        "seeds and iterations",
        "seed,iter,kernel,latency [us]\n1,0,old,9.1\n2,1,old,9.2\n1,0,new,8.8\n2,1,new,8.9\n",
        "us",
        {"old": (9.1, 9.2), "new": (8.8, 8.9)},
        "not read iter",
    ),
    (
        "a bare unit as the name",
        "kernel,run,ms\nold,1,9.1\nnew,1,8.8\n",
        "ms",
        {"old": (9.1,), "new": (8.8,)},
        "numbers ms",
    ),
]
HYPERFINE = """| Command | Mean [ms] | Min [ms] | Max [ms] | Relative |
|:---|---:|---:|---:|---:|
| `sleep 0.1` | 101.2 ± 0.4 | 100.8 | 102.1 | 1.00 |
| `sleep 0.2` | 201.2 ± 0.5 | 200.8 | 202.1 | 1.99 ± 0.01 |
"""
GOOGLE = """2024-01-01T00:00:00+00:00
Running ./bench
name,iterations,real_time,cpu_time,time_unit,bytes_per_second
"BM_a/8",1000,12.5,12.4,ns,
"BM_b/8",1000,{slow},22.4,us,
"""


def read(tmp_path: Path, *texts: str) -> Imported:
    files = [("", written(tmp_path, text, f"{name}.csv")) for name, text in zip("abc", texts, strict=False)]
    (imported,) = read_all(files, Choices())
    return imported


@pytest.mark.parametrize(
    ("table", "unit", "groups", "said"), [row[1:] for row in READ], ids=[row[0] for row in READ]
)
def test_a_table_is_read_as_people_write_it(
    tmp_path: Path, table: str, unit: str, groups: Groups, said: str
) -> None:
    imported = read(tmp_path, table)
    (family,) = imported.families
    assert family.unit == unit
    assert {group.label: group.values for group in family.groups} == groups
    findings = analyse([imported], AnalysisOptions()).findings
    assert said in " ".join((imported.understood, *(finding.text for finding in findings)))


def test_hyperfine_prints_standard_deviations_into_its_tables(tmp_path: Path) -> None:
    (family,) = read(tmp_path, HYPERFINE).families
    summaries = [group.summary for group in family.groups]
    assert [(each.mean.value, each.sd.value) for each in summaries if each and each.sd] == [
        (101.2, 0.4),
        (201.2, 0.5),
    ]
    assert [group.label for group in family.groups] == ["sleep 0.1", "sleep 0.2"]


def test_what_stands_behind_plus_minus_elsewhere_is_not_read_and_told(tmp_path: Path) -> None:
    imported = read(tmp_path, "kernel,score\nold,5.1 ± 0.2\nnew,5.3 ± 0.1\n")
    assert imported.families[0].groups[0].values == (5.1,)
    assert "behind ± in score: not read" in imported.understood


def test_benchmarks_in_google_benchmarks_csv_are_compared_between_files(tmp_path: Path) -> None:
    families = read(tmp_path, GOOGLE.format(slow="22.5"), GOOGLE.format(slow="24.5")).families
    assert [(family.name, family.unit, [group.values for group in family.groups]) for family in families] == [
        ("BM_a/8", "ns", [(12.5,), (12.5,)]),
        ("BM_b/8", "us", [(22.5,), (24.5,)]),
    ]


def test_lists_of_numbers_are_compared(tmp_path: Path) -> None:
    (family,) = read(tmp_path, "9.9\n10.1\n10.0\n", "10.9\n11.1\n11.0\n").families
    assert {group.label: group.values for group in family.groups} == {
        "a": (9.9, 10.1, 10.0),
        "b": (10.9, 11.1, 11.0),
    }


def test_a_file_that_is_given_twice_is_told(tmp_path: Path) -> None:
    file = written(tmp_path, "kernel,seconds\nold,1.01\nold,1.02\n", "a.csv")
    (imported,) = read_all([("", file), ("", file)], Choices())
    assert "a.csv is given twice" in imported.warnings[0].text


@pytest.mark.parametrize(
    ("table", "hint"),
    [
        ("kernel,forks,execs\nold,1.01,90\nnew,1.02,110\n", "--value forks --group-by kernel"),
        ("old,1.01\nold,1.03\nnew,1.02\n", "a line with the columns' names"),
        ("kernel,seconds,seconds\nold,1.01,2\n", "--value seconds --group-by kernel"),
    ],
)
def test_what_to_type_is_said_where_a_table_is_not_understood(tmp_path: Path, table: str, hint: str) -> None:
    with pytest.raises(ImportFailed) as error:
        read(tmp_path, table)
    assert hint in error.value.advice
