"""What each importer reads, and what it says about files that are not what they should be."""

import json
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from tests.support.places import FOREIGN
from tests.support.program_texts import only_family, read_file, written

from ktrial import importers, program_outputs
from ktrial.analysis.imported_results import AnalysisOptions as HowToAnalyse
from ktrial.analysis.imported_results import analyse
from ktrial.importers import Choices, SourceFile, read_all
from ktrial.model.imported import SCORE, Family, Group, Imported
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Direction


def test_every_format_has_its_importer() -> None:
    by_name, warnings = importers.installed()
    assert set(by_name) == {"csv", "phoronix", "unixbench", *program_outputs.installed()[0]}
    assert all(importer.summary for importer in by_name.values())
    assert not warnings


def test_hyperfine_gives_each_command_s_times_without_runs_that_failed() -> None:
    imported = read_file(FOREIGN / "hyperfine.json")
    family = only_family(imported)
    assert (family.unit, family.direction) == ("s", Direction.LOWER)
    assert [group.label for group in family.groups] == ["sleep 0.10", "sleep 0.11"]
    assert family.groups[1].values == (0.1117, 0.1120, 0.1121, 0.1126)
    assert family.groups[1].failed == 1
    assert imported.warnings[0].kind is WarningKind.FAILED_TRIALS
    assert family.run_order == ("sleep 0.10",) * 5 + ("sleep 0.11",) * 4


def test_pyperf_gives_one_value_a_process() -> None:
    imported = read_file(FOREIGN / "pyperf.json", label="6.1")
    family = only_family(imported)
    assert (family.name, family.unit) == ("fork", "s")
    assert family.groups[0].label == "6.1"
    assert family.groups[0].values == pytest.approx((0.0011, 0.0011, 0.0013))


def test_google_benchmark_gives_repetitions_and_not_what_was_computed_from_them() -> None:
    imported = read_file(FOREIGN / "google_benchmark.json")
    family = only_family(imported)
    assert (family.name, family.unit, family.direction) == ("BM_pipe/512", "ns", Direction.LOWER)
    assert family.groups[0].values == (812.5, 815.0, 811.0)
    assert "1 benchmarks report an error" in imported.warnings[0].text
    assert imported.understood == "numbers real time; not read cpu_time"


def test_files_of_one_group_each_are_compared_with_each_other() -> None:
    path = FOREIGN / "google_benchmark.json"
    (imported,) = read_all([("6.1", path), ("6.12", path)], Choices())
    assert [group.label for group in only_family(imported).groups] == ["6.1", "6.12"]


def test_phoronix_gives_every_run_from_raw_string() -> None:
    imported = read_file(FOREIGN / "composite.xml")
    aio, queens = imported.families
    assert (aio.name, aio.unit, aio.direction) == ("AIO-Stress · Random Write", "MB/s", Direction.HIGHER)
    assert queens.direction is Direction.LOWER
    assert aio.groups[0].values == (243.01, 243.70, 244.39)
    assert aio.run_order == ("0.95s",) * 3 + ("0.50s",) * 2


RESULTS = (FOREIGN / "composite.xml").read_text()
FIRST_RESULT = RESULTS[RESULTS.index("  <Result>") : RESULTS.index("</Result>") + len("</Result>\n")]


@pytest.mark.parametrize(
    ("change", "names", "runs", "told"),
    [
        (("", ""), 2, 3, "there again, with the same numbers: it counts once"),
        (
            ("<RawString>243.01", "<RawString>244.01"),
            2,
            6,
            "there again, with other numbers: taken for further",
        ),
        (("<Scale>", "<Arguments>-s 4g</Arguments><Scale>"), 3, 3, ""),
    ],
    ids=["the same", "further runs", "other arguments"],
)
def test_phoronix_may_have_several_results_of_one_test(
    tmp_path: Path, change: tuple[str, str], names: int, runs: int, told: str
) -> None:
    again = FIRST_RESULT.replace(*change, 1) if change[0] else FIRST_RESULT
    imported = read_file(
        written(tmp_path, RESULTS.replace(FIRST_RESULT, FIRST_RESULT + again), "composite.xml")
    )
    assert len({family.name for family in imported.families}) == len(imported.families) == names
    assert len(imported.families[0].groups[0].values) == runs
    assert any(told in warning.text for warning in imported.warnings)
    assert any("there again" in warning.text for warning in imported.warnings) == bool(told)


