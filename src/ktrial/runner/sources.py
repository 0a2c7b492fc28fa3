"""Where the runner gets kernels and workloads from: the layers below, or what a test puts in their place."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ktrial import kernels, workloads
from ktrial.errors import KernelNotFound
from ktrial.kernels import Progress
from ktrial.model.kernel import Kernel
from ktrial.model.machine import CarriedFile
from ktrial.model.workload import WorkloadUse
from ktrial.runner.builds import Builder, the_real_builder
from ktrial.workloads import Workload
from ktrial.workloads.carrying import with_all_they_need


@dataclass(frozen=True)
class Sources:
    """Kernels by name, modules by name, workloads by their use, files by their paths."""

    obtain: Callable[[str, Progress], Kernel]
    """Raises KernelError."""
    modules: Callable[[Kernel, Iterable[str]], tuple[Path, ...]]
    """The files to load, in load order. Raises UnknownModule."""
    workload: Callable[[WorkloadUse], Workload]
    """Raises UnknownWorkload."""
    files: Callable[[str, tuple[str, ...]], tuple[CarriedFile, ...]]
    """For whom and host files → those files, and the shared libraries of the programs among them."""
    builder: Builder = field(default_factory=the_real_builder)
    """What builds the kernels that a study describes."""


def the_real_ones() -> Sources:
    """The kernels' cache and the catalogue of workloads."""
    return Sources(obtain=obtain, modules=kernels.resolve, workload=workloads.find, files=with_all_they_need)


def obtain(name: str, progress: Progress) -> Kernel:
    """The kernel `name`, fetched if the cache lacks it. Raises KernelError.

    A file of the user's is read again each time, as it may have been built anew; unless it was added together
    with modules or a configuration, which its name does not tell.
    """
    try:
        known = kernels.get(name)
    except KernelNotFound:
        return kernels.add(name, progress=progress)
    alone = known.modules is None and known.config is None
    outdated = known.origin.provider == "host" and known.release != os.uname().release
    if outdated or (known.origin.provider == "path" and alone):
        return kernels.add(name, progress=progress)
    return known
