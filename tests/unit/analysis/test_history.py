"""`ktrial history` and `ktrial matrix --study`: from what the store holds."""

import csv
import io
import json
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from tests.support.command_line import CommandLine
from tests.support.making import a_sample
from tests.support.report_records import FIVE, a_record, in_plugin_mode
from tests.support.stored_results import WORKLOADS, a_store

from ktrial.analysis.errors import AnalysisUsageError
from ktrial.analysis.history.series import history
from ktrial.analysis.history.stored_numbers import stored_numbers
from ktrial.cli.render.matrix import print_matrix
from ktrial.experiment.kernel_choice import Range, chosen
from ktrial.model.history import ChangeKind, History
from ktrial.model.kernel import version_order
from ktrial.model.machine import CgroupLimits
from ktrial.model.study import StudyRecord
from ktrial.model.workload import Mode
from ktrial.report.matrix import matrix, matrix_page
from ktrial.store.store import open_store


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "own" / "ktrial.db"))
    return CommandLine(monkeypatch, capsys)


def of(path: Path, workload: str, **options: object) -> History:
    with open_store(str(path)) as store:
        return history(stored_numbers(store), workload, **options)  # type: ignore[arg-type]


def test_versions_stand_in_order_and_steps_are_marked(tmp_path: Path) -> None:
    (line,) = of(a_store(tmp_path, a_record(tuple(reversed(FIVE)), WORKLOADS)), "fork").lines
    assert [point.version for point in line.points] == list(FIVE)
    assert [(change.since, change.version) for change in line.changes] == list(pairwise(FIVE))
    assert {change.kind for change in line.changes} == {ChangeKind.STEP}
    assert {change.verdict.value for change in line.changes} == {"worse"}
    assert of(a_store(tmp_path / "other", a_record(FIVE, WORKLOADS)), "nqueens").lines[0].changes == ()


BUILDS = ("build:s0", "build:s1", "build:s2")


def as_builds(record: StudyRecord, *digests: str) -> StudyRecord:
    """As if the kernels were builds of one version: a commit's name ends the release, and has no order."""
    text = record.model_dump_json()
    for kernel, build in zip(FIVE, BUILDS, strict=False):
        text = text.replace(f'"{kernel}"', f'"{build}"')
    record = StudyRecord.model_validate_json(text)
    releases = dict(zip(BUILDS, ("6.1.0-gffff", "6.1.0-g0aaa", "6.1.0-g5555"), strict=True))
    by_build = dict(zip(BUILDS, digests, strict=False))
    trials = tuple(
        trial.model_copy(
            update={
                "provenance": trial.provenance.model_copy(
                    update={
                        "kernel_release": releases[trial.provenance.kernel],
                        "kernel_digest": by_build.get(
                            trial.provenance.kernel, trial.provenance.kernel_digest
                        ),
                    }
                )
            }
        )
        for trial in record.trials
    )
    return record.model_copy(update={"trials": trials})


def test_builds_of_one_version_stand_in_the_order_of_their_study_or_in_the_one_that_is_asked_for(
    tmp_path: Path,
) -> None:
    path = a_store(tmp_path, as_builds(a_record(FIVE[:3], ("fork",))))
    (line,) = of(path, "fork").lines
    assert [point.version for point in line.points] == list(BUILDS)
    assert [(change.since, change.version, change.verdict.value) for change in line.changes] == [
        (*pair, "worse") for pair in pairwise(BUILDS)
    ]
    expected = (BUILDS[2], BUILDS[0])
    (line,) = of(path, "fork", kernels=expected).lines
    assert [point.version for point in line.points] == list(expected)
    assert [change.verdict.value for change in line.changes] == ["better"]


def test_commits_that_make_the_same_image_are_points_of_their_own_and_not_missing(tmp_path: Path) -> None:
    path = a_store(tmp_path, as_builds(a_record(FIVE[:3], ("fork",)), "same", "same"))
    history_of = of(path, "fork", kernels=BUILDS)
    assert [point.version for point in history_of.lines[0].points] == list(BUILDS)
    assert history_of.missing == ()


