"""Which kernel a command is about: one that has a name, or one to be built from a source tree first."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.options.completion import kernel_names

if TYPE_CHECKING:
    from ktrial.experiment.single_kernel import Runs
    from ktrial.kernels.build import BuildRequest
    from ktrial.model.kernel import Kernel

KernelName = Annotated[
    str | None,
    typer.Option("--kernel", metavar="NAME", help="The kernel.", autocompletion=kernel_names),
]
SourceTree = Annotated[
    str | None,
    typer.Option(
        "--source", metavar="[DIR]", help="Build the kernel from this tree; alone: from the current one."
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


@dataclass(frozen=True)
class KernelSelection:
    """A kernel's name, or what to build."""

    kernel: str = ""
    source: "BuildRequest | None" = None

    @classmethod
    def of(
        cls, kernel: str | None, source: str | None, config: str | None, options: list[str] | None
    ) -> "KernelSelection":
        """From a command's options. Raises BadOption, BadBuildOption, BadKernelName."""
        from ktrial.cli.command_line import BadOption
        from ktrial.cli.installed import registry
        from ktrial.kernels.build import GUEST, build_request

        if kernel is not None and source is not None:
            raise BadOption(option="--kernel and --source", problem="give one of the two")
        if source is not None:
            return cls(source=build_request(Path(source), config or GUEST, tuple(options or ())))
        if config is not None or options:
            raise BadOption(option="--config and --option", problem="they go with --source")
        if kernel is None:
            raise BadOption(option="--kernel or --source", problem="give one of the two: which kernel")
        return cls(kernel=registry().kernel_name(kernel))

    def obtained(self, runs: "Runs") -> "Kernel":
        """The kernel, fetched, read or built now. Raises KernelError."""
        from ktrial.kernels.build import add, name_of

        if self.source is None:
            return runs.kernel(self.kernel)
        name = name_of(self.source.source)

        def progress(what: str, done: int = 0, total: int = 0) -> None:
            runs.observer.kernel_progress(name, what, done, total)

        return add(self.source, progress)