def test_phoronix_s_failed_runs_are_noticed_by_the_number_of_run_times() -> None:
    imported = read_file(FOREIGN / "composite.xml")
    assert [group.failed for group in imported.families[0].groups] == [0, 1]
    failed, nothing = imported.warnings
    assert "0.50s: 1 of 3 runs gave no value" in failed.text
    assert (nothing.kind, "N-Queens, 0.50s" in nothing.text) == (WarningKind.INPUT_INCOMPLETE, True)


def test_a_unixbench_report_gives_every_result_and_the_score() -> None:
    imported = read_file(FOREIGN / "unixbench_experimental.txt", label="muqss")
    assert len(imported.families) == 13
    families = {family.metric: family for family in imported.families}
    assert families[SCORE].groups[0].label == "muqss"
    assert families[SCORE].groups[0].values == pytest.approx((2023.641,), abs=0.0005), "printed as 2023.6"
    creation, shell = families["Process Creation"], families["Shell Scripts (8 concurrent)"]
    assert (creation.groups[0].values, creation.unit) == ((17578.6,), "lps"), "its index is 1395.1"
    assert (shell.groups[0].values, shell.unit) == ((2851.2,), "lpm"), "its index is 4752.1"
    assert not imported.warnings, "one decimal of a result is enough"
    assert len(imported.index_rows) == 12
    assert imported.scores[0].tests == 12
    assert str(imported.started) == "2021-08-23 15:30:34"


def test_a_result_of_few_digits_is_told(tmp_path: Path) -> None:
    text = """System Benchmarks Partial Index              BASELINE       RESULT    INDEX
Pipe Throughput                               12440.0    2537501.7   2039.8
Shell Scripts (8 concurrent)                      6.0          4.2      7.0
                                                                   ========
System Benchmarks Index Score (Partial Only)                          119.5
"""
    (told,) = read_file(written(tmp_path, text, "slow.txt")).warnings
    assert told.kind is WarningKind.COARSE_VALUES
    assert "Shell Scripts (8 concurrent): the result is printed to one decimal" in told.text
    assert "by up to 1.2\N{NO-BREAK SPACE}%" in told.text


def test_reports_of_one_kernel_after_another_s_are_confounded_with_time() -> None:
    named = [(kind, FOREIGN / f"unixbench_{kind}.txt") for kind in ("experimental", "control")]
    analysis = analyse(read_all(named + named, Choices()), HowToAnalyse())
    (finding,) = [each for each in analysis.findings if each.kind is WarningKind.ORDER_CONFOUNDED][:1]
    assert "all runs of one group came before all of the next (experimental … control)" in finding.text


def test_a_changed_index_in_a_report_is_found_out(tmp_path: Path) -> None:
    text = (FOREIGN / "unixbench_control.txt").read_text()
    analysis = analyse(
        (read_file(written(tmp_path, text.replace(" 455.9", " 555.9"), "c.txt")),), HowToAnalyse()
    )
    told = [each.text for each in analysis.findings if each.kind is WarningKind.INDEX_MISMATCH]
    assert "Process Creation: the index is given as 555.9, but 10 · 5744.4 / 126 is 455.9" in told[0]
    assert "the score is given as 1578.6, but the geometric mean of its 12 indices is 1605.0" in told[1]


def test_unixbench_s_output_traps(tmp_path: Path) -> None:
    """Partial indices, `---` cells, a block a copy count, tests that are no part of the index."""
    text = """Benchmark Run: Mon Jan 05 2026 10:00:00 - 10:28:00
8 CPUs in system; running 1 parallel copy of tests

System Benchmarks Partial Index              BASELINE       RESULT    INDEX
Pipe Throughput                               12440.0    2537501.7   2039.8
Process Creation                                  ---       5744.4      ---
                                                                   ========
System Benchmarks Index Score (Partial Only)                         2039.8

Non-Index Benchmarks Index Values            BASELINE       RESULT    INDEX
Arithmetic Overhead                            1000.0       2000.0     20.0
Benchmark Run: Mon Jan 05 2026 10:30:00 - 10:58:00
8 CPUs in system; running 8 parallel copies of tests

System Benchmarks Partial Index              BASELINE       RESULT    INDEX
Pipe Throughput                               12440.0   20300013.6  16318.3
                                                                   ========
System Benchmarks Index Score (Partial Only)                        16318.3
"""
    imported = read_file(written(tmp_path, text, "partial.txt"))
    assert [(family.name, family.unit) for family in imported.families] == [
        ("Pipe Throughput", "lps"),
        ("Process Creation", ""),
        ("Arithmetic Overhead", ""),
        ("Pipe Throughput, 8 copies", "lps"),
    ]
    assert [score.tests for score in imported.scores] == [1, 1]
    kinds = {finding.kind for finding in analyse((imported,), HowToAnalyse()).findings}
    assert WarningKind.INDEX_MISMATCH not in kinds