def test_the_same_kernel_measured_twice_is_one_point(tmp_path: Path) -> None:
    lines = of(a_store(tmp_path, a_record(FIVE[:3], ("fork",)), a_record(FIVE[2:], ("fork",))), "fork")
    (line,) = lines.lines
    assert [point.version for point in line.points] == list(FIVE)
    assert line.points[2].study == "quick-1"


def with_qemu(record: StudyRecord, qemu: str, **changes: object) -> StudyRecord:
    trials = tuple(
        trial.model_copy(update={"provenance": trial.provenance.model_copy(update={"qemu": qemu, **changes})})
        for trial in record.trials
    )
    return record.model_copy(update={"trials": trials})


def test_other_machines_have_lines_of_their_own(tmp_path: Path) -> None:
    second = with_qemu(a_record(FIVE[:2], ("fork",)), "10.0")
    lines = of(a_store(tmp_path, a_record(FIVE, ("fork",)), second), "fork")
    assert [len(line.points) for line in lines.lines] == [5, 2]
    assert (lines.lines[0].alone, lines.lines[1].alone) == ("", "measured with a different QEMU build")


def timed(record: StudyRecord, spread: float, factor: dict[str, float], seed: int = 1) -> StudyRecord:
    """The record as if it had been measured in real time, with noise."""
    rng = np.random.default_rng(seed)
    trials = tuple(
        trial.model_copy(
            update={
                "samples": (
                    a_sample(
                        "fork",
                        100 * factor.get(trial.planned.treatment.label, 1.0) * np.exp(rng.normal(0, spread)),
                        mode=Mode.TIMED,
                    ),
                ),
                "counters": (),
            }
        )
        for trial in record.trials
    )
    return record.model_copy(update={"trials": trials})


def test_timed_versions_are_judged_by_their_trials(tmp_path: Path) -> None:
    slower = {"debian:6.12": 1.2, "debian:6.18": 1.2, "debian:7.2": 1.2}
    record = timed(a_record(FIVE, ("fork",), perturbations=12), 0.02, slower)
    (line,) = of(a_store(tmp_path, record), "fork").lines
    (change,) = line.changes
    assert (change.since, change.version, change.kind) == ("debian:6.1", "debian:6.12", ChangeKind.SHIFT)
    assert change.ratio == pytest.approx(1.2, rel=0.03)
    assert change.p is not None
    assert change.p < 0.05
    same = timed(a_record(FIVE, ("fork",), perturbations=12), 0.02, {})
    assert of(a_store(tmp_path / "same", same), "fork").lines[0].changes == ()


def test_history_prints_versions_changes_and_page(tmp_path: Path, cli: CommandLine) -> None:
    store, page = a_store(tmp_path), tmp_path / "page.html"
    result = cli("history", "fork", "-v", "--store", str(store), "--html", str(page))
    assert result.status == 0
    printed = result.output
    assert "debian:6.12: +13.78 % against debian:6.1, worse" in printed
    assert "4 change points" in printed
    assert "instructions/operation" in page.read_text()
    result = cli("history", "fork", "--store", str(store), "--json", "6.1..6.18")
    assert result.status == 0
    (line,) = json.loads(result.output)["lines"]
    assert [point["version"] for point in line["points"]] == ["debian:6.1", "debian:6.12", "debian:6.18"]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE studies SET spec = replace(spec, 'fork', 'fori') WHERE id = 2",
        "UPDATE samples SET value = value + 1 WHERE trial_id = (SELECT max(id) FROM trials)",
    ],
    ids=["study", "trial"],
)
def test_history_goes_on_without_a_damaged_study_and_tells_it(
    damage: str, tmp_path: Path, cli: CommandLine
) -> None:
    of_two = [a_record((kernel, "debian:6.1"), ("fork",)) for kernel in ("debian:6.12", "debian:7.2")]
    store, page = a_store(tmp_path, *of_two), tmp_path / "page.html"
    with closing(sqlite3.connect(store)) as raw:
        assert raw.execute(damage).rowcount > 0
        raw.commit()
    result = cli("history", "fork", "--store", str(store), "--html", str(page))
    assert result.status == 1
    assert "ktrial: warning: study 2, " in result.messages
    assert "debian:6.12" in result.output
    assert "debian:7.2" not in result.output
    assert "Left out" in page.read_text()
    reported = json.loads(cli("history", "fork", "--store", str(store), "--json").output)
    assert [name.partition(",")[0] for name in reported["left_out"]] == ["study 2"]


