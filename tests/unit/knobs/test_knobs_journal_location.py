"""Where the journal of knobs is, and what the unit says that restores them when the system starts."""

import os
from pathlib import Path

import pytest
from tests.support.knob_tree import Tree, made

from ktrial.knobs.journal_location import (
    VARIABLE,
    install,
    is_anything_to_undo,
    journal_directory,
    text,
)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return made(tmp_path)


@pytest.mark.parametrize(
    ("named", "state", "root", "directory"),
    [
        ("/elsewhere", "", True, "/elsewhere"),
        ("~/mine", "", True, "/home/me/mine"),
        ("below", "", True, "HERE/below"),
        ("", "/state", True, "/var/lib/ktrial/journal"),
        ("", "/state", False, "/state/ktrial/journal"),
        ("", "", False, "/home/me/.local/state/ktrial/journal"),
        ("", "not/absolute", False, "/home/me/.local/state/ktrial/journal"),
    ],
)
def test_where_the_journal_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, named: str, state: str, root: bool, directory: str
) -> None:
    monkeypatch.setenv(VARIABLE, named)
    monkeypatch.setenv("XDG_STATE_HOME", state)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    monkeypatch.chdir(tmp_path)
    assert journal_directory() == Path(directory.replace("HERE", str(tmp_path)))


def test_without_variables_the_journal_is_where_the_system_has_such_things(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert journal_directory() == Path("/home/me/.local/state/ktrial/journal")


def test_there_is_something_to_undo_while_the_directory_of_entries_is_there(
    monkeypatch: pytest.MonkeyPatch, tree: Tree
) -> None:
    monkeypatch.setenv(VARIABLE, str(tree.root / "journal"))
    assert not is_anything_to_undo()
    tree.leave(("swappiness", "10"))
    assert is_anything_to_undo()
    tree.restore()
    assert not is_anything_to_undo()


def test_the_unit_names_the_journal_and_the_program_as_systemd_reads_them() -> None:
    lines = text(Path('/opt/a "b"/100%/$x/back\\slash'), Path("/var/my journal/50%")).splitlines()
    enable = "Enable it: systemctl enable ktrial-restore.service"
    assert lines[0] == f"# Written by `ktrial host restore --install-unit`. {enable}"
    assert "ConditionPathExists=/var/my\\x20journal/50%%/changes" in lines
    assert "RequiresMountsFor=/var/my\\x20journal/50%%" in lines
    assert 'Environment="KTRIAL_JOURNAL=/var/my journal/50%%"' in lines
    assert 'ExecStart="/opt/a \\"b\\"/100%%/$$x/back\\\\slash" host restore' in lines


def test_a_path_with_a_backslash_is_written_twice() -> None:
    assert "RequiresMountsFor=/a\\\\b" in text(Path("/ktrial"), Path("/a\\b")).splitlines()


def test_the_unit_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "x.service"
    assert install(Path("/ktrial"), Path("/journal"), path) == path
    assert path.read_text() == text(Path("/ktrial"), Path("/journal"))
