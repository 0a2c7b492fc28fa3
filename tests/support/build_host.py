"""A host that has every program and header that builds and guests ask for, whatever is installed here."""

import os
from pathlib import Path

import pytest

PROGRAMS = (
    *("make", "flex", "bison", "bc", "perl", "gcc", "ld", "objcopy", "patch", "git", "depmod"),
    *("apt-get", "dpkg-deb", "tar", "xz", "qemu-system-x86_64", "cpio", "setpriv", "strace"),
)
HEADERS = ("libelf.h",)


def has_what_builds_need(patch: pytest.MonkeyPatch, directory: Path) -> None:
    """Programs that do nothing come after those of this host; the headers are empty."""
    programs, headers = directory / "programs", directory / "headers"
    for each in (programs, headers):
        each.mkdir(parents=True)
    for name in PROGRAMS:
        (programs / name).symlink_to("/bin/true")
    for name in HEADERS:
        (headers / name).touch()
    patch.setenv("PATH", os.pathsep.join((os.environ.get("PATH", os.defpath), str(programs))))
    patch.setenv("C_INCLUDE_PATH", str(headers))
