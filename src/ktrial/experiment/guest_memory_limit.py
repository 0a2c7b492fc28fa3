"""A limit for the memory of a guest's workloads, their page cache included: less than their files need.

By a control group (version 2) that the guest's agent enters, and with it every program that it starts later.
What it had allocated before stays where it was charged. The disk's own memory is charged to nobody.
"""

from ktrial.model.boot import CgroupLimits
from ktrial.target import MakeDirectory, Step, StepResult, Write
from ktrial.target.errors import LimitNotSet

_ROOT = "/sys/fs/cgroup"
"""The agent has mounted it."""
GROUP = f"{_ROOT}/workload"
"""The workloads' group in the guest."""
_MYSELF = "0"


def steps(limits: CgroupLimits | None) -> tuple[Step, ...]:
    """Make the group, limit it and enter it; nothing without a limit of memory."""
    if limits is None or limits.memory_mib is None:
        return ()
    return (
        Write(path=f"{_ROOT}/cgroup.subtree_control", value="+memory"),
        MakeDirectory(path=GROUP),
        Write(path=f"{GROUP}/memory.max", value=str(limits.memory_mib << 20)),
        Write(path=f"{GROUP}/cgroup.procs", value=_MYSELF),
    )


def check(results: tuple[StepResult, ...]) -> None:
    """Raise LimitNotSet where one of the steps failed."""
    for result in results:
        if result.failure:
            raise LimitNotSet(problem=result.failure.text)