def test_a_unixbench_log_s_results_are_recomputed_from_its_passes() -> None:
    imported = read_file(FOREIGN / "unixbench.log")
    results = {row.test: row.result.value for row in imported.index_rows}
    context = (118000 * 120000) ** 0.5 / 10.0005
    assert results["Pipe-based Context Switching"] == pytest.approx(context), "the lowest of three is dropped"
    assert results["Double-Precision Whetstone"] == pytest.approx((5500.5 * 5499.5) ** 0.5), "no timebase"
    assert results["Process Creation"] == pytest.approx(603000 / 30.1), "counts summed, times averaged"
    assert "Process Creation, 2 copies" in {family.name for family in imported.families}


PIPE, CALLS = 705597.0, 523397.4
NON_INDEX = {
    "Arithoh": 131450338.1,
    "Exec System Call Overhead": 197.8,
    "Recursion Test -- Tower of Hanoi": 148060.0,
}
"""What UnixBench 6.0.0 printed on a busy virtual machine of tests that have no part in the index."""


@pytest.mark.parametrize("name", ["unixbench-6.0.0-01.txt", "unixbench-6.0.0-01.log"])
def test_a_real_run_s_report_and_log_give_tests_outside_the_index_too(name: str) -> None:
    families = {family.name: family for family in read_file(FOREIGN / name).families}
    index = {"Pipe Throughput": PIPE, "System Call Overhead": CALLS}
    assert set(families) == {*NON_INDEX, *index}
    for test, value in {**NON_INDEX, **index}.items():
        (only,) = families[test].groups[0].values
        assert only == pytest.approx(value, abs=0.05)
        assert families[test].unit == "lps"


def test_two_reports_or_logs_in_one_file_are_two_runs(tmp_path: Path) -> None:
    report, other = ((FOREIGN / f"unixbench-6.0.0-0{n}.txt").read_text() for n in (1, 2))
    families = {
        family.name: family for family in read_file(written(tmp_path, report + other, "r.txt")).families
    }
    assert [len(family.groups[0].values) for family in families.values()] == [2] * 5
    assert families["Pipe Throughput"].groups[0].values[0] == PIPE
    log = (FOREIGN / "unixbench-6.0.0-01.log").read_text()
    twice = read_file(written(tmp_path, log + log, "r.log"))
    assert {len(family.groups[0].values) for family in twice.families} == {2}
    assert {row.run for row in twice.index_rows} == {"r", "r (2)"}


def hyperfine_file(directory: Path, name: str, **commands: tuple[list[float], list[int]]) -> Path:
    results = [
        {"command": command, "times": times, "exit_codes": codes}
        for command, (times, codes) in commands.items()
    ]
    return written(directory, json.dumps({"results": results}), name)


def test_labels_of_hyperfine_s_files_make_each_command_s_groups(tmp_path: Path) -> None:
    before = hyperfine_file(tmp_path, "a.json", ls=([0.1, 0.2], [0, 0]), ps=([0.5, 0.6], [0, 0]))
    after = hyperfine_file(tmp_path, "b.json", ls=([0.3, 0.4], [0, 0]), ps=([0.7, 0.8], [0, 0]))
    (imported,) = read_all([("A", before), ("B", after)], Choices())
    told = {
        family.name: {group.label: group.values for group in family.groups} for family in imported.families
    }
    assert told == {"ls": {"A": (0.1, 0.2), "B": (0.3, 0.4)}, "ps": {"A": (0.5, 0.6), "B": (0.7, 0.8)}}
    without = read_all([("", before), ("", after)], Choices())
    assert [[group.label for group in each.families[0].groups] for each in without] == [["ls", "ps"]] * 2


