"""Conditions that foreign files tell: what differs besides the factor is said first."""

from pathlib import Path

import pytest
from tests.support.program_texts import changed, text_of, written

from ktrial.analysis.imported_results import AnalysisOptions, analyse
from ktrial.importers import Choices, read_all
from ktrial.importers.errors import ImportFailed
from ktrial.model.imported import Analysis
from ktrial.model.warnings import WarningKind

OTHERWISE = [
    ("fio-3.33.json", ('"bs": "4k"', '"bs": "32k"'), "block size 4k and 32k"),
    ("fio-3.33.json", ('"rw": "randread"', '"rw": "read"'), "pattern randread and read"),
    ("pgbench-15.txt", ("number of clients: 4", "number of clients: 8"), "clients 4 and 8"),
    ("pgbench-15.txt", ("scaling factor: 1", "scaling factor: 100"), "scale 1 and 100"),
    ("sysbench-cpu-1.0.20.txt", ("Number of threads: 1", "Number of threads: 2"), "threads 1 and 2"),
    ("sysbench-memory-1.0.20.txt", ("block size: 1KiB", "block size: 4KiB"), "block size 1KiB and 4KiB"),
    ("nginx-wrk-4.1.0.txt", ("64 connections", "8 connections"), "connections 64 and 8"),
    ("cyclictest-2.40.json", ("-t2 -i1000", "-t2 -p99 -i1000"), "command cyclictest"),
    ("cyclictest-2.40.json", ('"nodename": "vm"', '"nodename": "pc"'), "host vm and pc"),
    ("cyclictest-0.83.txt", (" P: 0", " P:99"), "priority 0 and 99"),
    ("ab-2.3.txt", ("/index.html", "/other.html"), "path /index.html and /other.html"),
    ("dbench-4.txt", ("for 3 seconds", "for 9 seconds"), "duration 3 seconds and 9 seconds"),
    ("google-benchmark-1.7.1.json", ('type": "debug"', 'type": "release"'), "build type debug and release"),
    ("stress-ng-0.15.06.yaml", ("version: 0.15.06", "version: 0.17.08"), "version 0.15.06 and 0.17.08"),
    ("perf-stat-6.1.187.txt", ("for 'true'", "for 'false'"), "command 'true' and 'false'"),
    ("pyperf-2.json", ("3.11.7 (64-bit)", "3.12.1 (64-bit)"), "Python 3.11.7 (64-bit) and 3.12.1 (64-bit)"),
]


def compared(*files: tuple[str, Path]) -> Analysis:
    return analyse(read_all(files, Choices()), AnalysisOptions())


def confounds(analysis: Analysis) -> list[str]:
    return [finding.text for finding in analysis.findings if finding.kind is WarningKind.CONFOUND]


@pytest.mark.parametrize(("file", "change", "text"), OTHERWISE)
def test_a_condition_that_differs_is_said_first(
    tmp_path: Path, file: str, change: tuple[str, str], text: str
) -> None:
    old = written(tmp_path, text_of(file), f"old-{file}")
    new = written(tmp_path, changed(file, change), f"new-{file}")
    analysis = compared(("old", old), ("new", new))
    assert text in analysis.findings[0].text
    assert analysis.findings[0].kind is WarningKind.CONFOUND
    assert "confound" in analysis.answer
    assert not confounds(compared(("old", old), ("new", old)))


def test_the_factor_that_the_labels_name_is_no_confound(tmp_path: Path) -> None:
    old = written(tmp_path, text_of("fio-3.33.json"), "a.json")
    new = written(tmp_path, changed("fio-3.33.json", ('"bs": "4k"', '"bs": "32k"')), "b.json")
    assert not confounds(compared(("4k", old), ("32k", new)))


@pytest.mark.parametrize(
    ("file", "change", "key", "groups"),
    [
        ("fio-3.33.json", ('"bs": "4k"', '"bs": "32k"'), "block size", ["block size 4k", "block size 32k"]),
        ("pgbench-15.txt", ("clients: 4", "clients: 8"), "clients", ["clients 4", "clients 8"]),
        ("unixbench_control.txt", ("16 CPUs", "8 CPUs"), "CPUs", ["CPUs 16", "CPUs 8"]),
    ],
)
def test_the_condition_that_differs_is_offered_as_the_factor(
    tmp_path: Path, file: str, change: tuple[str, str], key: str, groups: list[str]
) -> None:
    """As it is printed: `--group-by 'block size'` makes it the factor, and no confound is left."""
    old = written(tmp_path, text_of(file), f"old-{file}")
    new = written(tmp_path, changed(file, change), f"new-{file}")
    (confound,) = (
        each for each in compared(("", old), ("", new)).findings if each.kind is WarningKind.CONFOUND
    )
    assert f"--group-by '{key}'" in confound.advice
    analysis = analyse(read_all([("", old), ("", new)], Choices(group_by=(key,))), AnalysisOptions())
    assert {tuple(group.label for group in family.groups) for family in analysis.families} == {tuple(groups)}
    assert not confounds(analysis)


def test_files_of_one_level_are_runs_of_one_group(tmp_path: Path) -> None:
    few = written(tmp_path, text_of("pgbench-15.txt"), "a.txt")
    many = written(tmp_path, changed("pgbench-15.txt", ("clients: 4", "clients: 8")), "b.txt")
    files = [("", few), ("", many), ("", few), ("", many)]
    family = read_all(files, Choices(group_by=("clients",)))[0].families[0]
    assert [(group.label, len(group.values)) for group in family.groups] == [
        ("clients 4", 2),
        ("clients 8", 2),
    ]


