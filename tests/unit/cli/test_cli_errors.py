"""What becomes of an error: a message, a hint, an exit code; a saved traceback only for ktrial's bugs."""

import errno
import os
import signal
from pathlib import Path

import pytest
import typer

from ktrial.cli.error_handling import ErrorHandling
from ktrial.errors import Interrupted, KtrialError
from ktrial.kernels.errors import KernelNotFound
from ktrial.store.errors import StoreForbidden
from ktrial.studyfile.errors import StudyError


def _ends(error: BaseException) -> int:
    with ErrorHandling() as ending:
        raise error
    return ending.code


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("KTRIAL_TRACEBACK", raising=False)
    return tmp_path / "state" / "ktrial"


@pytest.mark.parametrize(
    ("error", "code", "messages"),
    [
        (
            KernelNotFound(name="debian:6.13", similar=""),
            1,
            "ktrial: error: There is no kernel debian:6.13 in the cache.\n"
            "hint: add it: ktrial kernel add debian:6.13\n",
        ),
        (StudyError("x.toml: bad"), 2, "ktrial: error: x.toml: bad\n"),
        (
            StoreForbidden("a.db", "written", "disk I/O error"),
            1,
            "ktrial: error: Store a.db cannot be written: disk I/O error.\nhint: check the rights on the "
            "file and "
            "on its directory, or name another store: --store FILE\n",
        ),
        (
            Interrupted(what="3 of 12 trials are stored", hint="run it again"),
            130,
            "ktrial: error: Interrupted: 3 of 12 trials are stored\nhint: run it again\n",
        ),
        (KeyboardInterrupt(), 130, "ktrial: error: Interrupted\n"),
        (typer.Abort(), 130, "ktrial: error: Interrupted\n"),
        (BrokenPipeError(), 1, ""),
        (KtrialError("a \x1b[31m b\x07"), 1, "ktrial: error: a \\x1b[31m b\\x07\n"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_an_error_is_a_message_and_an_exit_code(
    error: BaseException, code: int, messages: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert _ends(error) == code
    assert capfd.readouterr().err == messages


def test_a_bug_saves_its_traceback_and_says_where(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _ends(ZeroDivisionError("division by zero")) == 70
    [saved] = state.glob("bug-*.txt")
    assert capsys.readouterr().err == (
        "ktrial: error: this is a bug in ktrial, not in your study: ZeroDivisionError: division by zero\n"
        f"hint: please report it, with the traceback in {saved}\n"
    )
    text = saved.read_text()
    assert "Traceback (most recent call last)" in text
    assert text.startswith("ktrial 0.")


def test_a_bug_is_saved_elsewhere_where_the_state_directory_cannot_be_made(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state.parent.write_text("a file where a directory should be")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert _ends(ZeroDivisionError()) == 70
    assert [str(saved) in capsys.readouterr().err for saved in tmp_path.glob("bug-*.txt")] == [True]


def test_the_traceback_is_shown_to_who_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KTRIAL_TRACEBACK", "1")
    assert _ends(StudyError("x.toml: bad")) == 2
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_an_errno_of_ktrials_own_files_is_not_taken_for_standard_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _ends(OSError(errno.ENOSPC, "No space left on device", "/some/file")) == 70
    assert "this is a bug in ktrial" in capsys.readouterr().err


def test_sigterm_ends_like_ctrl_c_with_its_own_exit_code() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ErrorHandling() as ending:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    assert ending.code == 143
    assert signal.getsignal(signal.SIGTERM) is before