def test_kernels_without_numbers_are_named(tmp_path: Path) -> None:
    path = a_store(tmp_path, a_record(FIVE[:2], ("fork",)))
    assert of(path, "fork", kernels=FIVE).missing == FIVE[2:]


def test_what_was_never_measured_is_told(tmp_path: Path, cli: CommandLine) -> None:
    store = str(a_store(tmp_path))
    result = cli("history", "stat", "--store", store)
    assert result.status == 1
    assert "ktrial matrix --kernels" in result.messages
    result = cli("history", "fork", "--metric", "pages", "--store", store)
    assert result.status == 1
    assert "metric pages" in result.messages
    result = cli("history", "fork", "--kernels", "7..5.10", "--store", store)
    assert result.status == 2
    result = cli("history", "fork", "--margin", "much", "--store", store)
    assert result.status == 2


def test_ranges_hold_whole_series() -> None:
    assert Range.of("5.10..6.12").holds("6.12.57+deb13-cloud-amd64")
    assert not Range.of("5.10..6.12").holds("debian:6.13")
    assert Range.of("6.1..").holds("7.2.1")
    assert chosen(["6.1..6.12", "path:vmlinux"], [("debian:6.1", ""), ("path:vmlinux", "7.0")]) == (
        "debian:6.1",
        "path:vmlinux",
    )
    measured = [
        ("debian:6.12", "6.12.9"),
        ("build:child", "6.1.0-a1"),
        ("debian:6.1", ""),
        ("build:s0", "6.1.0-b"),
    ]
    assert chosen(["..6.1", "6.12,build:s0"], measured) == (
        *("build:child", "build:s0", "debian:6.1"),
        "debian:6.12",
    ), "a range by versions, where names of commits have no order; names as they are given"
    for text in ("a..b", "7.2..5.10", "9..10"):
        with pytest.raises(AnalysisUsageError, match="Kernels"):
            Range.of(text)


def test_versions_sort_as_kernels_do() -> None:
    expected = ["5.10.0-46-cloud-amd64", "6.1.0", "6.9", "6.12-rc3", "6.12", "6.12.5", "mine"]
    assert sorted(set(expected), key=version_order) == expected


def test_a_matrix_shows_every_cell_with_its_verdict(tmp_path: Path, cli: CommandLine) -> None:
    store, page = str(a_store(tmp_path)), tmp_path / "matrix.html"
    result = cli("matrix", "--study", "quick-0", "--store", store, "--html", str(page))
    assert result.status == 0
    printed = result.output
    assert "+46.32 % ✗" in printed
    assert "0.00 % ≈" in printed
    assert "+46.32" in page.read_text()
    result = cli("matrix", "--study", "quick-0", "--store", store, "--json")
    assert result.status == 0
    reported = json.loads(result.output)
    assert [row["workload"] for row in reported["rows"]] == list(WORKLOADS)
    assert reported["columns"] == list(FIVE[1:])
    result = cli("matrix", "--study", "quick-0", "--store", store, "--csv")
    assert result.status == 0
    rows = list(csv.DictReader(io.StringIO(result.output)))
    assert len(rows) == 4 * len(WORKLOADS)
    assert rows[0]["verdict"] == "worse"


