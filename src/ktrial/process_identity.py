"""What tells a process from every other one, after it has ended and its number was given away, too."""

import getpass
import os
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_STARTTIME = 19
"""Field `starttime` of /proc/PID/stat (proc_pid_stat(5)), counted from the state, behind the name."""


def born(process: int) -> str:
    """The host's boot, and when in it the process began; empty where /proc has no such process."""
    try:
        boot = _BOOT_ID.read_text(encoding="ascii").strip()
        words = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return f"{boot} {words.rpartition(')')[2].split()[_STARTTIME]}"


def same_boot(first: str, second: str) -> bool:
    """Whether two processes (`born`) ran since the same start of the same host."""
    return bool(first and second) and first.split()[0] == second.split()[0]


def user() -> str:
    """The name of whose processes these are, or the number where it has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