def test_labels_compare_one_command_a_file_whatever_it_is_called(tmp_path: Path) -> None:
    before = hyperfine_file(tmp_path, "a.json", **{"sleep 0.1": ([0.1, 0.2], [0, 0])})
    after = hyperfine_file(tmp_path, "b.json", **{"sleep 0.3": ([0.3, 0.4], [0, 0])})
    (imported,) = read_all([("A", before), ("B", after)], Choices())
    family = only_family(imported)
    assert {group.label: group.values for group in family.groups} == {"A": (0.1, 0.2), "B": (0.3, 0.4)}
    assert "A has sleep 0.1; B has sleep 0.3" in imported.warnings[-1].text
    assert [len(each.families) for each in read_all([("", before), ("", after)], Choices())] == [1, 1]


def test_labelled_files_with_nothing_in_common_are_told(tmp_path: Path) -> None:
    before = hyperfine_file(tmp_path, "a.json", ls=([0.1, 0.2], [0, 0]), ps=([0.5, 0.6], [0, 0]))
    after = hyperfine_file(tmp_path, "b.json", cat=([0.3, 0.4], [0, 0]))
    (imported,) = read_all([("A", before), ("B", after)], Choices())
    assert [family.name for family in imported.families] == ["ls", "ps", "cat"]
    assert "nothing is compared: A has ls, ps; B has cat" in imported.warnings[-1].text


def test_a_command_whose_runs_all_failed_is_told_by_name(tmp_path: Path) -> None:
    imported = read_file(
        hyperfine_file(tmp_path, "a.json", ls=([0.1, 0.2], [0, 0]), bad=([0.1, 0.1], [1, 2]), none=([], []))
    )
    assert [group.label for group in only_family(imported).groups] == ["ls"]
    assert [warning.text for warning in imported.warnings] == [
        "a.json: all 2 runs of bad ended with an error: it is left out",
        "a.json: none has no times: it is left out",
    ]


def test_a_label_that_says_nothing_is_told() -> None:
    imported = read_file(FOREIGN / "composite.xml", label="before")
    assert "the label before is not used" in imported.warnings[-1].text


def test_times_in_other_units_are_compared(tmp_path: Path) -> None:
    text = (FOREIGN / "google_benchmark.json").read_text()
    in_us = text.replace('"ns"', '"us"').replace("812.5", "0.8125").replace("815.0", "0.815")
    assert in_us.count('"us"') >= 2
    later = written(tmp_path, in_us, "later.json")
    (imported,) = read_all([("6.1", FOREIGN / "google_benchmark.json"), ("6.12", later)], Choices())
    family = only_family(imported)
    assert family.unit == "ns"
    assert family.groups[1].values[:2] == (812.5, 815.0)


class Points:
    """An importer of another package."""

    name = "points"
    summary = "one number a line"
    one_group = True

    def recognises(self, file: SourceFile) -> bool:
        return file.text.startswith("points")

    def read(self, file: SourceFile) -> Imported:
        values = tuple(float(line) for line in file.text.splitlines()[1:])
        family = Family(name="p", metric="p", groups=(Group(label=file.group, values=values),))
        return Imported(source=file.name, format=self.name, families=(family,))


points = Points()


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    """What is installed in the group ktrial.importers."""
    installed: list[EntryPoint] = []
    monkeypatch.setattr(
        "ktrial.plugin_discovery.entry_points",
        lambda group: installed if group == "ktrial.importers" else [],
    )
    importers.installed.cache_clear()
    yield installed
    importers.installed.cache_clear()


def test_another_package_s_importer_is_one_like_any(plugins: list[EntryPoint], tmp_path: Path) -> None:
    plugins.append(EntryPoint("points", "tests.unit.importers.test_importers:points", "ktrial.importers"))
    assert only_family(read_file(written(tmp_path, "points\n1\n2\n"))).groups[0].values == (1.0, 2.0)


@pytest.mark.parametrize("value", ["no.such.module:importer", "tests.unit.importers.test_importers:FOREIGN"])
def test_a_broken_importer_warns_and_stops_nothing(plugins: list[EntryPoint], value: str) -> None:
    plugins.append(EntryPoint("broken", value, "ktrial.importers"))
    known, (warning,) = importers.installed()
    assert "csv" in known
    assert "broken" not in known
    assert warning.kind is WarningKind.PLUGIN_BROKEN
    assert "the importer broken (" in warning.text
