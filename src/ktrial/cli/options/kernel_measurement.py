"""What `check`, `baseline save` and `counters` have in common: how kernels are measured, and where."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.analysis.errors import CheckUsageError
from ktrial.cli.options.completion import kernel_names, workload_names, workload_sets

if TYPE_CHECKING:
    from ktrial.experiment.observer import Observer
    from ktrial.experiment.regression_check import Baseline
    from ktrial.experiment.single_kernel import Runs
    from ktrial.kernels.build.requests import BuildRequest
    from ktrial.model.kernel import Build, Kernel
    from ktrial.model.study import MachineSettings, Measurement
    from ktrial.model.workload import WorkloadUse
    from ktrial.store.store import Store


Workloads = Annotated[
    list[str] | None,
    typer.Option("--workload", metavar="W1,W2…", help="Workloads.", autocompletion=workload_names),
]


WorkloadSets = Annotated[
    list[str] | None,
    typer.Option(
        "--workloads",
        metavar="W1,W2…",
        help="Names, or a set: quick (else this), default.",
        autocompletion=workload_sets,
    ),
]


Limits = Annotated[
    list[str] | None,
    typer.Option("--max", metavar="+1%", help="The largest change for the worse, else 1%; or fork=+2%."),
]


Cpus = Annotated[int | None, typer.Option("--cpus", min=1, metavar="N", help="The guest's CPUs; else 1.")]


_OF_A_BASELINE = "a saved baseline has its own workloads: name a kernel as --against for a command of yours"


_LIMIT = re.compile(r"(?:(?P<workload>[^=]+)=)?\+?(?P<size>[^+=]*)")


@dataclass(frozen=True)
class MeasurementOptions:
    """The options that say how kernels are measured, as they were given."""

    workloads: tuple[str, ...] = ()
    memory: str | None = None
    cpus: int | None = None
    boot: tuple[str, ...] = ()
    perturbations: int | None = None
    words: tuple[str, ...] = ()
    """A command of one's own, behind `--`."""
    format: str | None = None
    """What the command prints, and is measured by; None: its instructions are."""

    @classmethod
    def of(
        cls,
        workloads: list[str] | None,
        memory: str | None,
        cpus: int | None,
        boot: list[str] | None,
        perturbations: int | None,
        words: tuple[str, ...] = (),
        format: str | None = None,
    ) -> "MeasurementOptions":
        """From a command's parameters: `--workload` may be repeated, and hold commas."""
        names = [name.strip() for text in workloads or () for name in text.split(",")]
        once = tuple(dict.fromkeys(filter(None, names)))
        return cls(once, memory, cpus, tuple(boot or ()), perturbations, words, format)


def measurement(given: MeasurementOptions) -> "Measurement":
    """How kernels are measured: what was given, else what a study has. Raises WorkloadError, BadOption."""
    from ktrial.cli.options.own_command import asked, memory_for
    from ktrial.model.study import Measurement

    uses = asked(given.workloads, given.words).printing(given.format).uses()
    how = Measurement(uses, _settings(replace(given, memory=memory_for(given.words, given.memory))))
    return replace(how, perturbations=given.perturbations) if given.perturbations else how


def _settings(given: MeasurementOptions) -> "MachineSettings":
    """The machine that was asked for. Raises BadOption."""
    from ktrial.cli.options.common import memory_of
    from ktrial.model.study import MachineSettings

    settings = MachineSettings(boot=given.boot)
    if given.cpus is not None:
        settings = settings.model_copy(update={"cpus": given.cpus})
    if given.memory is None:
        return settings
    return settings.model_copy(update={"memory_mib": memory_of(given.memory)})


def measurement_like(baseline: "Baseline", given: MeasurementOptions) -> "Measurement":
    """How a saved baseline was measured; a part of its workloads, where some were given.

    Raises BaselineLacks where an option asks for something else.
    """
    from ktrial.cli.command_line import BadOption

    if given.words:
        raise BadOption(option="--", problem=_OF_A_BASELINE)
    if given.format:
        raise BadOption(option="--metrics", problem=_OF_A_BASELINE)
    there = baseline.measurement
    labels = {use.label: use for use in there.workloads}
    for name in given.workloads:
        if name not in labels:
            raise CheckUsageError(
                f"Baseline {baseline.label} was not measured with workload {name}; it has "
                f"{', '.join(labels)}.",
                hint=f"leave the option out, or save it anew: ktrial baseline save {baseline.label} …",
            )
    if given.workloads:
        there = replace(there, workloads=tuple(labels[name] for name in given.workloads))
    wanted = _settings(given)
    pairs = {
        "--memory": (given.memory, wanted.memory_mib, there.settings.memory_mib),
        "--cpus": (given.cpus, wanted.cpus, there.settings.cpus),
        "--boot": (given.boot, wanted.boot, there.settings.boot),
        "--perturbations": (given.perturbations, given.perturbations, there.perturbations),
    }
    for option, (asked, new, old) in pairs.items():
        if asked and new != old:
            raise CheckUsageError(
                f"Baseline {baseline.label} was not measured with {option} {_words(new)}; it has "
                f"{_words(old)}.",
                hint=f"leave the option out, or save it anew: ktrial baseline save {baseline.label} …",
            )
    return there


def limits(texts: list[str], uses: "tuple[WorkloadUse, ...]") -> dict[str, float]:
    """The limit of each workload: `+1%` for all, `fork=+2%` for one. Raises BadLimit."""
    from ktrial.experiment.regression_check import DEFAULT_LIMIT
    from ktrial.model import notation

    labels = [use.label for use in uses]
    common, own = DEFAULT_LIMIT, {}
    for text in texts:
        match = _LIMIT.fullmatch(text.strip())
        try:
            size = notation.margin(match["size"] if match else text)
        except ValueError as error:
            problem = str(error).replace("a margin", "a limit")
            raise CheckUsageError(
                f"--max {text}: {problem}.", hint="write --max +1%, or for one workload --max fork=+2%"
            ) from None
        workload = match["workload"] if match else None
        if workload is None:
            common = size
        elif workload in labels:
            own[workload] = size
        else:
            raise CheckUsageError(
                f"--max {text}: the workloads are {', '.join(labels)}.",
                hint="write --max +1%, or for one workload --max fork=+2%",
            )
    return {label: own.get(label, common) for label in labels}


def runs(store: "Store", observer: "Observer", jobs: int | None) -> "Runs":
    """Where trials run: on the machine that the settings name."""
    from ktrial.experiment.single_kernel import Runs

    return Runs(store, observer, jobs)


def _words(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(value) or "none"
    return str(value)


# Which kernel a command is about: one that has a name, or one to be built from a source tree first.

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
        from ktrial.cli.studies import registry
        from ktrial.model.kernel import GUEST

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
        from ktrial.kernels.build.builds import check_request
        from ktrial.kernels.build.requests import build_request, requested

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
            from ktrial.kernels.build.requests import requested

            source, options = str(self.source.source), dict(self.source.options)
            return (requested(source, config=self.source.config, options=options, directory=Path.cwd()),)
        return (self.build,) if self.build is not None else ()

    def obtained(self, runs: "Runs") -> "Kernel":
        """The kernel, fetched, read or built now. Raises KernelError."""
        from ktrial.kernels.build.builds import add, build, name_of

        def progress(what: str, done: int = 0, total: int = 0) -> None:
            runs.observer.kernel_progress(name, what, done, total)

        if self.build is not None:
            name = self.build.name
            return build(self.build, progress)
        if self.source is not None:
            name = name_of(self.source.source)
            return add(self.source, progress)
        return runs.kernel(self.kernel)
