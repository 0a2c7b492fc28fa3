"""What other distributions call Debian's packages, and how they install them. Hints are written for Debian.

Names of Fedora 42, Arch and openSUSE Tumbleweed. What the table lacks has the same name on all four.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ktrial.text_lines import lines_of

OS_RELEASE = Path("/etc/os-release")
"""https://www.freedesktop.org/software/systemd/man/latest/os-release.html."""
INSTALL = "sudo apt-get update && sudo apt-get install --no-install-recommends"
"""What hints say before packages: what QEMU recommends would be six times as large as all that is needed."""
_APT = re.compile(
    r"(?:sudo apt-get update && )?sudo apt-get install(?: --reinstall| --no-install-recommends)*"
    r"((?: [a-z0-9][a-z0-9+.-]*)+)"
)
_COMMANDS = {
    "fedora": "sudo dnf install --setopt=install_weak_deps=False",
    "arch": "sudo pacman -S",  # it installs nothing that is only recommended
    "suse": "sudo zypper install --no-recommends",
}
_FAMILIES = {
    "debian": "debian", "ubuntu": "debian", "fedora": "fedora", "rhel": "fedora", "centos": "fedora",
    "arch": "arch", "suse": "suse", "opensuse": "suse",
}  # fmt: skip
_NAMES = {
    "qemu-system-x86": ("qemu-system-x86-core", "qemu-system-x86", "qemu-x86"),
    "xz-utils": ("xz", "xz", "xz"),
    "btrfs-progs": ("btrfs-progs", "btrfs-progs", "btrfsprogs"),
    "linux-perf": ("perf", "perf", "perf"),
    "dwarves": ("dwarves", "pahole", "dwarves"),
    "openssh-client": ("openssh-clients", "openssh", "openssh-clients"),
    "libarchive-tools": ("bsdtar", "libarchive", "bsdtar"),
    "libelf-dev": ("elfutils-libelf-devel", "libelf", "libelf-devel"),
    "libssl-dev": ("openssl-devel", "openssl", "libopenssl-devel"),
    "libc6-dev": ("glibc-devel", "glibc", "glibc-devel"),
    "libdw-dev": ("elfutils-devel", "libelf", "libdw-devel"),
    "zlib1g-dev": ("zlib-devel", "zlib", "zlib-devel"),
    "libgmp-dev": ("gmp-devel", "gmp", "gmp-devel"),
    "libxxhash-dev": ("xxhash-devel", "xxhash", "xxhash-devel"),
    "python3": ("python3", "python", "python3"),
    "rustc": ("rust", "rust", "rust"),
    "nginx-light": ("nginx", "nginx", "nginx"),
    "postgresql": ("postgresql-server", "postgresql", "postgresql-server"),
    "rt-tests": ("realtime-tests", "rt-tests", "rt-tests"),
}
"""Debian's name → Fedora's, Arch's and openSUSE's."""
_KERNELS = "give kernels as files (path:FILE, rpm:DIRECTORY), or measure this system: --machine host"
_OF_DEBIAN = {"apt", "dpkg", "debian-archive-keyring"}
"""What only fetches Debian's kernels."""


def on_this_system(advice: str, os_release: Path | None = None) -> str:
    """The advice with each command that installs packages as this system's distribution has it."""
    family = _family(os_release or OS_RELEASE)
    if family not in _COMMANDS:
        return advice
    if any(set(install[1].split()) <= _OF_DEBIAN for install in _APT.finditer(advice)):
        return _KERNELS
    return _APT.sub(lambda install: _command(install[1].split(), family), advice)


def _command(packages: list[str], family: str) -> str:
    place = list(_COMMANDS).index(family)
    needed = [name for name in packages if name not in _OF_DEBIAN]
    named = dict.fromkeys(_NAMES.get(name, (name,) * len(_COMMANDS))[place] for name in needed)
    also = "" if len(needed) == len(packages) else f"; and {_KERNELS}"
    return f"{_COMMANDS[family]} {' '.join(named)}{also}"


@cache
def _family(os_release: Path) -> str:
    """`debian`, `fedora`, `arch` or `suse`; empty where it is another or not told."""
    facts = _read(os_release)
    words = f"{facts.get('ID', '')} {facts.get('ID_LIKE', '')}".split()
    return next((_FAMILIES[part] for word in words for part in word.split("-") if part in _FAMILIES), "")


def _read(os_release: Path) -> Mapping[str, str]:
    try:
        text = os_release.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines_of(text))
    return {key.strip(): value.strip().strip("\"'") for key, mark, value in pairs if mark}
