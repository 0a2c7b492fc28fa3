"""Control groups on this system's own cgroup v2, where it has one that may be written to."""

import os
from pathlib import Path

import pytest

from ktrial.machines.errors import CgroupUnusable
from ktrial.machines.host import HostMachine
from ktrial.model.machine import Boot, CgroupLimits
from ktrial.target import Run, StepResult

_MOUNTED = [
    Path(line.split()[4])
    for line in Path("/proc/self/mountinfo").read_text().splitlines()
    if " - cgroup2 " in line
]
pytestmark = pytest.mark.skipif(
    not (_MOUNTED and os.access(_MOUNTED[0] / "cgroup.procs", os.W_OK)),
    reason="no cgroup v2 that this user may write to",
)


def ran(script: str, limits: CgroupLimits, times: int = 1) -> tuple[StepResult, ...]:
    machine = HostMachine(allow_changes=True)
    settings = Boot(kernel=machine.kernel(), cgroup=limits, limit_seconds=60.0)
    with machine.start(settings) as target:
        return target.perform((Run(argv=("/bin/sh", "-c", script)),) * times)


def require(controller: str) -> None:
    """Skip where the root group does not hand it on: cgroup v1 may have it, and ktrial switches none on."""
    if controller not in (_MOUNTED[0] / "cgroup.subtree_control").read_text().split():
        pytest.skip(f"the controller {controller} is not handed on in {_MOUNTED[0]}")


def left() -> list[Path]:
    return list(_MOUNTED[0].rglob(f"ktrial-{os.getpid()}-*"))


def test_programs_run_in_a_group_of_their_own_which_is_gone_afterwards() -> None:
    first, second = ran("cat /proc/self/cgroup", CgroupLimits(), times=2)
    (group,) = {line for line in first.stdout.splitlines() if line.startswith("0::")}
    assert f"/ktrial-{os.getpid()}-" in group
    assert group in second.stdout.splitlines()
    assert not left()


def test_what_a_program_leaves_behind_does_not_keep_the_group() -> None:
    ran("setsid sleep 60 & sleep 0.1", CgroupLimits())
    assert not left()


def test_a_controller_that_is_not_there_is_told() -> None:
    there = (_MOUNTED[0] / "cgroup.controllers").read_text().split()
    if "memory" in there:
        pytest.skip("all controllers are there")
    with pytest.raises(CgroupUnusable, match="has no controller memory"):
        ran("true", CgroupLimits(memory_mib=64))


def test_half_a_cpu_is_half_a_cpu() -> None:
    require("cpu")
    script = "i=0; while [ $i -lt 3000000 ]; do i=$((i+1)); done"
    (result,) = ran(script, CgroupLimits(cpus=0.5))
    used = result.rusage["utime_ns"] + result.rusage["stime_ns"]
    assert used > 300_000_000
    assert used / result.wall_ns < 0.65


def test_a_program_that_takes_more_memory_than_it_may_is_killed() -> None:
    require("memory")
    (result,) = ran("head -c 200000000 /dev/zero | tail", CgroupLimits(memory_mib=32))
    assert result.exit != 0
    assert result.oom_kills
