"""Kernels that a study builds from source: all of them configured first, then built one after another.

A mistake in an option is found when a kernel is configured, which takes seconds; compiling takes minutes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ktrial.kernels import Progress
from ktrial.kernels.errors import KernelError
from ktrial.model.kernel import Build, Kernel, Patch

Numbered = Iterable[tuple[int, tuple[Patch, ...]]]
"""Patches by their numbers, each with its files."""


@dataclass(frozen=True)
class Builder:
    """What builds kernels: `ktrial.kernels.build`, or what a test puts in its place."""

    build: Callable[[Build, Progress], Kernel]
    """Built, or from the cache. Raises KernelError."""
    configured: Callable[[Build, Progress], Mapping[str, str]]
    """The final configuration, without compiling. Raises KernelError: OptionNotTaken, for one."""
    cached: Callable[[Build], Kernel | None]
    """The kernel, where it is there already."""
    applies: Callable[[Build, Progress], None] = field(default=lambda _wanted, _progress: None)
    """Raises KernelError where the patches do not fit the source: PatchNotApplied, for one."""
    compiles_the_same: Callable[[Build, Build, Progress], bool] = field(default=lambda *_: False)
    """Whether the second one differs from the first, which is built, only in files that nothing of that
    read.
    """
    not_applying: Callable[[Build, Numbered, Progress], Mapping[int, KernelError]] = field(
        default=lambda *_: {}
    )
    """Of numbered patches those that do not apply on top of the others before them, and why."""


def default_builder() -> Builder:
    """The one that compiles."""

    def build(wanted: Build, progress: Progress) -> Kernel:
        from ktrial.kernels import build as source

        return source.build(wanted, progress)

    def configured(wanted: Build, progress: Progress) -> Mapping[str, str]:
        from ktrial.kernels import build as source

        return source.configured(wanted, progress)

    def cached(wanted: Build) -> Kernel | None:
        from ktrial.kernels import build as source

        return source.cached(wanted)

    def applies(wanted: Build, progress: Progress) -> None:
        from ktrial.kernels import build as source

        source.check_applies(wanted, progress)

    def same(before: Build, wanted: Build, progress: Progress) -> bool:
        from ktrial.kernels import build as source

        return source.compiles_the_same(before, wanted, progress)

    def not_applying(plain: Build, patches: Numbered, progress: Progress) -> Mapping[int, KernelError]:
        from ktrial.kernels import build as source

        return source.not_applying(plain, patches, progress)

    return Builder(build, configured, cached, applies, same, not_applying)


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
