"""Which kernels are measured, and how: options of `check`, `bisect`, `series` and `explain counters`."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.analysis.errors import AnalysisUsageError
from ktrial.cli.command_line import BadOption, Option
from ktrial.cli.options.common import (
    AfterText,
    BootParameters,
    GuestMemory,
    Jobs,
    MetricsFormat,
    Perturbations,
    SkipStart,
    StoreOption,
    memory_of,
)
from ktrial.cli.options.completion import kernel_names, workload_names, workload_sets
from ktrial.cli.options.workloads import memory_for, named_workloads, workload_names_of
from ktrial.cli.studies import registry
from ktrial.model import notation

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
    typer.Option(
        "--max", metavar="+1%", help=("The largest allowed change for the worse, else 1%; or fork=+2%.")
    ),
]
Cpus = Annotated[int | None, typer.Option("--cpus", min=1, metavar="N", help="The guest's CPUs; else 1.")]
_OF_A_BASELINE = (
    "a saved baseline has its own workloads: to run a command of your own, give a kernel to --against"
)
_LIMIT = re.compile(r"(?:(?P<workload>.+)=)?\+?(?P<size>[^+=]*)")


@dataclass(frozen=True)
class GuestOptions:
    """The guest in which kernels are measured, how often, and where the trials are kept."""

    perturbations: Perturbations = None
    memory: GuestMemory = None
    cpus: Cpus = None
    store: StoreOption = None
    jobs: Jobs = None


@dataclass(frozen=True)
class MeasurementOptions(GuestOptions):
    """How kernels are measured."""

    workload: Workloads = None
    boot: BootParameters = None
    metrics: str | None = None
    """The format of what the user's command prints, which is measured; None: its instructions are."""
    after: str | None = None
    """What the user's command prints where counting begins."""
    skip_start: str | None = None
    """The system call, signal or output at which counting begins."""
    words: tuple[str, ...] = ()
    """A command of the user's, behind `--`."""

    @property
    def of_command(self) -> dict[str, str]:
        """What goes with a command of the user's alone: the options that were given, with their texts."""
        texts = {"--metrics": self.metrics, "--after": self.after, "--skip-start": self.skip_start}
        return {option: text for option, text in texts.items() if text}

    @property
    def workload_names(self) -> tuple[str, ...]:
        """`--workload` may be repeated, and hold commas and sets."""
        return tuple(workload_names_of(self.workload)) if self.workload else ()


@dataclass(frozen=True)
class CommandMeasurementOptions(MeasurementOptions):
    """How kernels are measured, also by what a command of the user's prints."""

    metrics: MetricsFormat = None
    after: AfterText = None
    skip_start: SkipStart = None


def measurement(options: MeasurementOptions) -> "Measurement":
    """How kernels are measured: as the options say, else as a study is. Raises WorkloadError, BadOption."""
    from ktrial.model.study import Measurement

    named = named_workloads(options.workload, options.words).printing(options.metrics)
    uses = named.counted_from(options.after, options.skip_start).uses()
    settings = _settings(replace(options, memory=memory_for(options.words, options.memory)))
    measured = Measurement(uses, settings)
    return replace(measured, perturbations=options.perturbations) if options.perturbations else measured


def _settings(options: MeasurementOptions) -> "MachineSettings":
    """The machine that the options describe. Raises BadOption."""
    from ktrial.model.study import MachineSettings

    settings = MachineSettings(boot=tuple(options.boot or ()))
    if options.cpus is not None:
        settings = settings.model_copy(update={"cpus": options.cpus})
    if options.memory is None:
        return settings
    return settings.model_copy(update={"memory_mib": memory_of(options.memory)})


def measurement_like(baseline: "Baseline", options: MeasurementOptions) -> "Measurement":
    """How a saved baseline was measured; a part of its workloads, where some are named.

    Raises AnalysisUsageError where an option says otherwise.
    """
    if options.words:
        raise BadOption("--", _OF_A_BASELINE)
    for option in options.of_command:
        raise BadOption(option, _OF_A_BASELINE)
    measured = baseline.measurement
    labels = {use.label: use for use in measured.workloads}
    for name in options.workload_names:
        if name not in labels:
            raise _not_of(baseline, f"workload {name}", ", ".join(labels))
    if options.workload_names:
        measured = replace(measured, workloads=tuple(labels[name] for name in options.workload_names))
    settings = _settings(options)
    pairs = {
        "--memory": (options.memory, settings.memory_mib, measured.settings.memory_mib),
        "--cpus": (options.cpus, settings.cpus, measured.settings.cpus),
        "--boot": (options.boot, settings.boot, measured.settings.boot),
        "--perturbations": (options.perturbations, options.perturbations, measured.perturbations),
    }
    for option, (value, new, old) in pairs.items():
        if value and new != old:
            raise _not_of(baseline, f"{option} {_words(new)}", _words(old))
    return measured


def _not_of(baseline: "Baseline", option: str, measured: str) -> AnalysisUsageError:
    return AnalysisUsageError(
        f"Baseline {baseline.label} was not measured with {option}; it has {measured}.",
        hint=f"leave the option out, or save it anew: ktrial check baseline save {baseline.label} …",
    )


def _words(value: object) -> str:
    return " ".join(value) or "none" if isinstance(value, tuple) else str(value)


