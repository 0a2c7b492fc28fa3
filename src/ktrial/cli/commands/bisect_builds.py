"""`ktrial bisect config` and `patches`: differences of kernels that ktrial builds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.bisect import (
    Alpha,
    DryRun,
    FirstBlocks,
    Limit,
    MachineName,
    Margin,
    MetricNames,
    StudyFile,
    TopFunctions,
)
from ktrial.cli.options.common import BootParameters, GuestMemory, Jobs, Json, Perturbations, StoreOption
from ktrial.cli.options.fleet import on_fleet
from ktrial.cli.options.kernel_measurement import Cpus, MeasurementOptions, Workloads
from ktrial.cli.options.kernel_selection import Fuzz

if TYPE_CHECKING:
    from ktrial.bisect.builds import Builder
    from ktrial.model.kernel import Build, Patch
    from ktrial.model.study import Study

Source = Annotated[
    str | None,
    typer.Option("--source", metavar="S", help="A source: debian:linux-source-6.1, a directory, a tarball."),
]


@examples(
    "ktrial bisect config guest guest+SLUB_DEBUG_ON=y --source . --workload fork",
    "ktrial bisect config build:before build:after --workload fork --dry-run",
)
@on_fleet
def config(
    before: Annotated[str, typer.Argument(metavar="A", help="A built kernel, or a configuration.")],
    after: Annotated[str, typer.Argument(metavar="B", help="Another one, of the same source.")],
    source: Source = None,
    study: StudyFile = None,
    machine: MachineName = None,
    alpha: Alpha = 0.05,
    blocks: FirstBlocks = 60,
    workload: Workloads = None,
    metric: MetricNames = None,
    margin: Margin = None,
    limit: Limit = None,
    dry_run: DryRun = False,
    json: Json = False,
    perturbations: Perturbations = None,
    memory: GuestMemory = None,
    cpus: Cpus = None,
    boot: BootParameters = None,
    top: TopFunctions = 5,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Find which options of two configurations matter.

    A and B are two kernels that ktrial built (build:NAME); with --source, two configurations of it: guest,
    defconfig, debian or a file, and what is set over it (guest+SLUB_DEBUG_ON=y); with --study, two of the
    kernels that the study builds.
    """
    from ktrial.bisect.builds import config_ground
    from ktrial.cli.running.bisection import BisectOptions, progress_of, searched, study_at

    bisection = BisectOptions(
        MeasurementOptions.of(workload, memory, cpus, boot, perturbations),
        study_at(study),
        margin,
        tuple(metric or ()),
        limit,
        json,
        dry_run,
        store,
        jobs,
        top,
        machine,
        alpha,
        blocks,
    )
    builds = tuple(_build(one, source, bisection.study) for one in (before, after))
    terms = bisection.terms("config", before, after)
    bisection.check_system(builds=builds)
    with bisection.runs() as runs:
        ground = config_ground(builds[0], builds[1], (before, after), _builder(), progress_of(runs, before))
        searched(ground, terms, bisection, runs, builds=True)


@examples("ktrial bisect patches --patches patches/series --source linux --workload fork")
@on_fleet
def patches(
    patches: Annotated[
        Path,
        typer.Option("--patches", metavar="DIR|series", help="The series: a directory, or quilt's file."),
    ],
    source: Annotated[
        str, typer.Option("--source", metavar="S", help="What it applies to: debian:linux-source-6.1, DIR…")
    ],
    configuration: Annotated[
        str, typer.Option("--config", metavar="guest|defconfig|FILE", help="What is built in.")
    ] = "guest",
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="NAME=y", help="An option; may be repeated.")
    ] = None,
    make: Annotated[
        list[str] | None,
        typer.Option("--make", metavar="KCFLAGS=-O3", help="A variable of make; may be repeated."),
    ] = None,
    fuzz: Fuzz = 0,
    study: StudyFile = None,
    machine: MachineName = None,
    alpha: Alpha = 0.05,
    blocks: FirstBlocks = 60,
    workload: Workloads = None,
    metric: MetricNames = None,
    margin: Margin = None,
    limit: Limit = None,
    dry_run: DryRun = False,
    json: Json = False,
    perturbations: Perturbations = None,
    memory: GuestMemory = None,
    cpus: Cpus = None,
    boot: BootParameters = None,
    top: TopFunctions = 5,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Find which patch of a series matters.

    A is the source as it is, B the source with all patches.
    """
    from ktrial.bisect.builds import PatchGround
    from ktrial.cli.running.bisection import BisectOptions, progress_of, searched, study_at

    bisection = BisectOptions(
        MeasurementOptions.of(workload, memory, cpus, boot, perturbations),
        study_at(study),
        margin,
        tuple(metric or ()),
        limit,
        json,
        dry_run,
        store,
        jobs,
        top,
        machine,
        alpha,
        blocks,
    )
    plain, series = _with_series(source, configuration, option or [], make or [], patches)
    terms = bisection.terms("patches", source, f"{source} with {patches}")
    bisection.check_system(builds=(plain.model_copy(update={"patches": series}),))
    with bisection.runs() as runs:
        ground = PatchGround(plain, series, _builder(), progress_of(runs, source), fuzz)
        searched(ground, terms, bisection, runs, builds=True)


def _with_series(
    source: str, configuration: str, options: list[str], make: list[str], series: Path
) -> "tuple[Build, tuple[Patch, ...]]":
    """The source without the series, and the series. Raises BuildError, BadSeries."""
    from ktrial.bisect.builds import series_at
    from ktrial.kernels.build import requested, variable_of

    def asked(*patches: str) -> "Build":
        return requested(
            source,
            config=configuration,
            options=options,
            patches=patches,
            make=dict(variable_of(text) for text in make),
            directory=Path.cwd(),
        )

    return asked(), asked(*series_at(series)).patches


def _build(text: str, source: str | None, study: "Study | None") -> "Build":
    """What A or B is. Raises NoSuchBuild, BuildError."""
    from ktrial import kernels
    from ktrial.bisect.errors import NoSuchBuild
    from ktrial.kernels.build import requested
    from ktrial.kernels.errors import KernelNotFound
    from ktrial.model.suggestions import nearest

    if study and text in study.builds:
        return study.builds[text]
    if source:
        name, *options = text.split("+")
        return requested(source, config=name, options=options, directory=Path.cwd())
    known = [kernel.name for kernel in kernels.all_kernels() if kernel.origin.build]
    known += list(study.builds) if study else []
    try:
        build = kernels.get(text).origin.build
    except KernelNotFound:
        build = None
    if build is None:
        raise NoSuchBuild(name=text, similar=nearest(text, known))
    return build


def _builder() -> "Builder":
    from ktrial.bisect.builds import default_builder

    return default_builder()
