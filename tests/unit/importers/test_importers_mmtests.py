"""MMTests' logs: a run is a group, its iterations are repetitions, and what is in no format is named."""

import lzma
from pathlib import Path

import pytest
from tests.support.places import PROGRAM_OUTPUTS

from ktrial.importers import Choices, read_all
from ktrial.importers.errors import ImportFailed
from ktrial.model.imported import Imported

LOGS = {
    "hackbench/logs/hackbench-4": "hackbench-2.40.txt",
    "kernbench/logs/time-8-1": "gnu-time-1.9.txt",
    "kernbench/logs/time-8-2": "gnu-time-1.9-verbose.txt",
    "netperf-tcp/logs/TCP_STREAM-64.1": "netperf-tcp-stream.txt",
    "pgbench/logs/pgbench-4.log": "pgbench-15.txt",
    "pgbench/logs/time-4-1": "gnu-time-1.9.txt",
    "schbench/logs/schbench-2.log": "schbench.txt",
    "sysbench/logs/sysbench-raw-2-1": "sysbench-cpu-1.0.20.txt",
    "tbench4/logs/dbench-2.log.xz": "dbench-4.txt",
    "wis-mmap1/logs/benchlog-mmap1_processes-4": "will-it-scale-mmtests.txt",
}
"""File of an iteration → what is in it."""
PARTS = {
    "hackbench-4",
    "kernbench time-8",
    "netperf-tcp TCP_STREAM-64",
    "pgbench-4",
    "schbench-2",
    "sysbench-raw-2",
    "tbench4 dbench-2",
    "wis-mmap1 benchlog-mmap1_processes-4",
}


def logged(run: Path, iterations: int, logs: dict[str, str]) -> Path:
    """A run's directory, with the same in each iteration."""
    for iteration in range(iterations):
        for place, file in logs.items():
            path = run / f"iter-{iteration}" / place
            path.parent.mkdir(parents=True, exist_ok=True)
            content = (PROGRAM_OUTPUTS / file).read_bytes()
            path.write_bytes(lzma.compress(content) if path.suffix == ".xz" else content)
    return run


def parts(files: tuple[Imported, ...]) -> set[str]:
    return {family.name.split(": ")[0] for file in files for family in file.families}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two runs of three iterations each."""
    for run in ("6.1", "6.12"):
        logged(
            tmp_path / run,
            3,
            LOGS,
        )
    return tmp_path


def test_each_log_is_read_by_its_format(logs: Path) -> None:
    assert parts(read_all([("", logs)], Choices())) == PARTS


def test_runs_are_groups_and_iterations_repetitions(logs: Path) -> None:
    (tbench,) = (
        family
        for file in read_all([("", logs)], Choices())
        for family in file.families
        if family.name == "tbench4 dbench-2: throughput"
    )
    assert {group.label: group.values for group in tbench.groups} == {
        "6.1": (90.5056,) * 3,
        "6.12": (90.5056,) * 3,
    }


def test_files_that_differ_in_their_iteration_are_repetitions(logs: Path) -> None:
    families = [family for file in read_all([("", logs / "6.1")], Choices()) for family in file.families]
    (elapsed,) = (family for family in families if family.name == "kernbench time-8: time elapsed")
    assert elapsed.groups[0].values == (0.36, 0.42) * 3


def test_a_run_can_have_a_label(logs: Path) -> None:
    files = read_all([("old", logs / "6.1"), ("new", logs / "6.12")], Choices())
    assert {group.label for file in files for family in file.families for group in family.groups} == {
        "old",
        "new",
    }


def test_what_is_in_no_format_is_named(logs: Path) -> None:
    for name in ("dblog", "procnetdev-TCP_STREAM-64-1.log"):
        (logs / "6.1" / "iter-0" / "pgbench" / "logs" / name).write_text("something else\n")
    (logs / "6.1" / "iter-0" / "pgbench" / "logs" / "commands.log").write_text("pgbench -c 4\n")
    texts = [warning.text for file in read_all([("", logs)], Choices()) for warning in file.warnings]
    assert "6.1: not read in the logs of pgbench: dblog, procnetdev-TCP_STREAM-64-1.log" in texts


def test_a_log_that_is_damaged_is_told_with_its_line(logs: Path) -> None:
    path = logs / "6.1" / "iter-1" / "tbench4" / "logs" / "dbench-2.log.xz"
    path.write_bytes(lzma.compress(b"dbench version 4.00\n\nbroken\n"))
    texts = [warning.text for file in read_all([("", logs)], Choices()) for warning in file.warnings]
    assert any("iter-1" in text and "taken for dbench" in text and "line" in text for text in texts)


def test_logs_of_which_none_is_read_are_refused(tmp_path: Path) -> None:
    directory = tmp_path / "6.1" / "iter-0" / "vmr-stream" / "logs"
    directory.mkdir(parents=True)
    (directory / "stream-1").write_text("nothing of it\n")
    with pytest.raises(
        ImportFailed, match=r"6\.1, a run of MMTests: no log is in a format that is read: stream-1"
    ):
        read_all([("", tmp_path)], Choices())
