"""Where the runner gets kernels and workloads from: the layers below, or what a test puts in their place."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ktrial import kernels, workloads
from ktrial.experiment.kernel_builds import Builder, default_builder
from ktrial.kernels import Progress
from ktrial.model.boot import CarriedFile
from ktrial.model.kernel import Kernel
from ktrial.model.references import KernelRef
from ktrial.model.workload import WorkloadUse
from ktrial.workloads import Workload
from ktrial.workloads.host_files import with_all_they_need


@dataclass(frozen=True)
class Resources:
    """Kernels by name, modules by name, workloads by their use, files by their paths."""

    obtain: Callable[[KernelRef, Progress], Kernel]
    """Raises KernelError."""
    modules: Callable[[Kernel, Iterable[str]], tuple[Path, ...]]
    """The files to load, in load order. Raises UnknownModule."""
    workload: Callable[[WorkloadUse], Workload]
    """Raises UnknownWorkload."""
    files: Callable[[str, tuple[str, ...]], tuple[CarriedFile, ...]]
    """For whom and host files → those files, and the shared libraries of the programs among them."""
    builder: Builder = field(default_factory=default_builder)
    """What builds the kernels that a study describes."""

    def kernel(self, name: str, progress: Progress) -> Kernel:
        """The kernel of a name that no study has. Raises KernelError."""
        return self.obtain(kernels.lenient_reference(name), progress)


def default_resources() -> Resources:
    """The kernels' cache and the catalogue of workloads."""
    return Resources(
        obtain=kernels.obtain, modules=kernels.resolve, workload=workloads.find, files=with_all_they_need
    )
