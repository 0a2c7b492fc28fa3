"""`ktrial doctor`: what is there, what is missing, and the command that brings it."""

import json
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.fake_builds import has_room

from ktrial.experiment.doctor import State, SystemCheck, examine
from ktrial.kernels import kernel_registry
from ktrial.kernels.errors import FetchFailed, NoDebianSource, NoSuchRelease
from ktrial.machines import kvm
from ktrial.model.kernel import Kernel
from ktrial.package_names import INSTALL

NEW_QEMU = "QEMU emulator version 7.2.22 (Debian)"
QEMU = "#!/bin/sh\ncase $1 in --version) echo '{version}';; -nodefaults) {plugin};; esac\n"
VERSIONS = NoSuchRelease(distribution="Debian", name="", problem="", available="versions there: 5.10, 6.1")
NO_ROUTE = FetchFailed(name="debian:0", distribution="Debian", problem="no route to host")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH of its own: what a test puts there is all that is installed, besides /usr/sbin and /sbin."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "store" / "ktrial.db"))
    monkeypatch.delenv("KTRIAL_QEMU", raising=False)
    monkeypatch.setattr(kvm, "probe_kvm", lambda: kvm.KvmProbe(False, "there is no /dev/kvm"))
    _mirrors(
        monkeypatch,
        NoSuchRelease(distribution="Debian", name="", problem="", available="versions there: 6.1"),
    )
    return directory


def _mirrors(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def add(_name: str) -> Kernel:
        raise error

    monkeypatch.setattr(kernel_registry, "add", add)


def _install(directory: Path, name: str, text: str = "#!/bin/sh\n") -> None:
    (directory / name).write_text(text)
    (directory / name).chmod(0o755)


def _install_qemu(directory: Path, version: str = NEW_QEMU, plugin: str = "true") -> None:
    _install(directory, "qemu-system-x86_64", QEMU.format(version=version, plugin=plugin))


def _checks() -> dict[str, SystemCheck]:
    return {check.name: check for check in examine(lambda _what: None)}


@pytest.mark.parametrize(
    ("name", "state", "remedy"),
    [
        ("QEMU", State.MISSING, f"{INSTALL} qemu-system-x86"),
        ("cpio", State.MISSING, f"{INSTALL} cpio"),
        ("setpriv", State.MISSING, f"{INSTALL} util-linux"),
        ("apt-get", State.LIMITED, f"{INSTALL} apt"),
        ("dpkg-deb", State.LIMITED, f"{INSTALL} dpkg"),
        ("strace", State.LIMITED, f"{INSTALL} strace"),
    ],
)
def test_a_missing_program_is_named_with_the_command_that_brings_it(
    programs: Path, name: str, state: State, remedy: str
) -> None:
    check = _checks()[name]
    assert check.state is state
    assert remedy in check.remedy
    _install_qemu(programs)
    for program in ("cpio", "setpriv", "apt-get", "dpkg-deb", "mke2fs", "strace"):
        _install(programs, program)
    assert _checks()[name].state is State.FINE


def test_all_that_building_kernels_lacks_is_told_in_one_line(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(programs, "gcc", "#!/bin/sh\nexit 1\n")
    monkeypatch.setattr("ktrial.system_tools.SBIN", ())
    check = _checks()["kernel builds"]
    assert check.state is State.LIMITED
    assert check.remedy == f"{INSTALL} binutils make flex bison bc perl libelf-dev patch bubblewrap"


def test_a_qemu_that_is_too_old_is_told(programs: Path) -> None:
    _install_qemu(programs, "QEMU emulator version 4.2.1 (Debian)")
    check = _checks()["QEMU"]
    assert check.state is State.MISSING
    assert "4.2.1" in check.found


@pytest.mark.parametrize(("plugin", "state"), [("echo no >&2; exit 1", State.LIMITED), ("true", State.FINE)])
def test_whether_qemu_loads_plugins_is_told(programs: Path, plugin: str, state: State) -> None:
    _install_qemu(programs, plugin=plugin)
    assert _checks()["QEMU plugin"].state is state


@pytest.mark.parametrize(
    ("version", "state", "remedy"),
    [
        ("7.2.22 (Debian)", State.FINE, ""),
        ("10.0.13 (Debian)", State.FINE, ""),
        ("9.2.1 (Debian)", State.LIMITED, "bookworm-backports"),
    ],
)
def test_whether_several_cpus_work_with_this_qemu_is_told(
    programs: Path, version: str, state: State, remedy: str
) -> None:
    _install_qemu(programs, f"QEMU emulator version {version}")
    check = _checks()["several CPUs"]
    assert check.state is state
    assert remedy in check.remedy


@pytest.mark.parametrize(
    ("error", "state", "told"),
    [
        (VERSIONS, State.FINE, "versions there: 5.10, 6.1"),
        (NoDebianSource(name="debian:0"), State.LIMITED, "apt knows no Debian archive"),
        (NO_ROUTE, State.LIMITED, "no route to host"),
    ],
)
def test_what_the_mirrors_have_is_told(
    programs: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, state: State, told: str
) -> None:
    _mirrors(monkeypatch, error)
    check = _checks()["Debian kernels"]
    assert check.state is state
    assert told in check.found


def test_kvm_that_cannot_be_used_is_told_with_its_reason(programs: Path) -> None:
    check = _checks()["KVM"]
    assert check.state is State.LIMITED
    assert check.found == "not usable: there is no /dev/kvm"
    assert check.remedy.startswith("exact mode needs none")


def test_a_full_disk_and_little_memory_are_told(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    has_room(monkeypatch, 1 << 20)
    monkeypatch.setattr(Path, "read_text", lambda _path, **_: "MemTotal: 1 kB\nMemAvailable: 1024 kB\n")
    checks = _checks()
    for name in ("cache directory", "store directory", "memory"):
        assert checks[name].state is State.LIMITED
        assert checks[name].remedy


def test_a_directory_that_cannot_be_written_is_told(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file")
    check = _checks()["cache directory"]
    assert check.state is State.MISSING
    assert check.remedy == "set KTRIAL_CACHE"


def test_the_exit_code_says_whether_exact_mode_can_run(
    programs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = CommandLine(monkeypatch, capsys)
    result = cli("doctor")
    assert result.status == 1
    assert "exact mode cannot run here" in result.output
    assert f"→ install it: {INSTALL} qemu-system-x86" in " ".join(result.output.split())
    assert result.messages == ""
    as_json = json.loads(cli("doctor", "--json").output)
    assert as_json["usable"] is False
    assert {check["state"] for check in as_json["checks"]} <= {"fine", "limited", "missing"}


def test_all_is_well_where_all_is_there(
    programs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _install_qemu(programs)
    for program in ("cpio", "setpriv", "apt-get", "dpkg-deb", "depmod", "mke2fs", "strace"):
        _install(programs, program)
    guest = tmp_path / "guest"
    guest.mkdir()
    for name in ("agent", "work"):
        _install(guest, name)
    monkeypatch.setattr("ktrial.machines.guest_programs.directory", lambda: guest)
    result = CommandLine(monkeypatch, capsys)("doctor")
    lines = [line.strip() for line in result.output.splitlines()]
    assert "exact mode can run here" in lines
    assert any("clock source" in line for line in lines[lines.index("exact mode can run here") :])
    assert result.status == 0
