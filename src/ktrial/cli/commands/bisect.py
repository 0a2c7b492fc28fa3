"""`ktrial bisect`: which of the differences between A and B explains the one that was measured?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import KtrialCommand, command_group, examples
from ktrial.cli.options.common import (
    BootParameters,
    GuestMemory,
    Jobs,
    Json,
    Perturbations,
    StoreOption,
    on_fleet,
)
from ktrial.cli.options.completion import (
    kernel_names,
    knob_settings,
    machine_names,
    metric_names,
    study_files,
)
from ktrial.cli.options.kernel_measurement import Cpus, Fuzz, MeasurementOptions, Workloads

if TYPE_CHECKING:
    from ktrial.bisect.builds import Builder
    from ktrial.bisect.knobs import KnobRange
    from ktrial.cli.running.bisection import BisectOptions
    from ktrial.experiment.single_kernel import Runs
    from ktrial.model.kernel import Build, Kernel, Patch
    from ktrial.model.study import Study


app = command_group("Find which difference between A and B matters.")


Alpha = Annotated[
    float,
    typer.Option(min=0.0001, max=0.3, metavar="P", help="In real time: chance of a wrong answer, at most."),
]


DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan, and measure nothing.")]


FirstBlocks = Annotated[
    int, typer.Option("--blocks", min=6, max=480, metavar="N", help="In real time: blocks of A and B first.")
]


Limit = Annotated[int | None, typer.Option(min=3, metavar="N", help="Measure at most so many candidates.")]


MachineName = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="NAME",
        help="exact; in real time: kvm, or host for knobs.",
        autocompletion=machine_names,
    ),
]


# The options of `ktrial bisect`.

Margin = Annotated[
    str | None, typer.Option(metavar="1%", help="The smallest change that matters (else 1 %).")
]


MetricNames = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="Explain this metric; else each workload's first.",
        autocompletion=metric_names,
    ),
]


# `ktrial bisect config` and `patches`: differences of kernels that ktrial builds.

Source = Annotated[
    str | None,
    typer.Option("--source", metavar="S", help="A source: debian:linux-source-6.1, a directory, a tarball."),
]


StudyFile = Annotated[
    Path | None,
    typer.Option("--study", metavar="FILE", help="Measure as this study does.", autocompletion=study_files),
]


TopFunctions = Annotated[
    int, typer.Option("--top", min=0, metavar="N", help="Functions to show for each metric.")
]


def _build(text: str, source: str | None, study: "Study | None") -> "Build":
    """What A or B is. Raises BadBisection, BuildError."""
    from ktrial.bisect.errors import BadBisection
    from ktrial.kernels import kernel_registry
    from ktrial.kernels.build.requests import requested
    from ktrial.kernels.errors import KernelNotFound
    from ktrial.model.notation import nearest

    if study and text in study.builds:
        return study.builds[text]
    if source:
        name, *options = text.split("+")
        return requested(source, config=name, options=options, directory=Path.cwd())
    known = [kernel.name for kernel in kernel_registry.all_kernels() if kernel.origin.build]
    known += list(study.builds) if study else []
    try:
        build = kernel_registry.get(text).origin.build
    except KernelNotFound:
        build = None
    if build is None:
        raise BadBisection(
            f"There is no kernel built by ktrial that is called {text}{nearest(text, known)}.",
            hint="give two build: kernels (ktrial kernel list), or --source S with two configurations",
        )
    return build


def _builder() -> "Builder":
    from ktrial.bisect.builds import default_builder

    return default_builder()


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


app.command("config", cls=KtrialCommand)(config)


def _with_series(
    source: str, configuration: str, options: list[str], make: list[str], series: Path
) -> "tuple[Build, tuple[Patch, ...]]":
    """The source without the series, and the series. Raises BuildError, BadSeries."""
    from ktrial.bisect.builds import series_at
    from ktrial.kernels.build.requests import requested, variable_of

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


app.command("patches", cls=KtrialCommand)(patches)


@app.command("versions", cls=KtrialCommand)
@examples("ktrial bisect versions 6.1..7.2:cloud --workload fork --dry-run")
@on_fleet
def versions(
    releases: Annotated[str, typer.Argument(metavar="A..B[:FLAVOUR]", help="Two releases: 5.10..6.12")],
    study: StudyFile = None,
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
    """Find between which two Debian releases a number changes.

    All releases between A and B that the mirrors hold are candidates; those that are needed are fetched.
    """
    from ktrial.bisect.search import plan_of
    from ktrial.bisect.versions import ReleaseGround, VersionBisection
    from ktrial.cli.running.bisection import BisectOptions, progress_of, study_at
    from ktrial.cli.running.preflight import fetching_tools
    from ktrial.kernels.providers.debian import releases_between

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
    )
    bisection.check_system(tools=fetching_tools())
    with bisection.runs() as runs:
        releases_found = releases_between(releases, progress_of(runs, "releases"))
        names = [one.name for one in releases_found]
        terms = bisection.terms("versions", names[0], names[-1])
        bisection.show_plan(plan_of(terms, names, len(names), runs.store, in_order=True))
        result = VersionBisection(ReleaseGround(names, runs.kernel), terms, runs, bisection.show).run()
    bisection.show(result)


AllowHostChanges = Annotated[
    bool, typer.Option("--allow-host-changes", help="With --machine host: change this system's settings.")
]


def _kernel(kernel: str | None, bisection: "BisectOptions") -> str:
    from ktrial.cli.command_line import BadOption
    from ktrial.cli.studies import registry

    if bisection.on_host:
        return "host"
    name = kernel or (bisection.study.machine.kernel if bisection.study else "")
    if not name:
        raise BadOption(option="--kernel", problem="which kernel? ktrial kernel list")
    return registry().kernel_name(name)


def _obtained(runs: "Runs", name: str) -> "Kernel":
    """The kernel of that name; the running one where trials run on this system."""
    from ktrial.experiment.resources import RunsAlready

    return runs.machine.kernel() if isinstance(runs.machine, RunsAlready) else runs.kernel(name)


def _ranges(
    knobs: list[str], before: Path | None, after: Path | None, bisection: "BisectOptions"
) -> "tuple[KnobRange, ...]":
    from ktrial.bisect.errors import BadBisection
    from ktrial.bisect.knobs import check_names, knob_ranges, knobs_of_files, knobs_of_study
    from ktrial.cli.command_line import BadOption

    if bool(before) != bool(after):
        raise BadOption(option="--from and --to", problem="give both, or none")
    if before and after:
        ranges = knobs_of_files(before, after)
    else:
        ranges = knob_ranges(knobs) if knobs else knobs_of_study(bisection.study) if bisection.study else ()
    if not ranges and not (knobs or before or bisection.study):
        raise BadOption(
            option="--knob", problem="which knobs? --knob vm.dirty_ratio=20..40, or --from and --to"
        )
    if not ranges:
        raise BadBisection(
            "A and B do not differ in any knob: there is nothing to search.",
            hint="give two values that differ",
        )
    check_names(ranges)
    return ranges


# `ktrial bisect knobs`: settings of a running kernel.


@examples(
    "ktrial bisect knobs --kernel host --knob vm.swappiness=60..0 --workload fork",
    "ktrial bisect knobs --kernel host --from a.conf --to b.conf --workload fork",
)
@on_fleet
def knobs(
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="The kernel.", autocompletion=kernel_names)
    ] = None,
    knob: Annotated[
        list[str] | None,
        typer.Option(
            "--knob",
            metavar="NAME=a..b",
            help="A knob and its values in A and B; repeated.",
            autocompletion=knob_settings,
        ),
    ] = None,
    before: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="A: NAME = VALUE lines, like sysctl.conf.")
    ] = None,
    after: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="B, with the same knobs.")
    ] = None,
    study: StudyFile = None,
    machine: MachineName = None,
    alpha: Alpha = 0.05,
    blocks: FirstBlocks = 60,
    allow_host_changes: AllowHostChanges = False,
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
    """Find which of several knobs matters, or which matter together.

    With --study, the knobs may be the study's factors of two levels; its machine and workloads are used.
    """
    from ktrial.bisect.knobs import KnobGround
    from ktrial.cli.running.bisection import BisectOptions, searched, study_at

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
        allow_host_changes,
    )
    ranges, name = _ranges(knob or [], before, after, bisection), _kernel(kernel, bisection)
    terms = bisection.terms("knobs", "A", "B")
    bisection.check_system(kernels=() if bisection.on_host else (name,))
    with bisection.runs() as runs:
        ground = KnobGround(lambda: _obtained(runs, name), ranges)
        searched(ground, terms, bisection, runs)


app.command("knobs", cls=KtrialCommand)(knobs)