def test_a_condition_that_a_file_does_not_tell_is_an_error_that_lists_what_it_tells(tmp_path: Path) -> None:
    file = written(tmp_path, text_of("pgbench-15.txt"), "a.txt")
    with pytest.raises(ImportFailed, match=r"does not tell client \(did you mean clients.*it tells: .*scale"):
        read_all([("", file), ("", file)], Choices(group_by=("client",)))


def test_a_comment_of_a_table_is_a_condition_that_groups(tmp_path: Path) -> None:
    files = [
        ("", written(tmp_path, f"# governor: {governor}\nrun,seconds\n1,{first}\n2,{first + 1}\n", name))
        for governor, first, name in (("powersave", 9.1, "a.csv"), ("performance", 5.3, "b.csv"))
    ]
    (family,) = read_all(files, Choices(group_by=("governor",)))[0].families
    assert [group.label for group in family.groups] == ["governor powersave", "governor performance"]


def test_files_of_one_name_in_two_folders_are_two_groups(tmp_path: Path) -> None:
    for folder in ("6.1", "6.12"):
        (tmp_path / folder).mkdir()
    files = [
        ("", written(tmp_path / folder, text_of("pgbench-15.txt"), "r.txt")) for folder in ("6.1", "6.12")
    ]
    analysis = compared(*files)
    assert [group.label for group in analysis.families[0].groups] == ["6.1/r", "6.12/r"]


def test_a_label_that_begins_the_condition_names_it(tmp_path: Path) -> None:
    report = text_of("unixbench-6.0.0-01.txt")
    old, new = (
        written(tmp_path, report.replace("6.18.44-fc-v669", release), f"{release}.txt")
        for release in ("6.1.0-18-amd64", "6.12.3-amd64")
    )
    assert not confounds(compared(("6.1", old), ("6.12", new)))
    assert confounds(compared(("6.1", new), ("6.12", old)))


def test_runs_of_one_group_under_two_conditions_are_told(tmp_path: Path) -> None:
    old = written(tmp_path, text_of("pgbench-15.txt"), "a.txt")
    new = written(tmp_path, changed("pgbench-15.txt", ("clients: 4", "clients: 8")), "b.txt")
    (told,) = confounds(compared(("a", old), ("b", old), ("b", new)))
    assert "clients 4 and 4, 8" in told


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (None, "the library is a debug build"),
        (('"cpu_scaling_enabled": false', '"cpu_scaling_enabled": true'), "the CPUs change their frequency"),
        (("[8.75928,", "[12.0,"), "the load was 12 on 2 CPUs when it began"),
    ],
)
def test_what_google_benchmark_says_of_its_surroundings_is_told(
    tmp_path: Path, change: tuple[str, str] | None, text: str
) -> None:
    file = "google-benchmark-1.7.1.json"
    path = written(tmp_path, changed(file, change) if change else text_of(file), "a.json")
    assert any(text in finding.text for finding in compared(("", path)).findings)


SUITE = """<?xml version="1.0"?>
<PhoronixTestSuite>
  <System><Identifier>{label}</Identifier><Hardware>Processor: {cpu}, Memory: 16GB</Hardware>
    <Software>Kernel: 6.1</Software></System>
  <Result><Identifier>pts/x</Identifier><Title>X</Title><Scale>Seconds</Scale><Proportion>LIB</Proportion>
    <Data><Entry><Identifier>{label}</Identifier><Value>2</Value><RawString>{runs}</RawString></Entry></Data>
  </Result>
</PhoronixTestSuite>
"""


def test_two_files_of_one_identifier_are_two_groups(tmp_path: Path) -> None:
    files = [
        ("", written(tmp_path, SUITE.format(label="box", cpu=cpu, runs=runs), name))
        for name, cpu, runs in (("a.xml", "i7", "2.0:2.1:2.2"), ("b.xml", "i9", "1.0:1.1:1.2"))
    ]
    analysis = compared(*files)
    (family,) = analysis.families
    assert [group.label for group in family.groups] == ["box (a)", "box (b)"]
    assert not [each for each in analysis.findings if each.kind is WarningKind.REPEATS_DISAGREE]
    assert "Processor i7 and i9" in confounds(analysis)[0]


@pytest.mark.parametrize(
    ("header", "cells", "labels", "groups"),
    [
        ("run,seconds", "", ("", ""), ["a", "b"]),
        ("run,seconds", "", ("old", "new"), ["old", "new"]),
        ("kernel,run,seconds", "6.1,", ("", ""), ["6.1 (a)", "6.1 (b)"]),
        ("kernel,run,seconds", "6.1,", ("old", "new"), ["old", "new"]),
    ],
)
def test_tables_of_one_group_each_are_compared(
    tmp_path: Path, header: str, cells: str, labels: tuple[str, str], groups: list[str]
) -> None:
    files = []
    for label, name, first in zip(labels, ("a.csv", "b.csv"), (3.0, 4.0), strict=True):
        rows = "".join(f"{cells}{run},{first + run / 10}\n" for run in range(3))
        files.append((label, written(tmp_path, f"{header}\n{rows}", name)))
    analysis = compared(*files)
    (family,) = analysis.families
    assert [group.label for group in family.groups] == groups
    assert not [each for each in analysis.findings if each.kind is WarningKind.REPEATS_DISAGREE]
