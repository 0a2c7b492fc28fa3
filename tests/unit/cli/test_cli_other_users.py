"""Other users of the same system: what ktrial writes is not theirs to change, nor where it goes."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.command_line import STUDY, CommandLine
from tests.support.scripted import ScriptedMachine

from ktrial.cli.error_handling import save_bug_report


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_with_no_umask_at_all_nothing_is_everybody_s_to_write(
    umask: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "share" / "ktrial.db"))
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    study = tmp_path / "upgrade.toml"
    study.write_text(STUDY)
    cli = CommandLine(monkeypatch, capsys)
    cli.machine(ScriptedMachine())
    assert cli("run", study).status == 0
    assert cli("report", "upgrade", "--html", tmp_path / "pages" / "upgrade.html").status == 0
    written = [path for path in tmp_path.rglob("*") if path != study and not path.is_symlink()]
    assert len(written) > 4
    assert not [path for path in written if path.stat().st_mode & stat.S_IWOTH]


def test_a_bug_s_report_is_not_written_through_somebody_s_link(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The name of the report can be guessed: it is of the second and the process."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    state, everybody_s = tmp_path / "state", tmp_path / "tmp"
    everybody_s.mkdir()
    state.write_text("no directory")
    monkeypatch.setattr("platformdirs.user_state_dir", lambda _name: str(state))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(everybody_s))
    _, first = save_bug_report(ValueError("once"))
    assert first is not None
    first.unlink()
    monkeypatch.setattr("ktrial.cli.error_handling.datetime", At(first.name))
    (everybody_s / first.name).symlink_to(precious)
    _, second = save_bug_report(ValueError("twice"))
    assert second is None
    assert precious.read_text() == "mine"


class At:
    """A clock that stands, at the time in a report's name."""

    def __init__(self, name: str) -> None:
        self._time = name.removeprefix("bug-").rpartition("-")[0]

    def now(self, _zone: object) -> "At":
        return self

    def __format__(self, _how: str) -> str:
        return self._time
