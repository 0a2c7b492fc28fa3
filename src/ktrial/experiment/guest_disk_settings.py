"""The settings that the study's own disk has while a workload runs: kernels choose some of them.

They are read after the workload, so that reading them is no part of any number.
"""

from dataclasses import dataclass

from ktrial.experiment import guest_disk
from ktrial.model.study import Disk
from ktrial.target import Read, Step, StepResult

_NAMES = (
    "read_ahead_kb",
    "max_sectors_kb",
    "nr_requests",
    "rotational",
    "scheduler",
    "wbt_lat_usec",
    "write_cache",
)
"""Of the many files there, those that decide what reaches the disk (Documentation/ABI/stable/sysfs-block)."""


@dataclass(frozen=True)
class DiskSettings:
    """What is looked at around a workload that has a disk."""

    disk: Disk

    @property
    def before(self) -> tuple[Step, ...]:
        """The disk is not there yet."""
        return ()

    @property
    def after(self) -> tuple[Step, ...]:
        """One step a setting."""
        return tuple(Read(path=f"{directory(self.disk)}/{name}") for name in _NAMES)

    def read_back(
        self, before: tuple[StepResult, ...], after: tuple[StepResult, ...], console: str
    ) -> dict[str, str]:
        """Path → value; a setting that this kernel does not have, or this disk, is left out."""
        found = zip(_NAMES, after, strict=True)
        return {
            f"{directory(self.disk)}/{name}": result.content.strip()
            for name, result in found
            if result.failure is None
        }


def directory(disk: Disk) -> str:
    """Where the disk's settings are."""
    return f"/sys/block/{guest_disk.name(disk)}/queue"
