"""Where the runner gets kernels and workloads from: the layers below, or what a test puts in their place."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ktrial import kernels, workloads
from ktrial.errors import KernelNotFound, WorkloadError
from ktrial.kernels import Progress
from ktrial.model.design import Perturbation
from ktrial.model.kernel import Kernel
from ktrial.model.machine import CarriedFile
from ktrial.model.workload import Mode, Sample, WorkloadDescription, WorkloadUse
from ktrial.target import Step, StepResult


class Workload(Protocol):
    """What the runner asks of a workload."""

    @property
    def description(self) -> WorkloadDescription:
        """Its name, metrics and parameters."""
        ...

    def files(self, use: WorkloadUse) -> tuple[CarriedFile, ...]:
        """What the guest needs. Raises WorkloadError where a host file is missing."""
        ...

    def steps(self, use: WorkloadUse, mode: Mode, perturbation: Perturbation) -> tuple[Step, ...]:
        """What the target is to do."""
        ...

    def samples(self, use: WorkloadUse, mode: Mode, results: tuple[StepResult, ...]) -> tuple[Sample, ...]:
        """What came of the steps. Raises WorkloadError where they failed."""
        ...


@dataclass(frozen=True)
class Sources:
    """Kernels by name, modules by name, workloads by their use."""

    obtain: Callable[[str, Progress], Kernel]
    modules: Callable[[Kernel, Iterable[str]], tuple[Path, ...]]
    workload: Callable[[WorkloadUse], Workload]


def the_real_ones() -> Sources:
    """The kernels' cache and the catalogue of workloads."""
    return Sources(obtain=obtain, modules=kernels.resolve, workload=workload_of)


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


def workload_of(use: WorkloadUse) -> Workload:
    """The workload of a use. Raises WorkloadError where the catalogue has none of its name."""
    catalogue = workloads.catalogue()
    name = "command" if use.command else use.name
    if name not in catalogue:
        raise WorkloadError(workload=use.name, problem="there is none of this name")
    found: Workload = catalogue[name]
    return found
