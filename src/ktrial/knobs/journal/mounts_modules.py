"""What was added to this system, and is taken away again: mounts and modules."""

import re
import subprocess
from enum import StrEnum
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
"""This process's mounts (proc_pid_mountinfo(5))."""
MODULES = Path("/sys/module")
"""The modules that are loaded."""
_PATIENCE = 60.0


class Kind(StrEnum):
    """What a change is."""

    KNOB = "knob"
    """A file that was written."""
    MOUNT = "mount"
    """A file system; its path is the mount point."""
    MODULE = "module"
    """A module; its path is the one below /sys/module."""


def path_of(kind: Kind, name: str) -> str:
    """Where it is seen: of a mount point, without symbolic links; of a module, below /sys/module."""
    if kind is Kind.MODULE:
        return str(MODULES / name.replace("-", "_"))
    return str(Path(name).resolve())


def state(kind: Kind, path: str) -> str:
    """What is there; empty where nothing is.

    Of a mount point: number, file system and source of the topmost mount (proc_pid_mountinfo(5)). Mounts may
    lie upon each other, and the number tells them apart.
    """
    if kind is Kind.MODULE:
        return Path(path).name if Path(path).exists() else ""
    there = ""
    for line in MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        number, *_, point = before.split()[:5]
        if _plain(point) == path:
            there = " ".join((number, *after.split()[:2]))
    return there


def take_away(kind: Kind, path: str) -> str:
    """Unmount or unload it; return what is wrong, empty where nothing is."""
    command = ("rmmod", Path(path).name) if kind is Kind.MODULE else ("umount", "--", path)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stderr.strip() or f"status {done.returncode}") if done.returncode else ""


def _plain(escaped: str) -> str:
    r"""The kernel writes blanks, tabs, line ends and backslashes as \040 and so on."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), escaped)
