"""What trials are made with: kernels and workloads, the names that studies may use, this system's own kernel.

They come from the layers below, or from what a test puts in their place.
"""

from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ktrial import machines, monitors, workloads
from ktrial.kernels import Progress, kernel_registry
from ktrial.kernels.errors import KernelError
from ktrial.kernels.kernel_registry import reference
from ktrial.kernels.modules import resolve
from ktrial.machines import Machine, RemoteMachine
from ktrial.model.kernel import Build, BuildOrder, Kernel, Menus, Patch
from ktrial.model.machine import CarriedFile, FileSet
from ktrial.model.references import KernelRef
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import WorkloadUse
from ktrial.studyfile.references import RUNNING_KERNEL, Registry
from ktrial.system_tools import Tool
from ktrial.workloads import Workload, only_built_in
from ktrial.workloads.command import RemoteCommand
from ktrial.workloads.frozen_files import FrozenFiles
from ktrial.workloads.host_files import with_all_they_need

# Kernels that a study builds from source: all of them configured first, then built.
#
# This system builds one after another, since each build uses all cores; others may be asked, too.
#
# A mistake in an option is found when a kernel is configured, which takes seconds; compiling takes minutes.

Numbered = Iterable[tuple[int, tuple[Patch, ...]]]
"""Patches by their numbers, each with its files."""


class PortableBuilds(Protocol):
    """How another system builds a kernel. May be pickled: `order` and `take` are for who asks."""

    def order(self, request: Build, progress: Progress) -> BuildOrder | None:
        """What another system is asked; None: this one need not compile it. Raises KernelError."""
        ...

    def take(self, order: BuildOrder, archive: Path) -> Kernel:
        """Keep what another system built, if it is what was asked. Raises KernelError."""
        ...

    def problem(self, order: BuildOrder) -> str:
        """Why it cannot be built on this system; empty where it can."""
        ...

    def needed(self, order: BuildOrder) -> tuple[str, ...]:
        """Digests of the order's files that this system has to be given."""
        ...

    def make(self, order: BuildOrder, place: Callable[[str], Path], progress: Progress) -> Path:
        """Build it, and return a file for `take`. `place`: where a file is, by its digest.

        What `progress` raises breaks it off. Raises KernelError.
        """
        ...


@dataclass(frozen=True)
class Builder:
    """What builds kernels: `ktrial.kernels.build`, or what a test puts in its place."""

    build: Callable[[Build, Progress], Kernel]
    """Built, or from the cache. Raises KernelError."""
    configured: Callable[[Build, Progress], Mapping[str, str]]
    """The final configuration, without compiling. Raises KernelError: OptionNotTaken, for one."""
    cached: Callable[[Build], Kernel | None]
    """The kernel, where it is there already."""
    applies: Callable[[Build, Progress], None] = field(default=lambda _request, _progress: None)
    """Raises KernelError where the patches do not fit the source: PatchNotApplied, for one."""
    compiles_the_same: Callable[[Build, Build, Progress], bool] = field(default=lambda *_: False)
    """Whether the second one differs from the first, which is built, only in files that nothing of that
    read.
    """
    same_from_nothing: Callable[[Kernel, Build, Progress], bool] = field(default=lambda *_: True)
    """Whether a kernel that was built is, bit by bit, what an empty build tree gives. Raises KernelError."""
    not_applying: Callable[[Build, Numbered, Progress], Mapping[int, KernelError]] = field(
        default=lambda *_: {}
    )
    """Of numbered patches those that do not apply on top of the others before them, and why."""
    cpu_seconds: Callable[[Build], float | None] = field(default=lambda _request: None)
    """What compiling a kernel that is there took of the processors; None where nothing counted it."""
    tools: Callable[[Build], tuple[Tool, ...]] = field(default=lambda _request: ())
    """What compiling it needs of this system, with the sandbox. Raises KernelError."""
    menus: Callable[[Build, Progress], Menus] = field(default=lambda *_: Menus())
    """What the source says of its options."""
    elsewhere: Callable[[], PortableBuilds] | None = None
    """How other systems build the same; None: they cannot."""


