"""What has to be known of a running system to say why a knob is not there: its release and its mounts."""

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

from ktrial.model.knob import Version, version_of
from ktrial.target import Read, StepResult, Target

_FILESYSTEMS = {
    "/sys/kernel/debug": "debugfs",
    "/sys/kernel/tracing": "tracefs",
    "/sys/fs/cgroup": "cgroup2",
    "/sys/fs/bpf": "bpf",
}
"""File systems of their own below /sys, by the place where they are usually mounted."""


@runtime_checkable
class Lister(Protocol):
    """A target that can tell which files there are."""

    def matching(self, pattern: str) -> tuple[str, ...]:
        """Paths that match the pattern (as in a shell), sorted."""
        ...


@dataclass(frozen=True)
class System:
    """A target, asked once for each thing."""

    target: Target
    is_root: bool = field(default_factory=lambda: os.geteuid() == 0)
    """Whether what reads and writes there is root: ktrial itself, or a guest's agent, which always is."""

    def read(self, *paths: str) -> tuple[StepResult, ...]:
        """Read the files."""
        return self.target.perform(tuple(Read(path=path) for path in paths))

    @cached_property
    def release(self) -> str:
        """`6.12.117+deb13-cloud-amd64`."""
        (result,) = self.read("/proc/sys/kernel/osrelease")
        return result.content.strip()

    @cached_property
    def version(self) -> Version:
        """Major and minor."""
        return version_of(self.release)

    @cached_property
    def _mounts(self) -> dict[str, str]:
        (result,) = self.read("/proc/mounts")
        lines = [line.split() for line in result.content.splitlines()]
        return {line[1]: line[2] for line in lines if len(line) > 2}

    def missing_mount(self, path: str) -> tuple[str, str] | None:
        """File system and mount point that the path needs, where it is not mounted there."""
        for mount_point, filesystem in _FILESYSTEMS.items():
            below = path.startswith(f"{mount_point}/")
            if below and self._mounts.get(mount_point) != filesystem:
                return filesystem, mount_point
        return None

    def matching(self, pattern: str) -> tuple[str, ...]:
        """Paths that match the pattern; none where the target cannot tell."""
        return self.target.matching(pattern) if isinstance(self.target, Lister) else ()
