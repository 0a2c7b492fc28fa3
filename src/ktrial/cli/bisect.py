"""`ktrial bisect`: which of the differences between A and B explains the one that was measured?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.bisecting import (
    AllowHostChanges,
    Alpha,
    DryRun,
    FirstBlocks,
    Limit,
    MachineName,
    Margin,
    MetricNames,
    StudyFile,
    TopFunctions,
    Wanted,
    study_at,
)
from ktrial.cli.counting import BootParameters
from ktrial.cli.measuring import Cpus, Given, MemorySize, Workloads
from ktrial.cli.options import Jobs, Json, Perturbations, StoreOption, kernel_names

if TYPE_CHECKING:
    from ktrial.kernels import Progress
    from ktrial.model.build import Build, Patch
    from ktrial.model.kernel import Kernel
    from ktrial.model.study import Study
    from ktrial.runner.one_kernel import Runs
    from ktrial.search.bisect.config import Builder
    from ktrial.search.bisect.investigation import SubsetGround
    from ktrial.search.bisect.knobs import KnobRange
    from ktrial.search.bisect.terms import Terms

app = typer.Typer(
    help="Find which difference between A and B matters.", no_args_is_help=True, rich_markup_mode=None
)

Source = Annotated[
    str | None,
    typer.Option("--source", metavar="S", help="A source: debian:linux-source-6.1, a directory, a tarball."),
]


@app.command("config")
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
    memory: MemorySize = None,
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
    wanted = Wanted(
        Given.of(workload, memory, cpus, boot, perturbations),
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
    builds = tuple(_build(one, source, wanted.study) for one in (before, after))
    terms = wanted.terms("config", before, after)
    with wanted.runs() as runs:
        from ktrial.search.bisect.config import config_ground

        ground = config_ground(builds[0], builds[1], (before, after), _builder(), _progress(runs, before))
        _searched(ground, terms, wanted, runs, builds=True)


@app.command("patches")
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
    memory: MemorySize = None,
    cpus: Cpus = None,
    boot: BootParameters = None,
    top: TopFunctions = 5,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Find which patch of a series matters.

    A is the source as it is, B the source with all patches.
    """
    from ktrial.search.bisect.patches import PatchGround

    wanted = Wanted(
        Given.of(workload, memory, cpus, boot, perturbations),
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
    plain, series = _with_series(source, configuration, option or [], patches)
    terms = wanted.terms("patches", source, f"{source} with {patches}")
    with wanted.runs() as runs:
        ground = PatchGround(plain, series, _builder(), _progress(runs, source))
        _searched(ground, terms, wanted, runs, builds=True)


@app.command("versions")
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
    memory: MemorySize = None,
    cpus: Cpus = None,
    boot: BootParameters = None,
    top: TopFunctions = 5,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Find between which two Debian releases a number changes.

    All releases between A and B that the mirrors hold are candidates; those that are needed are fetched.
    """
    from ktrial.kernels.releases import releases_between
    from ktrial.search.bisect.plan import plan_of
    from ktrial.search.bisect.versions import ReleaseGround, VersionInvestigation

    wanted = Wanted(
        Given.of(workload, memory, cpus, boot, perturbations),
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
    with wanted.runs() as runs:
        found = releases_between(releases, _progress(runs, "releases"))
        names = [one.name for one in found]
        terms = wanted.terms("versions", names[0], names[-1])
        wanted.show_plan(plan_of(terms, names, len(names), runs.store, in_order=True))
        result = VersionInvestigation(ReleaseGround(names, runs.kernel), terms, runs).run()
    wanted.show(result)


@app.command("knobs")
def knobs(
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="The kernel.", autocompletion=kernel_names)
    ] = None,
    knob: Annotated[
        list[str] | None,
        typer.Option("--knob", metavar="NAME=a..b", help="A knob and its values in A and B; repeated."),
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
    memory: MemorySize = None,
    cpus: Cpus = None,
    boot: BootParameters = None,
    top: TopFunctions = 5,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Find which of several knobs matters, or which matter together.

    With --study, the knobs may be the study's factors of two levels; its machine and workloads are used.
    """
    from ktrial.search.bisect.knobs import KnobGround

    wanted = Wanted(
        Given.of(workload, memory, cpus, boot, perturbations),
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
    ranges, name = _ranges(knob or [], before, after, wanted), _kernel(kernel, wanted)
    terms = wanted.terms("knobs", "A", "B")
    with wanted.runs() as runs:
        ground = KnobGround(lambda: _obtained(runs, name), ranges)
        _searched(ground, terms, wanted, runs)


def _ranges(
    knobs: list[str], before: Path | None, after: Path | None, wanted: Wanted
) -> "tuple[KnobRange, ...]":
    from ktrial.cli.counting import BadOption
    from ktrial.errors import NothingDiffers
    from ktrial.search.bisect.knobs import knob_ranges, knobs_of_files, knobs_of_study

    if bool(before) != bool(after):
        raise BadOption(option="--from and --to", problem="give both, or none")
    if before and after:
        found = knobs_of_files(before, after)
    else:
        found = knob_ranges(knobs) if knobs else knobs_of_study(wanted.study) if wanted.study else ()
    if not found and not (knobs or before or wanted.study):
        raise BadOption(
            option="--knob", problem="which knobs? --knob vm.dirty_ratio=20..40, or --from and --to"
        )
    if not found:
        raise NothingDiffers(before="A", after="B", what="knob", advice="give two values that differ")
    return found


def _kernel(kernel: str | None, wanted: Wanted) -> str:
    from ktrial.cli.counting import BadOption
    from ktrial.cli.known import known

    if wanted.on_host:
        return "host"
    name = kernel or (wanted.study.machine.kernel if wanted.study else "")
    if not name:
        raise BadOption(option="--kernel", problem="which kernel? ktrial kernel list")
    return known().kernel_name(name)


def _obtained(runs: "Runs", name: str) -> "Kernel":
    """The kernel of that name; the running one where trials run on this system."""
    from ktrial.runner.this_system import RunsAlready

    return runs.machine.kernel() if isinstance(runs.machine, RunsAlready) else runs.kernel(name)


def _with_series(
    source: str, configuration: str, options: list[str], series: Path
) -> "tuple[Build, tuple[Patch, ...]]":
    """The source without the series, and the series. Raises BuildError, BadSeries."""
    from ktrial.kernels.source import requested
    from ktrial.search.bisect.patches import series_at

    def asked(*patches: str) -> "Build":
        here = Path.cwd()
        return requested(source, config=configuration, options=options, patches=patches, directory=here)

    return asked(), asked(*series_at(series)).patches


def _searched(
    ground: "SubsetGround", terms: "Terms", wanted: Wanted, runs: "Runs", *, builds: bool = False
) -> None:
    """Show the plan; search; show the result."""
    from ktrial.cli.counting import BadOption
    from ktrial.search.bisect.in_time import TimedInvestigation
    from ktrial.search.bisect.investigation import Investigation
    from ktrial.search.bisect.plan import plan_of

    if builds and wanted.on_host:
        raise BadOption(
            option="--machine host", problem="this system boots no other kernel; take exact or kvm"
        )

    names = [" + ".join(item.name for item in ground.described(at)) for at in range(ground.items.count)]
    differing = sum(len(ground.described(at)) for at in range(ground.items.count))
    wanted.show_plan(plan_of(terms, names, differing, runs.store, builds=builds))
    kind = TimedInvestigation if wanted.in_time else Investigation
    wanted.show(kind(ground, terms, runs).run())


def _build(text: str, source: str | None, study: "Study | None") -> "Build":
    """What A or B is. Raises NoSuchBuild, BuildError."""
    from ktrial import kernels
    from ktrial.errors import KernelNotFound, NoSuchBuild
    from ktrial.errors.nearest import nearest
    from ktrial.kernels.source import requested

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
    from ktrial.search.bisect.config import the_real_builder

    return the_real_builder()


def _progress(runs: "Runs", name: str) -> "Progress":
    """Steps of builds and fetches, told to whoever watches the runs."""

    def told(what: str, done: int = 0, total: int = 0) -> None:
        runs.observer.kernel_progress(name, what, done, total)

    return told