def default_builder() -> Builder:
    """The one that compiles."""

    def build(request: Build, progress: Progress) -> Kernel:
        from ktrial.kernels.build.builds import build

        return build(request, progress)

    def configured(request: Build, progress: Progress) -> Mapping[str, str]:
        from ktrial.kernels.build.builds import configured

        return configured(request, progress)

    def cached(request: Build) -> Kernel | None:
        from ktrial.kernels.build.builds import cached

        return cached(request)

    def applies(request: Build, progress: Progress) -> None:
        from ktrial.kernels.build.builds import check_applies

        check_applies(request, progress)

    def same(before: Build, request: Build, progress: Progress) -> bool:
        from ktrial.kernels.build.builds import compiles_the_same

        return compiles_the_same(before, request, progress)

    def same_from_nothing(kernel: Kernel, request: Build, progress: Progress) -> bool:
        from ktrial.kernels.build.builds import same_from_nothing

        return same_from_nothing(kernel, request, progress)

    def not_applying(plain: Build, patches: Numbered, progress: Progress) -> Mapping[int, KernelError]:
        from ktrial.kernels.build.patches import not_applying

        return not_applying(plain, patches, progress)

    def cpu_seconds(request: Build) -> float | None:
        from ktrial.kernels.build.builds import cpu_seconds

        return cpu_seconds(request)

    def tools(request: Build) -> tuple[Tool, ...]:
        from ktrial.kernels.build.requests import tools_of
        from ktrial.kernels.errors import BUBBLEWRAP

        return (*tools_of(request), BUBBLEWRAP)

    def menus(request: Build, progress: Progress) -> Menus:
        from ktrial.kernels.build.builds import menu_of

        return menu_of(request, progress)

    return Builder(
        build=build,
        configured=configured,
        cached=cached,
        applies=applies,
        compiles_the_same=same,
        same_from_nothing=same_from_nothing,
        not_applying=not_applying,
        cpu_seconds=cpu_seconds,
        tools=tools,
        menus=menus,
        elsewhere=source_builds,
    )


def source_builds() -> PortableBuilds:
    """How another system compiles. It is pickled by its name."""
    from ktrial.kernels.build.remote_builds import SourceBuilds

    return SourceBuilds()


@dataclass(frozen=True)
class Resources:
    """Kernels by name, modules by name, workloads by their use, files by their paths."""

    obtain: Callable[[KernelRef, Progress], Kernel]
    """Raises KernelError."""
    modules: Callable[[Kernel, Iterable[str]], tuple[Path, ...]]
    """The files to load, in load order. Raises UnknownModule."""
    workload: Callable[[WorkloadUse], Workload]
    """Raises BadWorkload."""
    files: Callable[[str, tuple[str, ...]], tuple[CarriedFile, ...]]
    """For whom and host files → those files, and the shared libraries of the programs among them."""
    builder: Builder = field(default_factory=default_builder)
    """What builds the kernels that a study describes."""
    kernel_tools: Callable[[KernelRef], tuple[Tool, ...]] = field(default=lambda _kernel: ())
    """What bringing a kernel needs of this system. Raises KernelError."""
    frozen: FrozenFiles | None = field(default_factory=FrozenFiles)
    """Keeps what guests are given as it was when these sources were first asked for it; None: nothing is
    copied, since programs run where they are."""

    def with_kernels(self, obtain: Callable[[KernelRef, Progress], Kernel]) -> "Resources":
        """With kernels that are at hand: nothing is needed to bring them."""
        return replace(self, obtain=obtain, kernel_tools=lambda _kernel: ())

    def carried(self, use: WorkloadUse) -> FileSet:
        """The files that the workload of this use brings into a guest. Raises WorkloadError."""
        workload = self.workload(use)
        key = (use.label, use.model_dump_json())
        return self._frozen(f"workload {use.label}", key, lambda: workload.files(use))

    def named_files(self, who: str, names: tuple[str, ...]) -> tuple[CarriedFile, ...]:
        """These files of this host, with what the programs among them need. Raises WorkloadError."""
        return self._frozen(who, (who, names), lambda: self.files(who, names)).files

    def _frozen(self, who: str, key: Hashable, collect: Callable[[], tuple[CarriedFile, ...]]) -> FileSet:
        return self.frozen.of(who, key, collect) if self.frozen else FileSet(files=collect())

    def kernel(self, name: str, progress: Progress) -> Kernel:
        """The kernel of a name that no study has. Raises KernelError."""
        return self.obtain(kernel_registry.lenient_reference(name), progress)


