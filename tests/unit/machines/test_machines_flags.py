"""Whether the processor's flags are right in a QEMU: what `lockstep.so` says as it is loaded."""

from pathlib import Path

import pytest

from ktrial.machines.exact import flags_problem
from ktrial.machines.qemu.program import Qemu, Version


def a_qemu(program: Path, version: Version) -> Qemu:
    return Qemu(program, version, "", "d", "f")


def saying(directory: Path, *lines: str) -> Path:
    program = directory / "qemu"
    message = "\n".join(f"echo '{line}' >&2" for line in lines)
    program.write_text(f"#!/bin/sh\n{message}\n")
    program.chmod(0o755)
    return program


def test_what_is_said_of_wrong_flags_is_told(tmp_path: Path) -> None:
    program = saying(tmp_path, "something else", "lockstep: the flags are wrong")
    assert flags_problem(a_qemu(program, (7, 2, 22))) == "the flags are wrong"


def test_nothing_is_told_where_nothing_is_said(tmp_path: Path) -> None:
    assert flags_problem(a_qemu(saying(tmp_path, "something else"), (7, 2, 22))) == ""


def test_a_qemu_that_cannot_be_asked_is_not_taken_for_right(tmp_path: Path) -> None:
    assert "cannot be told" in flags_problem(a_qemu(tmp_path / "none", (7, 2, 0)))


@pytest.mark.parametrize("version", [(8, 0, 0), (10, 0, 13)])
def test_later_ones_are_right_and_not_asked(version: Version, tmp_path: Path) -> None:
    assert flags_problem(a_qemu(tmp_path / "none", version)) == ""