def limits(texts: list[str], uses: "tuple[WorkloadUse, ...]") -> dict[str, float]:
    """The limit of each workload: `+1%` for all, `fork=+2%` for one. Raises AnalysisUsageError."""
    from ktrial.experiment.regression_check import DEFAULT_LIMIT

    labels = [use.label for use in uses]
    common = DEFAULT_LIMIT
    by_workload: dict[str, float] = {}
    for text in texts:
        workload, size = limit_of(text)
        if workload is None:
            common = size
        elif workload in labels:
            by_workload[workload] = size
        else:
            raise _bad_limit(text, f"{workload} is none of the workloads, {', '.join(labels)}")
    return {label: by_workload.get(label, common) for label in labels}


def limit_of(text: str) -> tuple[str | None, float]:
    """The workload that a limit is for, None for all, and its size. Raises AnalysisUsageError."""
    match = _LIMIT.fullmatch(text.strip())
    try:
        size = notation.margin(match["size"] if match else text)
    except ValueError as error:
        raise _bad_limit(text, str(error).replace("a margin", "a limit")) from None
    return (match["workload"] if match else None), size


def _bad_limit(text: str, problem: str) -> AnalysisUsageError:
    return AnalysisUsageError(
        f"--max {text}: {problem}.", hint="write --max +1%, or for one workload --max fork=+2%"
    )


def runs(store: "Store", observer: "Observer", jobs: int | None) -> "Runs":
    """Where trials run: on the machine that the settings name."""
    from ktrial.experiment.single_kernel import Runs

    return Runs(store, observer, jobs)


Fuzz = Annotated[
    int,
    typer.Option(
        "--fuzz", min=0, max=2, metavar="N", help="How many lines around a patch's hunk may differ."
    ),
]


@dataclass(frozen=True)
class KernelOptions:
    """The kernel that a command is about: one that has a name, or one to be built from a source first."""

    kernel: str | None = Option(None, metavar="NAME", help="The kernel.", autocompletion=kernel_names)
    source: str | None = Option(
        None,
        metavar="[DIR]",
        help=(
            "Build the kernel from this tree (or git:DIR@REVISION, a tarball); alone: from the current "
            "directory."
        ),
    )
    config: str | None = Option(
        None, metavar="guest|debian:6.12|FILE", help=("With --source: the configuration.")
    )
    option: list[str] | None = Option(
        None, metavar="NAME=y", help="With --source: a configuration option; may be repeated."
    )

    def selection(self) -> "KernelSelection":
        """What is no kernel or source is refused here, before anything is booted.

        Raises BadOption, KernelError.
        """
        from ktrial.kernels.build.builds import check_request
        from ktrial.kernels.build.requests import build_request, requested
        from ktrial.model.kernel import DEBIAN, GUEST, REACHED

        if self.kernel is not None and self.source is not None:
            raise BadOption("--kernel and --source", "give one of the two")
        if self.source is None:
            if self.config is not None or self.option:
                raise BadOption("--config and --option", "they go with --source")
            if self.kernel is None:
                raise BadOption("--kernel or --source", "give one of the two: which kernel")
            return KernelSelection(kernel=registry().kernel_name(self.kernel))
        kind, colon, _ = self.source.partition(":")
        options, config = self.option or [], self.config or GUEST
        is_shipped = config == DEBIAN or config.startswith((f"{DEBIAN}:", REACHED))
        if Path(self.source).is_file() or (colon and "/" not in kind) or is_shipped:
            build = requested(self.source, config=config, options=options, directory=Path.cwd())
            return KernelSelection(build=build)
        request = build_request(Path(self.source), config, tuple(options))
        check_request(request)
        return KernelSelection(source=request)


@dataclass(frozen=True)
class KernelSelection:
    """A kernel's name, or what to build."""

    kernel: str = ""
    source: "BuildRequest | None" = None
    """In a directory that is kept for the tree."""
    build: "Build | None" = None
    """By content: a commit, a tarball, a package."""

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


@dataclass(frozen=True)
class BuildOptions:
    """How a source is configured and compiled, for `bisect patches`, `series` and `kernel build`."""

    config: str = Option(
        "guest",
        metavar="guest|defconfig|debian:6.12|FILE",
        help=("The configuration; debian:6.12 or reached:FILE: what guests reach of it."),
    )
    option: list[str] | None = Option(None, metavar="NAME=y", help="A configuration option; may be repeated.")
    make: list[str] | None = Option(None, metavar="KCFLAGS=-O3", help="A variable of make; may be repeated.")
    fuzz: Fuzz = 0

    def each(self) -> "tuple[BuildOptions, ...]":
        """The same for each of the configurations that `--config guest,debian:6.12` names.

        Raises BadOption where those are not one or two.
        """
        if "," not in self.config or Path(self.config).exists():
            return (self,)
        names = [name.strip() for name in self.config.split(",")]
        if len(names) != 2 or not all(names) or names[0] == names[1]:
            raise BadOption("--config", "one configuration, or two different ones: guest,debian:6.12")
        return tuple(replace(self, config=name) for name in names)

    def build(self, source: str, patches: "tuple[str, ...]" = (), *, fuzz: int | None = None) -> "Build":
        """The build of a source. Raises BuildError."""
        from ktrial.kernels.build.requests import requested, variable_of

        if "," in self.config and not Path(self.config).exists():
            raise BadOption("--config", "a kernel has one configuration; ktrial series compares two")
        return requested(
            source,
            config=self.config,
            options=self.option or [],
            patches=patches,
            make=dict(variable_of(text) for text in self.make or ()),
            fuzz=self.fuzz if fuzz is None else fuzz,
            directory=Path.cwd(),
        )
