"""What trials are made with: kernels and workloads, the names that studies may use, this system's own kernel.

They come from the layers below, or from what a test puts in their place.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ktrial import kernels, machines, monitors, workloads
from ktrial.experiment.kernel_builds import Builder, default_builder
from ktrial.kernels import Progress, reference
from ktrial.machines import Machine, RemoteMachine
from ktrial.model.boot import CarriedFile
from ktrial.model.kernel import Build, Kernel
from ktrial.model.references import KernelRef
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import WorkloadUse
from ktrial.studyfile import Registry
from ktrial.studyfile.references import RUNNING_KERNEL
from ktrial.system_tools import Tool
from ktrial.workloads import Workload
from ktrial.workloads.host_files import with_all_they_need
from ktrial.workloads.remote_command import RemoteCommand, only_built_in


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
    kernel_tools: Callable[[KernelRef], tuple[Tool, ...]] = field(default=lambda _kernel: ())
    """What bringing a kernel needs of this system. Raises KernelError."""

    def with_kernels(self, obtain: Callable[[KernelRef, Progress], Kernel]) -> "Resources":
        """With kernels that are at hand: nothing is needed to bring them."""
        return replace(self, obtain=obtain, kernel_tools=lambda _kernel: ())

    def kernel(self, name: str, progress: Progress) -> Kernel:
        """The kernel of a name that no study has. Raises KernelError."""
        return self.obtain(kernels.lenient_reference(name), progress)


def default_resources() -> Resources:
    """The kernels' cache and the catalogue of workloads."""
    return Resources(
        obtain=kernels.obtain,
        modules=kernels.resolve,
        workload=workloads.find,
        files=with_all_they_need,
        kernel_tools=kernels.tools_for,
    )


class Installed(NamedTuple):
    """Everything that is installed."""

    registry: Registry
    warnings: tuple[DataWarning, ...]
    """One for each extension that is broken, and left out."""


def installed() -> Installed:
    """Look for extensions, once. Raises GuestProgramsMissing."""
    return Installed(
        Registry(
            workloads=workloads.descriptions(),
            machines=machines.names(),
            kernel=reference,
            check=workloads.check,
            build=_build,
            monitors=monitors.installed_tracers().keys(),
        ),
        (*machines.installed()[1], *workloads.installed()[1]),
    )


def _build(source: str, **parts: Any) -> Build:
    from ktrial.kernels.build import requested  # few studies build, and it takes its time to load

    return requested(source, **parts)


@runtime_checkable
class RunsAlready(Protocol):
    """A machine that boots nothing."""

    def kernel(self) -> Kernel:
        """The kernel that runs there."""
        ...


def sources_for(machine: Machine, sources: Resources) -> Resources:
    """The sources, with the machine's own kernel for every name where it boots none.

    Another machine may be booted: there only `running` is its own.
    """
    if not isinstance(machine, RunsAlready):
        return sources
    if not isinstance(machine, RemoteMachine):
        kernel = machine.kernel()
        return sources.with_kernels(lambda _name, _progress: kernel)

    own = cache(machine.kernel)  # asked when it is needed: until the machine is leased nobody connects to it

    def obtain(wanted: KernelRef, progress: Progress) -> Kernel:
        return own() if wanted.name in {"", RUNNING_KERNEL} else sources.obtain(wanted, progress)

    def tools(wanted: KernelRef) -> tuple[Tool, ...]:
        return () if wanted.name in {"", RUNNING_KERNEL} else sources.kernel_tools(wanted)

    return replace(sources, obtain=obtain, workload=_elsewhere(sources), kernel_tools=tools)


def _elsewhere(sources: Resources) -> Callable[[WorkloadUse], Workload]:
    """Workloads whose programs are on another machine already, or are ktrial's own."""

    def workload(use: WorkloadUse) -> Workload:
        return RemoteCommand() if use.command else only_built_in(use, sources.workload(use))

    return workload
