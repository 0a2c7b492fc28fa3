"""Memory that ends is told in one line with a code of its own: no command spins or dies of a signal."""

import errno
import os
import resource
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from tests.support.memory_groups import memory_group
from tests.support.recorded_studies import cases
from tests.support.report_records import FIVE, a_record
from tests.support.runs_of_tests import at_night
from tests.support.stored_results import a_store
from tests.unit.report.test_report_scaling import a_record as a_scaling_record

from ktrial.cli.error_handling import CheckEndings, ErrorHandling
from ktrial.store.store import open_store

PROGRAM = (sys.executable, "-c", "from ktrial_launcher import main; main()")
MOST_CPU_SECONDS = 60
"""Many times what any of these commands takes; a loop without end takes all of it."""
KB, MB = 1 << 10, 1 << 20


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exact study, 1, one in real time, 2, and one over numbers of CPUs, 3."""
    location = a_store(tmp_path_factory.mktemp("store"), a_record(FIVE))
    timed = cases()["in real time"]
    with open_store(location) as opened:
        number = opened.study(timed.study)
        for trial in timed.trials:
            opened.add_trial(number, trial)
        in_parallel = a_scaling_record(tmp_path_factory.mktemp("scaling"), seeds=1)
        third = opened.study(in_parallel.study)
        for trial in in_parallel.trials:
            opened.add_trial(third, trial)
    assert (number, third) == (2, 3)
    return location


def ran(
    store: Path, *words: str, address_space: int = resource.RLIM_INFINITY, group: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    def limit() -> None:
        if group:
            group.write_text(str(os.getpid()))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_SECONDS, MOST_CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))

    own = {"KTRIAL_STORE": str(store), "KTRIAL_JOURNAL": str(store.parent / "journal")}
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    return subprocess.run(
        [*PROGRAM, *words],
        env=environment | own,
        cwd=store.parent,
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )


@cache
def whole_output(store: Path, words: str) -> str:
    """What a command prints that has all the memory there is."""
    command = ran(store, *words.split())
    assert command.returncode == 0, command.stderr
    return command.stdout


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        ("show 1", 20_000),
        ("show 1", 30_000),
        ("show 1", 99_000),
        at_night("show 1", 150_000),
        at_night("show 2", 120_000),
        ("show 2", 250_000),
        at_night("show 2", 300_000),
        at_night("show 2", 420_000),
        at_night("show 2", 600_000),
        at_night("report 1", 100_000),
        ("report 1", 300_000),
        at_night("report 1", 2_000_000),
        at_night("report 3", 72_000_000),
    ],
)
def test_a_command_does_what_it_should_or_says_in_one_line_that_memory_is_missing(
    words: str, limit: int, store: Path
) -> None:
    command = ran(store, *words.split(), address_space=limit * KB)
    if command.returncode == 0:
        assert command.stdout == whole_output(store, words)
        return
    assert (command.returncode, command.stdout) == (71, ""), command.stderr
    message, *hint = command.stderr.splitlines()
    assert message.startswith("ktrial: error: There is not enough memory")
    assert len(hint) <= 1
    assert all("ulimit -v unlimited" in line for line in hint)


@pytest.mark.nightly  # some 10 seconds of CPU time
@pytest.mark.parametrize(
    ("words", "limit"),
    [("show 1", 150_000), ("show 2", 600_000), ("report 1", 2_000_000), ("report 3", 72_000_000)],
)
def test_what_is_said_to_be_enough_is_enough(words: str, limit: int, store: Path) -> None:
    command = ran(store, *words.split(), address_space=limit * KB)
    assert (command.returncode, command.stderr) == (0, "")


def test_charts_that_cannot_be_drawn_are_told_with_what_needs_none(store: Path) -> None:
    command = ran(store, "report", "3", address_space=2_000_000 * KB)
    assert "vl-convert, which draws charts: it needs 68 GB of address space" in command.stderr
    assert "ktrial report --markdown" in command.stderr
    assert ran(store, "report", "3", "--markdown", address_space=2_000_000 * KB).returncode == 0


def caused_by(cause: BaseException) -> Exception:
    error = ValueError("charts need a package")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        ImportError("x.so: failed to map segment from shared object"),
        caused_by(MemoryError()),
    ],
    ids=repr,
)
def test_every_end_of_memory_has_the_same_code(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    with ErrorHandling() as ending:
        raise error
    assert ending.code == 71
    assert capsys.readouterr().err.startswith("ktrial: error: There is not enough memory.\nhint: ")


def test_who_has_no_memory_for_a_report_of_a_bug_had_none_for_the_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_platform() -> str:
        raise MemoryError

    monkeypatch.setattr("platform.platform", no_platform)
    with ErrorHandling() as ending:
        raise SystemError("a library without memory")
    assert ending.code == 71
    assert "There is not enough memory" in capsys.readouterr().err


def test_a_check_without_memory_is_no_verdict() -> None:
    with pytest.raises(SystemExit) as ended, CheckEndings():
        raise MemoryError
    assert ended.value.code == 128


def test_other_errors_are_not_of_memory(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for error in (
        ImportError("no module"),
        RuntimeError("can't start new thread"),
        OSError(errno.EACCES, ""),
    ):
        with ErrorHandling() as ending:
            raise error
        assert ending.code == 70
    assert "memory" not in capsys.readouterr().err


@pytest.mark.parametrize("limit", [16 * MB, 32 * MB, at_night(64 * MB), at_night(1024 * MB)])
def test_a_control_group_ends_it_at_once_and_the_store_stays_whole(limit: int, store: Path) -> None:
    before = store.read_bytes()
    with memory_group(limit) as group:
        command = ran(store, "show", "2", group=group)
    if command.returncode == -signal.SIGKILL:
        assert limit < 1024 * MB
    else:
        assert (command.returncode, command.stdout) == (0, whole_output(store, "show 2"))
    assert store.read_bytes() == before
