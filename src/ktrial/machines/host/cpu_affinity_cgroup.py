"""CPUs and control groups (Documentation/admin-guide/cgroup-v2.rst) for the programs of a trial."""

import contextlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ktrial.machines.errors import BadPin, CgroupUnusable, HostChangeForbidden
from ktrial.model.machine import CgroupLimits

_PERIOD_US = 100_000
"""The kernel's own default for cpu.max."""
_PREFIX = "ktrial-"
MOUNTS = Path("/proc/self/mountinfo")
"""What this process sees mounted, cgroup v2's tree among it."""
OWN_GROUPS = Path("/proc/self/cgroup")
"""The control groups that this process is in."""


def check_pin(pin: tuple[int, ...], machine: str) -> None:
    """Raise BadPin where a CPU is not among those that this process may use."""
    allowed = os.sched_getaffinity(0)
    wrong = [cpu for cpu in pin if cpu not in allowed]
    if wrong:
        raise BadPin(machine=machine, cpu=wrong[0], allowed=cpu_list(allowed))


def cpu_list(cpus: set[int]) -> str:
    """As the kernel writes it: `0-3,8`."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


@contextmanager
def control_group(limits: CgroupLimits, machine: str, *, allowed: bool) -> Iterator[str]:
    """A new control group with these limits, removed at the end; its directory.

    Only limits of the new group are set: controllers that the system has not handed on to its children are
    asked for, not switched on. Raises HostChangeForbidden, CgroupUnusable.
    """
    if not allowed:
        raise HostChangeForbidden(machine=machine, what="make a control group")
    wanted = _settings(limits)
    parent = _parent({file.partition(".")[0] for file, _ in wanted}, machine)
    _sweep(parent)
    group = parent / f"{_PREFIX}{os.getpid()}-{os.urandom(3).hex()}"
    try:
        group.mkdir()
    except OSError as error:
        raise CgroupUnusable(
            machine=machine, problem=f"{group} cannot be made: {error.strerror}", hint=_DELEGATE
        ) from None
    try:
        for file, value in wanted:
            _limit(group / file, value, machine)
        yield str(group)
    finally:
        # A process that takes its time to die keeps it: the next trial sweeps it away.
        with contextlib.suppress(OSError):
            group.rmdir()


_DELEGATE = "as root, or in a scope of your own: systemd-run --user --scope -p Delegate=yes ktrial …"


def _settings(limits: CgroupLimits) -> list[tuple[str, str]]:
    settings = []
    if limits.cpus is not None:
        settings.append(("cpu.max", f"{round(limits.cpus * _PERIOD_US)} {_PERIOD_US}"))
    if limits.memory_mib is not None:
        settings.append(("memory.max", str(limits.memory_mib << 20)))
    return settings + [("io.max", line) for line in limits.io]


def _limit(file: Path, value: str, machine: str) -> None:
    try:
        file.write_text(value)
    except OSError as error:
        problem = f"{file.name} = {value} was refused: {error.strerror}"
        raise CgroupUnusable(machine=machine, problem=problem, hint=_DELEGATE) from None


def _parent(controllers: set[str], machine: str) -> Path:
    """The nearest group above this process's own that hands the controllers on to its children.

    Not its own: a group with processes in it cannot (the rule of no internal processes), but for the root.
    """
    root, own = _root(machine), _own_group()
    chain = [root / own, *(root / own).parents]
    above = [each for each in chain if each.is_relative_to(root)][0 if own == Path() else 1 :]
    for group in above:
        if controllers <= _handed_on(group) and os.access(group, os.W_OK):
            return group
    has = _words(root / "cgroup.controllers")
    absent = sorted(controllers - has)
    if absent:
        problem = f"{root} has no controller {', '.join(absent)}; cgroup v1 may have it"
        hint = "boot with systemd.unified_cgroup_hierarchy=1 (cgroup_no_v1=all)"
    else:
        problem = f"no group that ktrial may write to hands on {', '.join(sorted(controllers)) or 'anything'}"
        switch = " ".join(f"+{each}" for each in sorted(controllers))
        hint = f'as root: echo "{switch}" > {root}/cgroup.subtree_control; or {_DELEGATE}'
        hint = hint if controllers else _DELEGATE
    raise CgroupUnusable(machine=machine, problem=problem, hint=hint)


def _root(machine: str) -> Path:
    for line in MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            return Path(re.sub(r"\\040", " ", before.split()[4]))
    hint = "mount -t cgroup2 none /sys/fs/cgroup"
    raise CgroupUnusable(machine=machine, problem="cgroup v2 is not mounted", hint=hint)


def _own_group() -> Path:
    for line in OWN_GROUPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        if line.startswith("0::"):
            return Path(line[3:].lstrip("/"))
    return Path()


def _handed_on(group: Path) -> set[str]:
    return _words(group / "cgroup.subtree_control")


def _words(file: Path) -> set[str]:
    try:
        return set(file.read_text().split())
    except OSError:
        return set()


def _sweep(parent: Path) -> None:
    """Remove the empty groups of ktrials that were killed."""
    for left in parent.glob(f"{_PREFIX}*"):
        process = left.name.removeprefix(_PREFIX).partition("-")[0]
        if process.isdecimal() and not Path("/proc", process).exists():
            with contextlib.suppress(OSError):  # somebody may have put a process there, or was faster
                left.rmdir()
