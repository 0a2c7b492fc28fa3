"""Hints name the packages of the distribution that is there."""

from itertools import takewhile
from pathlib import Path

import pytest

from ktrial import package_names
from ktrial.experiment import doctor
from ktrial.kernels.errors import NoDebianSource, ToolMissing
from ktrial.machines.errors import MachineToolMissing
from ktrial.package_names import INSTALL, on_this_system

FEDORA = 'NAME="Fedora Linux"\nID=fedora\nVERSION_ID=42\n'
ROCKY = 'NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\n'
ARCH = "NAME='Arch Linux'\nID=arch\n"
MANJARO = "ID=manjaro\nID_LIKE=arch\n"
TUMBLEWEED = 'NAME="openSUSE Tumbleweed"\nID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n'
UBUNTU = "ID=ubuntu\nID_LIKE=debian\n"
QEMU = f"install it: {INSTALL} qemu-system-x86"


def a_system(directory: Path, text: str) -> Path:
    file = directory / "os-release"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (FEDORA, "install it: sudo dnf install --setopt=install_weak_deps=False qemu-system-x86-core"),
        (ROCKY, "install it: sudo dnf install --setopt=install_weak_deps=False qemu-system-x86-core"),
        (ARCH, "install it: sudo pacman -S qemu-system-x86"),
        (MANJARO, "install it: sudo pacman -S qemu-system-x86"),
        (TUMBLEWEED, "install it: sudo zypper install --no-recommends qemu-x86"),
        (UBUNTU, QEMU),
        ("ID=nixos\n", QEMU),
        ("", QEMU),
    ],
)
def test_a_package_has_its_own_name_everywhere(text: str, hint: str, tmp_path: Path) -> None:
    assert on_this_system(QEMU, a_system(tmp_path, text)) == hint


def test_a_line_of_several_packages_leaves_out_what_only_fetches_debian_s_kernels(tmp_path: Path) -> None:
    line = on_this_system(f"{INSTALL} apt kmod libelf-dev; or --trust", a_system(tmp_path, ARCH))
    assert line == (
        "sudo pacman -S kmod libelf; and give kernels as files (path:FILE, rpm:DIRECTORY), or measure this "
        "system: --machine host; or --trust"
    )


def test_without_the_file_hints_are_debian_s(tmp_path: Path) -> None:
    assert on_this_system(QEMU, tmp_path / "none") == QEMU


def test_errors_and_doctor_say_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_names, "OS_RELEASE", a_system(tmp_path, FEDORA))
    missing = MachineToolMissing(machine="exact", program="setpriv", where="in PATH", package="util-linux")
    assert missing.advice == "install it: sudo dnf install --setopt=install_weak_deps=False util-linux"
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ktrial.experiment.doctor.shutil.which", lambda *_, **__: None)
    programs = takewhile(lambda first: first.name != "mke2fs", doctor.examine(lambda _: None))
    remedies = {first.name: first.remedy for first in programs}
    assert remedies["cpio"] == "sudo dnf install --setopt=install_weak_deps=False cpio"
    assert remedies["depmod"] == "sudo dnf install --setopt=install_weak_deps=False kmod"
    assert "path:FILE, rpm:DIRECTORY" in remedies["apt-get"]


def test_where_there_is_no_apt_kernels_are_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_names, "OS_RELEASE", a_system(tmp_path, TUMBLEWEED))
    for error in (
        NoDebianSource(name="debian:6.1"),
        ToolMissing(tool="apt-get", purpose="fetch distribution kernels", package="apt"),
    ):
        assert error.advice.startswith("give kernels as files (path:FILE, rpm:DIRECTORY)")
        assert "apt" not in error.advice