def test_a_workloads_metrics_stand_below_its_name_and_zeros_are_left_out() -> None:
    record = a_record(FIVE[:2], ("fork",))
    (comparison,) = record.result.comparisons
    more = [
        comparison.model_copy(update={"metric": metric, "baseline_value": value, "value": value})
        for metric, value in (("refaults", 7.0), ("evictions", 0.0))
    ]
    result = record.result.model_copy(update={"comparisons": (comparison, *more)})
    record = record.model_copy(update={"result": result})
    ((workload, rows),) = matrix(record).by_workload
    assert (workload, [row.metric for row in rows]) == ("fork", [comparison.metric, "refaults"])
    assert [row.metric for row in matrix(record, all_metrics=True).rows] == [
        comparison.metric,
        "refaults",
        "evictions",
    ]
    console = Console(width=100, record=True, file=io.StringIO())
    print_matrix(matrix(record), console, whole=True)
    printed = console.export_text()
    assert "\nfork " in printed
    assert "\n  refaults " in printed
    assert "evictions" not in printed
    page = matrix_page(matrix(record))
    assert page.count('scope="rowgroup"') == 1
    assert "refaults" in page


def test_a_matrix_needs_two_kernels(tmp_path: Path, cli: CommandLine) -> None:
    store = str(a_store(tmp_path, a_record(("debian:6.1",), ("fork",))))
    result = cli("matrix", "--study", "1", "--store", store)
    assert result.status == 1
    assert "one kernel or treatment" in result.messages
    result = cli("matrix", "--store", store)
    assert result.status == 2
    result = cli("matrix", "--study", "1", "--json", "--csv", "--store", store)
    assert result.status == 2


def test_modules_limits_and_sampling_make_another_line(tmp_path: Path) -> None:
    record = a_record(FIVE, ("fork",))
    more = {"modules": ("crc32c_intel",), "sample_ns": 10_000_000, "cgroup": CgroupLimits(memory_mib=64)}
    machine = record.study.machine.model_copy(update=more)
    second = record.model_copy(update={"study": record.study.model_copy(update={"machine": machine})})
    lines = of(a_store(tmp_path, record, second), "fork").lines
    assert [len(line.points) for line in lines] == [5, 5]
    assert {line.system.settings for line in lines} == {
        "512 MiB, 1 CPU",
        "512 MiB, 1 CPU, modules crc32c_intel, sampled every 10 ms, 64 MiB for the programs",
    }


def test_only_what_two_kernels_alone_can_show_is_explained_by_them(tmp_path: Path) -> None:
    """Of two studies `explain` counts anew, with the defaults: another machine's numbers it cannot tell."""
    records = [in_plugin_mode(a_record((name,), ("fork",))) for name in FIVE[:2]]
    (line,) = of(a_store(tmp_path, *records), "fork").lines
    assert line.changes[0].why == "ktrial explain debian:5.10 debian:6.1 fork"
    boot = {"boot": ("mitigations=off",)}
    with_boot = [
        record.model_copy(
            update={
                "study": record.study.model_copy(
                    update={"machine": record.study.machine.model_copy(update=boot)}
                )
            }
        )
        for record in records
    ]
    (line,) = of(a_store(tmp_path / "other", *with_boot), "fork").lines
    assert line.changes[0].why == ""


def test_a_cell_whose_baseline_is_zero_says_what_it_came_to() -> None:
    record = a_record(FIVE[:2], ("fork",))
    (comparison,) = record.result.comparisons
    risen = comparison.model_copy(update={"baseline_value": 0.0, "value": 272.0, "ratio": None})
    record = record.model_copy(update={"result": record.result.model_copy(update={"comparisons": (risen,)})})
    console = Console(width=100, record=True, file=io.StringIO())
    print_matrix(matrix(record), console)
    assert "→ 272 ✗" in console.export_text().replace("\N{NO-BREAK SPACE}", " ")
    page = matrix_page(matrix(record))
    assert "→\N{NO-BREAK SPACE}272" in page
    assert '<span class="symbol" title="worse">✗</span>' in page
