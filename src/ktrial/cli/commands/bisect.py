"""`ktrial bisect`: which of the differences between A and B explains the one that was measured?"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ktrial.bisect.errors import BadBisection
from ktrial.cli.command_line import Argument, BadOption, BadUsage, Option, command_group, examples
from ktrial.cli.console import messages
from ktrial.cli.options.arguments import Arguments, WorkloadArguments, named_by
from ktrial.cli.options.common import DryRun, Json, Margin, Verbose, on_fleet
from ktrial.cli.options.completion import (
    kernel_names,
    knob_settings,
    machine_names,
    metric_names,
    study_files,
)
from ktrial.cli.options.kernel_measurement import BuildOptions, MeasurementOptions
from ktrial.cli.running.preflight import fetching_tools
from ktrial.cli.studies import registry
from ktrial.kernels.errors import BadKernelName, KernelNotFound
from ktrial.model.notation import nearest

if TYPE_CHECKING:
    from ktrial.bisect.knobs import KnobRange
    from ktrial.cli.running.bisection import Bisection
    from ktrial.model.kernel import Build, Kernel
    from ktrial.model.study import Study

app = command_group("Find which difference between A and B matters.")
SomeBisectOptions = TypeVar("SomeBisectOptions", bound="BisectOptions")


@dataclass(frozen=True)
class BisectOptions(MeasurementOptions):
    """What all kinds of bisections share."""

    study: Path | None = Option(
        None, metavar="FILE", help="Measure as this study does.", autocompletion=study_files
    )
    margin: Margin = None
    metric: list[str] | None = Option(
        None,
        metavar="NAME",
        help="The metric to explain; else the first of each workload.",
        autocompletion=metric_names,
    )
    limit: int | None = Option(None, min=3, metavar="N", help="Measure at most this many candidates.")
    dry_run: DryRun = False
    json: Json = False
    verbose: Verbose = False
    top: int = Option(5, min=0, metavar="N", help="With -v: functions to show for each metric.")
    machine: str | None = None
    alpha: float = 0.05
    blocks: int = 60
    allow_host_changes: bool = False


@dataclass(frozen=True)
class TimedBisectOptions(BisectOptions):
    """Of those that may also be done in real time."""

    machine: str | None = Option(
        None,
        metavar="NAME",
        help="exact; in real time: kvm, or host for knobs.",
        autocompletion=machine_names,
    )
    alpha: float = Option(
        0.05, min=0.0001, max=0.3, metavar="P", help="In real time: the largest chance of a wrong answer."
    )
    blocks: int = Option(
        60, min=6, max=480, metavar="N", help=("In real time: blocks of A and B at the start.")
    )


@dataclass(frozen=True)
class KnobBisectOptions(TimedBisectOptions):
    """Of the one that may change this system."""

    allow_host_changes: bool = Option(
        False, "--allow-host-changes", help="With --machine host: change this system's settings."
    )


@app.declare("config")
@examples(
    "ktrial bisect config guest guest+SLUB_DEBUG_ON=y fork --source .",
    "ktrial bisect config build:before build:after fork --dry-run",
)
@on_fleet
def config(
    *,
    before: str = Argument(..., metavar="A", help="A built kernel, or a configuration."),
    after: str = Argument(..., metavar="B", help="Another one of the same source."),
    arguments: WorkloadArguments = None,
    options: TimedBisectOptions,
    source: str | None = Option(
        None, metavar="S", help="A source: debian:linux-source-6.1, a directory, a tarball."
    ),
) -> None:
    """Find which options of two configurations matter.

    A and B are two kernels that ktrial built (build:NAME). With --source, they are two configurations of it:
    guest, defconfig, debian or a file, with added options (guest+SLUB_DEBUG_ON=y). With --study, they are two
    kernels that the study builds. Of Debian's kernels (debian:6.1) the configurations are built here.
    """
    from ktrial.bisect.builds import config_ground
    from ktrial.cli.running.bisection import Bisection
    from ktrial.experiment.jobs import storage_modules
    from ktrial.experiment.resources import default_builder

    bisection = Bisection(_in_workloads(options, arguments))
    builds = tuple(_build(text, source, bisection.study) for text in (before, after))
    if note := "" if source else _of_debian((before, after)):
        messages().print(note)
    terms = bisection.terms("config", before, after)
    bisection.check_system(builds=builds)
    with bisection.runs() as runs:
        progress = bisection.progress_of(runs, before)
        builder = default_builder()
        settings = terms.measurement.settings
        loaded = (*settings.modules, *storage_modules(settings))
        ground = config_ground(builds[0], builds[1], (before, after), builder, progress, loaded)
        bisection.search(ground, terms, runs, builds=True, together=len(ground.grouped.unloaded))


def _in_workloads(options: SomeBisectOptions, arguments: list[str] | None) -> SomeBisectOptions:
    """The options with the workloads that the arguments name, too. Raises BadUsage."""
    named = named_by(arguments).with_options((), options.workload)
    return replace(options, workload=list(named.only_workloads("A and B come before it")) or None)


def _build(text: str, source: str | None, study: "Study | None") -> "Build":
    """What A or B is. Raises BadBisection, BuildError."""
    from ktrial.kernels import kernel_registry
    from ktrial.kernels.build.requests import requested

    if study and text in study.builds:
        return study.builds[text]
    if source:
        name, *options = text.split("+")
        return requested(source, config=name, options=options, directory=Path.cwd())
    kernel = _cached(text)
    if kernel and (series := _debian_series(kernel)):
        return requested(f"debian:linux-source-{series}", config=str(kernel.config), directory=Path.cwd())
    build = kernel.origin.build if kernel else None
    if build is None:
        names = [kernel.name for kernel in kernel_registry.all_kernels() if kernel.origin.build]
        similar = nearest(text, [*names, *(study.builds if study else ())])
        raise BadBisection(
            f"ktrial has built no kernel named {text}{similar}.",
            hint="give two build: kernels (ktrial kernel list), two of Debian's that are here (ktrial "
            "kernel add 6.1), or --source S with two configurations",
        )
    return build


def _cached(text: str) -> "Kernel | None":
    from ktrial.kernels import kernel_registry

    with suppress(KernelNotFound, BadKernelName):
        return kernel_registry.get(registry().kernel_name(text))
    return None


def _debian_series(kernel: "Kernel | None") -> str:
    """`6.1` of a kernel that Debian built, whose configuration is here; else empty."""
    from ktrial.model.kernel import DEBIAN

    if kernel is None or kernel.origin.provider != DEBIAN or kernel.config is None:
        return ""
    return ".".join(kernel.release.split(".")[:2])


def _of_debian(texts: Sequence[str]) -> str:
    """What a search says of kernels that it cannot repeat; empty where none is one."""
    shown = [text for text in texts if _debian_series(_cached(text))]
    if not shown:
        return ""
    are, whose = ("is", "its configuration is") if len(shown) == 1 else ("are", "their configurations are")
    return (
        f"note: {' and '.join(shown)} {are} Debian's, whose builds cannot be repeated: {whose} built here, "
        "of Debian's source, by this system's compiler and without Debian's signatures. A and B are measured "
        "first: where they do not differ, something else makes the difference"
    )


@app.declare("patches")
@examples("ktrial bisect patches fork --patches patches/series --source linux")
@on_fleet
def patches(
    *,
    arguments: WorkloadArguments = None,
    patches: Path = Option(..., metavar="DIR|series", help="The series: a directory, or quilt's file."),
    source: str = Option(..., metavar="S", help="What it applies to: debian:linux-source-6.1, DIR…"),
    build: BuildOptions,
    options: TimedBisectOptions,
) -> None:
    """Find which patch of a series matters.

    A is the source as it is, B the source with all patches.
    """
    from ktrial.bisect.builds import PatchGround, series_at
    from ktrial.cli.running.bisection import Bisection
    from ktrial.experiment.resources import default_builder

    bisection = Bisection(_in_workloads(options, arguments))
    plain = build.build(source, fuzz=0)
    series = build.build(source, tuple(series_at(patches)), fuzz=0).patches
    terms = bisection.terms("patches", source, f"{source} with {patches}")
    bisection.check_system(builds=(plain.model_copy(update={"patches": series}),))
    with bisection.runs() as runs:
        progress = bisection.progress_of(runs, source)
        ground = PatchGround(plain, series, default_builder(), progress, build.fuzz)
        bisection.search(ground, terms, runs, builds=True)


@app.declare("versions")
@examples("ktrial bisect versions 6.1..7.2:cloud fork --dry-run")
@on_fleet
def versions(
    *,
    releases: str = Argument(..., metavar="A..B[:FLAVOUR]", help="Two releases: 5.10..6.12"),
    arguments: WorkloadArguments = None,
    options: BisectOptions,
) -> None:
    """Find between which two Debian releases a number changes.

    The candidates are all releases between A and B on the mirrors. ktrial downloads those that it needs.
    """
    from ktrial.bisect.search import plan_of
    from ktrial.bisect.versions import ReleaseGround, VersionBisection
    from ktrial.cli.running.bisection import Bisection
    from ktrial.kernels.providers.debian import releases_between

    bisection = Bisection(_in_workloads(options, arguments))
    bisection.check_system(tools=fetching_tools())
    with bisection.runs() as runs:
        between = releases_between(releases, bisection.progress_of(runs, "releases"))
        names = [release.name for release in between]
        terms = bisection.terms("versions", names[0], names[-1])
        bisection.show_plan(plan_of(terms, names, len(names), runs.store, in_order=True))
        ground = ReleaseGround(names, runs.kernel)
        bisection.show(VersionBisection(ground, terms, runs, bisection.show).run())


@app.declare("knobs")
@examples(
    "ktrial bisect knobs host fork --knob vm.swappiness=60..0",
    "ktrial bisect knobs host fork --from a.conf --to b.conf",
)
@on_fleet
def knobs(
    options: KnobBisectOptions,
    arguments: Arguments = None,
    kernel: str | None = Option(None, metavar="NAME", help="The kernel.", autocompletion=kernel_names),
    knob: list[str] | None = Option(
        None,
        metavar="NAME=a..b",
        help="A knob and its values in A and B; repeated.",
        autocompletion=knob_settings,
    ),
    before: Path | None = Option(
        None, "--from", metavar="FILE", help="A: NAME = VALUE lines, like sysctl.conf."
    ),
    after: Path | None = Option(None, "--to", metavar="FILE", help="B, with the same knobs."),
) -> None:
    """Find which of several knobs matters, or which matter together.

    With --study, the knobs may be the study's factors of two levels. Its machine and workloads are used.
    """
    from ktrial.bisect.knobs import KnobGround
    from ktrial.cli.running.bisection import Bisection
    from ktrial.experiment.preflight import check_knobs
    from ktrial.experiment.resources import RunsAlready

    named = named_by(arguments).with_options(kernel, options.workload)
    if len(named.kernels) > 1:
        raise BadUsage(
            f"{', '.join(named.kernels)}: the knobs of one kernel are searched, not of several.",
            hint="ktrial bisect knobs 6.12 fork",
        )
    bisection = Bisection(replace(options, workload=list(named.workloads) or None))
    ranges, name = (
        _ranges(knob or [], before, after, bisection.study),
        _kernel_name(next(iter(named.kernels), None), bisection),
    )
    terms = bisection.terms("knobs", "A", "B")
    measured = terms.measurement
    # A file may be that of a whole system: only what is named has to be able to act.
    check_knobs([text.partition("=")[0] for text in knob or []], measured.settings)
    bisection.check_system(kernels=() if bisection.on_host else (name,))
    with bisection.runs() as runs:
        machine = runs.machine  # the running kernel, where trials run on this system
        ground = KnobGround(
            lambda: machine.kernel() if isinstance(machine, RunsAlready) else runs.kernel(name), ranges
        )
        bisection.search(ground, terms, runs)


def _ranges(
    knobs: list[str], before: Path | None, after: Path | None, study: "Study | None"
) -> "tuple[KnobRange, ...]":
    from ktrial.bisect.knobs import check_names, knob_ranges, knobs_of_files, knobs_of_study

    if bool(before) != bool(after):
        raise BadOption("--from and --to", "give both, or none")
    if before and after:
        ranges = knobs_of_files(before, after)
    else:
        ranges = knob_ranges(knobs) if knobs else knobs_of_study(study) if study else ()
    if not ranges and not (knobs or before or study):
        raise BadOption("--knob", "which knobs? --knob vm.overcommit_ratio=50..80, or --from and --to")
    if not ranges:
        raise BadBisection(
            "A and B do not differ in any knob: there is nothing to search.",
            hint="give two values that differ",
        )
    check_names(ranges)
    return ranges


def _kernel_name(kernel: str | None, bisection: "Bisection") -> str:

    if bisection.on_host:
        return "host"
    name = kernel or (bisection.study.machine.kernel if bisection.study else "")
    if not name:
        raise BadOption("--kernel", "which kernel? ktrial kernel list")
    return registry().kernel_name(name)
