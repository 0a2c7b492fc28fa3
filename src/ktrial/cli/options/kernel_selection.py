"""Which kernel a command is about: one that has a name, or one to be built from a source tree first."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.options.completion import kernel_names

if TYPE_CHECKING:
    from ktrial.experiment.single_kernel import Runs
    from ktrial.kernels.build import BuildRequest
    from ktrial.model.kernel import Build, Kernel

KernelName = Annotated[
    str | None,
    typer.Option("--kernel", metavar="NAME", help="The kernel.", autocompletion=kernel_names),
]
SourceTree = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="[DIR]",
        help="Build the kernel from this tree (or git:DIR@REVISION, a tarball); alone: from the current one.",
    ),
]
Config = Annotated[
    str | None,
    typer.Option("--config", metavar="guest|defconfig|FILE", help="With --source: what is built in."),
]
BuildOptions = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=y", help="With --source: an option of it; may be repeated."),
]
Fuzz = Annotated[
    int,
    typer.Option(min=0, max=2, metavar="N", help="How many lines around a patch's hunk may differ."),
]


@dataclass(frozen=True)
class KernelSelection:
    """A kernel's name, or what to build."""

    kernel: str = ""
    source: "BuildRequest | None" = None
    """In a directory that is kept for the tree."""
    build: "Build | None" = None
    """By content: a commit, a tarball, a package."""

    @classmethod
    def of(
        cls, kernel: str | None, source: str | None, config: str | None, options: list[str] | None
    ) -> "KernelSelection":
        """From a command's options; what is no source is refused here, before anything is booted.

        Raises BadOption, BadBuildOption, BadKernelName, NotASource, SourceNotClean, BadConfigFile,
        SourceUnusable.
        """
        from ktrial.cli.command_line import BadOption
        from ktrial.cli.installed import registry
        from ktrial.kernels.build import GUEST

        if kernel is not None and source is not None:
            raise BadOption(option="--kernel and --source", problem="give one of the two")
        if source is not None:
            return cls._of_source(source, config or GUEST, options or [])
        if config is not None or options:
            raise BadOption(option="--config and --option", problem="they go with --source")
        if kernel is None:
            raise BadOption(option="--kernel or --source", problem="give one of the two: which kernel")
        return cls(kernel=registry().kernel_name(kernel))

    @classmethod
    def _of_source(cls, source: str, config: str, options: list[str]) -> "KernelSelection":
        from ktrial.kernels.build import build_request, check_request, requested

        kind, colon, _ = source.partition(":")
        if Path(source).is_file() or (colon and "/" not in kind):
            return cls(build=requested(source, config=config, options=options, directory=Path.cwd()))
        request = build_request(Path(source), config, tuple(options))
        check_request(request)
        return cls(source=request)

    @property
    def builds(self) -> "tuple[Build, ...]":
        """What has to be built, if anything: what that needs of this system follows from it."""
        if self.source is not None:
            from ktrial.kernels.build import requested

            source, options = str(self.source.source), dict(self.source.options)
            return (requested(source, config=self.source.config, options=options, directory=Path.cwd()),)
        return (self.build,) if self.build is not None else ()

    def obtained(self, runs: "Runs") -> "Kernel":
        """The kernel, fetched, read or built now. Raises KernelError."""
        from ktrial.kernels.build import add, build, name_of

        def progress(what: str, done: int = 0, total: int = 0) -> None:
            runs.observer.kernel_progress(name, what, done, total)

        if self.build is not None:
            name = self.build.name
            return build(self.build, progress)
        if self.source is not None:
            name = name_of(self.source.source)
            return add(self.source, progress)
        return runs.kernel(self.kernel)