def default_resources() -> Resources:
    """The kernels' cache and the catalogue of workloads."""
    return Resources(
        obtain=kernel_registry.obtain,
        modules=resolve,
        workload=workloads.find,
        files=with_all_they_need,
        kernel_tools=kernel_registry.tools_for,
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
    from ktrial.kernels.build.requests import requested

    return requested(source, **parts)


@runtime_checkable
class RunsAlready(Protocol):
    """A machine that boots nothing."""

    def kernel(self) -> Kernel:
        """The kernel that runs there."""
        ...


def sources_for(machine: Machine, resources: Resources) -> Resources:
    """The sources, with the machine's own kernel for every name where it boots none.

    Another machine may be booted: there only `running` is its own.
    """
    if not isinstance(machine, RunsAlready):
        return resources
    if not isinstance(machine, RemoteMachine):
        kernel = machine.kernel()
        return replace(resources.with_kernels(lambda _name, _progress: kernel), frozen=None)

    running_kernel = cache(
        machine.kernel
    )  # asked when it is needed: until the machine is leased nobody connects to it

    def obtain(kernel: KernelRef, progress: Progress) -> Kernel:
        return running_kernel() if kernel.name in {"", RUNNING_KERNEL} else resources.obtain(kernel, progress)

    def tools(kernel: KernelRef) -> tuple[Tool, ...]:
        return () if kernel.name in {"", RUNNING_KERNEL} else resources.kernel_tools(kernel)

    return replace(resources, obtain=obtain, workload=_elsewhere(resources), kernel_tools=tools, frozen=None)


def _elsewhere(resources: Resources) -> Callable[[WorkloadUse], Workload]:
    """Workloads whose programs are on another machine already, or are ktrial's own."""

    def workload(use: WorkloadUse) -> Workload:
        return RemoteCommand() if use.command else only_built_in(use, resources.workload(use))

    return workload


KernelOutcome = tuple[str, Kernel | KernelError]
"""A kernel's label, and the kernel, or why it cannot be had."""


@dataclass(frozen=True)
class Listener:
    """Who is told how far builds are."""

    progress: Callable[[str], Progress]
    """By a kernel's label."""
    notice: Callable[[str], None] = lambda _text: None
    """Something that a person should know."""


def built_here(builds: Mapping[str, Build], builder: Builder, listener: Listener) -> Generator[KernelOutcome]:
    """Each of the kernels as it is had, one after another."""
    for number, (label, build) in enumerate(builds.items(), 1):
        progress = numbered(listener.progress(label), number, len(builds))
        try:
            yield label, builder.build(build, progress)
        except KernelError as error:
            yield label, error


def misconfigured(
    builds: Mapping[str, Build], builder: Builder, tell: Callable[[str], Progress]
) -> dict[str, KernelError]:
    """The builds, by name, whose configuration is refused, with why. Nothing is compiled.

    `tell`: who is told what is done for the kernel of that name.
    """
    refused = {}
    for name, build in builds.items():
        try:
            if builder.cached(build) is None:
                builder.configured(build, tell(name))
        except KernelError as error:
            refused[name] = error
    return refused


def numbered(progress: Progress, number: int, of: int) -> Progress:
    """The same, which also tells which of several builds it is."""
    if of < 2:
        return progress

    def told(what: str, done: int = 0, total: int = 0) -> None:
        progress(f"build {number} of {of}: {what}", done, total)

    return told
