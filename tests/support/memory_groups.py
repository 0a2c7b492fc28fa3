"""A control group with little memory, for programs that tests start, where this system lets one be made."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_LIMITS = {"cgroup2": ("memory.max", "memory.swap.max"), "cgroup": ("memory.limit_in_bytes", "")}
"""File of the limit, and of the one on swap, which takes what memory does not."""


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[Path]:
    """The file that takes the number of a process which is to be in it. Skips where none can be made."""
    kind, parent = _parent()
    group = parent / f"ktrial-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made in {parent}: {error.strerror}")
    try:
        memory, swap = _LIMITS[kind]
        if not (group / memory).exists():
            pytest.skip(f"the memory controller is not handed on in {parent}")
        (group / memory).write_text(str(limit_bytes))
        if swap and (group / swap).exists():
            (group / swap).write_text("0")
        yield group / "cgroup.procs"
    finally:
        with suppress(OSError):
            group.rmdir()


def _parent() -> tuple[str, Path]:
    """Where a group with limits may lie: in v1 below this process's own; in v2 beside it, as processes lie in
    leaves only.
    """
    own = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, kind_and_options = line.partition(" - ")
        root, place = mount.split()[3:5]
        kind, _, options = kind_and_options.split()[:3]
        if kind == "cgroup" and "memory" in options.split(",") and "memory" in own:
            return kind, Path(place) / os.path.relpath(own["memory"], root)
        if kind == "cgroup2" and "memory" not in own:
            within = Path(place) / os.path.relpath(own[""], root)
            return kind, within if within == Path(place) else within.parent
    pytest.skip("no control groups with limits on memory")
