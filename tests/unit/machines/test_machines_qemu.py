"""Finding QEMU: each way in which it is not there, or not the one that is needed."""

from pathlib import Path

import pytest

from ktrial.machines.errors import HostProblem, MachineToolMissing, QemuUnusable
from ktrial.machines.qemu import program as qemu
from ktrial.package_names import INSTALL


def program(directory: Path, *lines: str) -> str:
    path = directory / "qemu-system-x86_64"
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return str(path)


def answers(version: str) -> tuple[str, ...]:
    return (f'case "$1" in --version) echo "{version}";; -L) echo /nowhere;; esac',)


def test_a_version_is_read_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)"
    monkeypatch.setenv(qemu.VARIABLE, program(tmp_path, *answers(text)))
    installed = qemu.find()
    assert installed.version == (7, 2, 22)
    assert installed.build == f"7.2.22 (Debian 1:7.2+dfsg-7) sha256:{installed.digest}"


def test_another_build_of_the_same_version_is_another_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        path = program(tmp_path / name, *answers("QEMU emulator version 8.2.0"), f"# {name}")
        monkeypatch.setenv(qemu.VARIABLE, path)
        builds.append(qemu.find().build)
    assert builds[0] != builds[1]


def test_the_first_in_path_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path, *answers("QEMU emulator version 8.2.0"))
    monkeypatch.delenv(qemu.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert str(qemu.find().program) == path


def test_missing_qemu_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(qemu.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineToolMissing, match="qemu-system-x86_64, which is not in PATH") as caught:
        qemu.find()
    assert caught.value.advice == f"install it: {INSTALL} qemu-system-x86"


def test_a_named_program_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(qemu.VARIABLE, "/no/such/qemu")
    with pytest.raises(
        MachineToolMissing, match="KTRIAL_QEMU names /no/such/qemu, which is not a program"
    ) as caught:
        qemu.find()
    assert caught.value.advice == "let KTRIAL_QEMU name QEMU, or unset it: the one in PATH is then taken"


def test_too_old_a_qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(qemu.VARIABLE, program(tmp_path, *answers("QEMU emulator version 5.2.0")))
    with pytest.raises(HostProblem, match=r"needs QEMU 6\.2 or later; .* is 5\.2\.0"):
        qemu.find()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("echo hello",), "is not QEMU: it says 'hello'"),
        (("echo 'no libfoo.so' >&2; exit 127",), "fails with status 127: no libfoo.so"),
        (("exit 3",), "fails with status 3: it says nothing"),
    ],
)
def test_a_program_that_is_of_no_use(
    lines: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(qemu.VARIABLE, program(tmp_path, *lines))
    with pytest.raises(QemuUnusable) as caught:
        qemu.find()
    assert message in caught.value.message
