"""A build's control group: what all of its processes take together has limits, where this system gives one.

A limit of each process leaves a build as many times as much as it has processes. The group's is most of this
system's memory, so that what a build takes beyond that ends the build, and nobody else's programs. It counts
the processor time of all of them, too: the parent of a sandbox is not told it. In version 2 of control groups
processes lie in leaves: a group is made beside this process's own, or by root at the top.
"""

import itertools
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ktrial.text_lines import lines_of

MOST_PROCESSES = 8192
LEFT_TO_OTHERS = 0.1
"""Of this system's memory."""
_NUMBERS = itertools.count()
_ENDS_WITHIN = 5.0
"""Seconds that what was killed may take to be gone."""
_ENTER = 'for group in $1; do { echo $$ > "$group/cgroup.procs"; } 2>/dev/null; done; shift; exec "$@"'
"""Where the system does not let a process move, the limits of each process are all there is."""


@dataclass(frozen=True)
class ControlGroup:
    """Directories that stand for one group: one in version 2, one for each controller in version 1."""

    directories: tuple[Path, ...] = ()
    """Empty: this system gives none."""

    def command(self, words: list[str]) -> list[str]:
        """The command that runs these words in the group."""
        if not self.directories:
            return words
        return ["sh", "-c", _ENTER, "sh", " ".join(map(str, self.directories)), *words]

    @property
    def cpu_seconds(self) -> float | None:
        """Processor time, user's and system's, of all that ran in it; None where this system counts none.

        Of version 2 `usage_usec` in cpu.stat, of version 1 the nanoseconds of cpuacct.usage
        (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/cpuacct.rst).
        """
        for directory in self.directories:
            if match := re.search(r"^usage_usec (\d+)$", _read(directory / "cpu.stat"), re.MULTILINE):
                return int(match[1]) / 1e6
            if nanoseconds := _read(directory / "cpuacct.usage"):
                return int(nanoseconds) / 1e9
        return None

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether a process of it was killed because the group had taken all that it may."""
        return any(
            int(match[1]) > 0
            for directory in self.directories
            for name in ("memory.events", "memory.oom_control")
            if (match := re.search(r"^oom_kill (\d+)$", _read(directory / name), re.MULTILINE))
        )


@dataclass
class Spent:
    """Processor time that several commands took, each in a group of its own."""

    seconds: float | None = 0.0
    """None: not all of them were counted."""

    def add(self, seconds: float | None) -> None:
        """Of one more command."""
        self.seconds = None if seconds is None or self.seconds is None else self.seconds + seconds


def most_memory() -> int:
    """Bytes that a group may take."""
    match = re.search(r"^MemTotal: +(\d+) kB$", _read(Path("/proc/meminfo")), re.MULTILINE)
    return int((1 - LEFT_TO_OTHERS) * (int(match[1]) << 10)) if match else 1 << 62


@contextmanager
def control_group() -> Iterator[ControlGroup]:
    """A new group with limits, until the end of the block: then nothing of it is left."""
    directories: list[Path] = []
    name = f"ktrial-build-{os.getpid()}-{next(_NUMBERS)}"
    for place in _places():
        with suppress(OSError):
            (place.parent / name).mkdir()
            directories.append(place.parent / name)
            for file, limit in place.limits.items():
                with suppress(OSError):  # a system without swap, say
                    (place.parent / name / file).write_text(str(limit))
    try:
        yield ControlGroup(tuple(directories))
    finally:
        for directory in directories:
            _remove(directory)


@dataclass(frozen=True)
class _Hierarchy:
    parent: Path
    limits: dict[str, int]


def _places() -> Iterator[_Hierarchy]:
    """Where a group may be made, with what is to be written there."""
    memory, processes = most_memory(), MOST_PROCESSES
    lines = [line.split(":", 2)[1:] for line in lines_of(_read(Path("/proc/self/cgroup")))]
    own = {controller: path for controllers, path in lines for controller in controllers.split(",")}
    for line in lines_of(_read(Path("/proc/self/mountinfo"))):
        mount, _, kind_and_options = line.partition(" - ")
        root, at = mount.split()[3:5]
        kind, _, options = kind_and_options.split()[:3]
        for controller, limits in (
            ("memory", {"memory.limit_in_bytes": memory}),
            ("pids", {"pids.max": processes}),
            ("cpuacct", {}),
        ):
            if kind == "cgroup" and controller in options.split(",") and controller in own:
                yield _Hierarchy(Path(at) / os.path.relpath(own[controller], root), limits)
        if kind == "cgroup2":
            group = Path(at) / os.path.relpath(own.get("", "/"), root)
            for parent in dict.fromkeys((group.parent if group != Path(at) else group, Path(at))):
                given = _read(parent / "cgroup.subtree_control").split()
                if {"memory", "pids"} <= set(given) and os.access(parent, os.W_OK):
                    yield _Hierarchy(
                        parent, {"memory.max": memory, "memory.swap.max": 0, "pids.max": processes}
                    )
                    break


def _remove(directory: Path) -> None:
    """Kill what is left in it, and take it away; one that does not go within seconds stays, empty."""
    with suppress(OSError):
        (directory / "cgroup.kill").write_text("1")
    until = time.monotonic() + _ENDS_WITHIN
    while directory.exists() and time.monotonic() < until:
        with suppress(OSError):
            directory.rmdir()
            return
        time.sleep(0.01)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
