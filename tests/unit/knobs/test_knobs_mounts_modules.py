"""Mounts and modules in the journal of knobs: how they are seen, known again, and taken away."""

import os
from pathlib import Path

import pytest

from ktrial.knobs import journal
from ktrial.knobs.journal import Kind, path_of


def test_a_module_and_a_mount_are_seen_where_the_kernel_has_them(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert path_of(Kind.MODULE, "null-blk-x") == "/sys/module/null_blk_x"
    assert path_of(Kind.MOUNT, str(tmp_path / "link")) == str(tmp_path.resolve())


def test_what_is_mounted_is_known_by_its_number_its_type_and_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 0:20 / /a rw shared:1 master:2 - tmpfs first rw\n"
        "23 1 0:21 / /a\\040b rw - ext4 /dev/vda rw\n"
        "24 22 0:22 / /a rw - tmpfs second rw,size=1k\n"
    )
    monkeypatch.setattr(journal, "MOUNTS", mounts)
    assert journal.state(Kind.MOUNT, "/a") == "24 tmpfs second"
    assert journal.state(Kind.MOUNT, "/a b") == "23 ext4 /dev/vda"
    assert journal.state(Kind.MOUNT, "/b") == ""


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("exit 0", ""),
        ("exit 3", "status 3"),
        ("echo in use >&2; exit 1", "in use"),
        ("echo a warning >&2", ""),
    ],
)
def test_what_cannot_be_taken_away_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, problem: str
) -> None:
    for program in ("umount", "rmmod"):
        (tmp_path / program).write_text(f'#!/bin/sh\necho "$0 $@" > {tmp_path}/asked\n{script}\n')
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert journal.take_away(Kind.MOUNT, "/a b") == problem
    assert (tmp_path / "asked").read_text().split("/")[-2:] == ["umount -- ", "a b\n"]
    assert journal.take_away(Kind.MODULE, "/sys/module/null_blk") == problem
    assert (tmp_path / "asked").read_text().endswith("rmmod null_blk\n")


def test_without_the_program_nothing_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "umount" in journal.take_away(Kind.MOUNT, "/a")
