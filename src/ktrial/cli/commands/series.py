"""`ktrial series` and `watch`: what each patch of a series costs, and what is new of followed kernels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from ktrial.cli.command_line import Argument, BadOption, Option, examples, users_command
from ktrial.cli.console import (
    append_text,
    check_page,
    check_writable,
    output,
    print_json,
    write_page,
    write_text,
)
from ktrial.cli.error_handling import code_of
from ktrial.cli.options import kernel_measurement
from ktrial.cli.options.arguments import is_workload, named_by
from ktrial.cli.options.common import Json, Verbose, duration, on_fleet_in_bisection
from ktrial.cli.options.completion import kernel_names, workload_sets
from ktrial.cli.options.kernel_measurement import (
    BuildOptions,
    GuestOptions,
    Limits,
    MeasurementOptions,
    WorkloadSets,
)
from ktrial.cli.options.workloads import workload_names_of
from ktrial.cli.running.preflight import check_first
from ktrial.cli.studies import open_store, registry
from ktrial.format.sanitize import one_line

if TYPE_CHECKING:
    from ktrial.cli.running.series import MeasuredSeries
    from ktrial.experiment.watch import TargetLook
    from ktrial.model.series_result import Alone, SeriesResult
    from ktrial.series.commit_ranges import CommitsBetween


@dataclass(frozen=True)
class SeriesOptions(MeasurementOptions):
    """Which series, and how its patches are measured."""

    arguments: list[str] | None = Argument(
        None,
        metavar="[BASE..TIP] [WORKLOAD…]",
        help="Commits of a git tree (HEAD~12..HEAD), then workloads.",
        autocompletion=workload_sets,
        show_default=False,
    )
    commits: str | None = None
    """Those that the arguments name."""
    git: Path | None = Option(None, metavar="DIR", help="The git tree; else the one it stands in.")
    mbox: Path | None = Option(
        None, metavar="FILE", help="Mails: git format-patch --stdout, b4 am; or a diff."
    )
    quilt: Path | None = Option(
        None, metavar="DIR", help="A series file's directory, or debian:linux-source-6.1/patches-rt."
    )
    onto: str | None = Option(None, metavar="S", help="What they apply to: debian:linux-source-6.1, DIR…")
    candidate: list[str] | None = Option(
        None, metavar="FILE", help="A workload of yours (.toml, .c) that ktrial may choose, too."
    )
    maximum: Limits = None
    every: int | None = Option(
        None, min=2, metavar="N", help="Measure every Nth kernel, then only between ends that differ."
    )
    thorough: bool = Option(
        False,
        "--thorough",
        help=("With --every: also look between ends that do not differ; changes may cancel."),
    )
    rebuild: int = Option(
        24,
        min=0,
        metavar="N",
        help="Mails, quilts: also build every Nth kernel and the last from scratch (0: none).",
    )
    each_alone: bool = Option(False, "--each-alone", help="Measure each patch alone on the base, too.")
    trust: bool = Option(False, "--trust", help="Build patches of others without a sandbox.")
    machine: Literal["exact", "exact-parallel"] = Option(
        "exact", metavar="exact|exact-parallel", help="exact-parallel: CPUs in simulated time."
    )
    model: str = Option(
        "none", metavar="M", help="Machine exact: model cycles too: default, desktop, FILE.toml."
    )
    route: bool | None = Option(
        None,
        "--route/--no-route",
        help="Measure on 4 simulated CPUs, too; else what rests on locks.",
        show_default=False,
    )


@examples(
    "ktrial series v6.1.170..my-branch fork,pipe --git linux",
    "ktrial series my.patch --onto debian:linux-source-6.1 --max +0.5%",
    "ktrial series --quilt debian/patches-rt --onto linux --text reply.txt",
)
@on_fleet_in_bisection
def series(
    context: typer.Context,
    options: SeriesOptions,
    build: BuildOptions,
    top: int = Option(3, min=0, metavar="N", help="Functions to show for each change."),
    dry_run: bool = Option(
        False, "--dry-run", help="Show which patches apply, and an estimate; build and boot nothing."
    ),
    text: Path | None = Option(None, metavar="FILE", help="Write the report as plain text too."),
    markdown: Path | None = Option(None, metavar="FILE.md", help="Write it as Markdown too."),
    html: Path | None = Option(None, metavar="FILE.html", help="Write it as one HTML page too."),
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Show what each patch of a series costs, and where.

    The report begins with code that no workload ran. The kernels are built one after the other. Without
    workloads, ktrial takes the built-in ones that run what the series changes. Interrupted, the same command
    goes on where it was. --config guest,debian:6.12 shows both configurations side by side.

    Exit codes: 0 within --max (+1%), each patch and all together, or nothing that they change ran; 1 beyond;
    125 if a patch does not apply, build or boot, or nothing can be decided; 2 for a mistake on the command
    line; 128 or more for a problem that says nothing about the series.
    """
    from ktrial.cli.running.series import MeasuredSeries, as_json, print_series
    from ktrial.report.patch_series import as_text
    from ktrial.report.patch_series_page import as_markdown, series_page

    measured = MeasuredSeries(replace(_with_arguments(options), words=users_command(context)), build)
    check_writable([text, markdown])
    check_page(html)
    if html and len(build.each()) > 1:
        raise BadOption("--html", "a page shows one configuration, and two were given; --text takes both")
    if dry_run:
        measured.show_plan(json=json)
        return
    runs = measured.run()
    if len(runs) > 1:
        raise typer.Exit(_show_pair(measured, runs, PairOutput(top, text, markdown, verbose, json)))
    ((result, alone),) = runs
    command = measured.command
    report = as_text(result, command, top, alone)
    if text:
        write_text(text, report)
    if markdown:
        write_text(markdown, as_markdown(result, command, top, alone))
    if html:
        write_page(html, series_page(result, command, top, alone), command)
    if json:
        print_json(as_json(result, command, alone))
    elif verbose:
        output().print(report, end="", markup=False, highlight=False, soft_wrap=True)
    else:
        print_series(result, output())
    raise typer.Exit(code_of(result.decision))


@dataclass(frozen=True)
class PairOutput:
    """What is shown of a series, and where."""

    top: int
    text: Path | None
    markdown: Path | None
    verbose: bool
    json: bool


def _show_pair(
    measured: "MeasuredSeries", runs: "Sequence[tuple[SeriesResult, tuple[Alone, ...]]]", shown: PairOutput
) -> int:
    """Show a series in two configurations, and return the exit code."""
    from ktrial.cli.running.series import pair_as_json, print_side_by_side
    from ktrial.report.configurations import decision, pair_text
    from ktrial.report.markdown import block

    commands, results = measured.commands, [result for result, _ in runs]
    report = pair_text(runs, commands, shown.top)
    if shown.text:
        write_text(shown.text, report)
    if shown.markdown:
        write_text(shown.markdown, f"{block(report)}\n")
    if shown.json:
        print_json(pair_as_json(runs, measured.command, commands))
    elif shown.verbose:
        output().print(report, end="", markup=False, highlight=False, soft_wrap=True)
    else:
        print_side_by_side(results, output())
    return code_of(decision(results))


def _with_arguments(options: SeriesOptions) -> SeriesOptions:
    """The options with the commits, or the file of patches, and the workloads that the arguments name.

    Raises BadUsage, SeriesNotChosen.
    """
    from ktrial.series.errors import SeriesNotChosen

    first, *others = options.arguments or [""]
    named = first if first and not is_workload(first) else None
    words = others if named else options.arguments
    place = Path(named).expanduser() if named else Path()
    is_given = options.mbox is not None or options.quilt is not None
    if named and is_given and ".." not in named and not place.exists():
        words, named = options.arguments, None  # a workload's name, misspelt
    elif named and place.is_file() and options.mbox is None:  # a patch, or mails
        if any(Path(other).is_file() for other in others):
            hint = "cat them in their order into one: cat 1.patch 2.patch > all.mbx; or --quilt DIR"
            raise SeriesNotChosen("several files of patches were given", hint=hint)
        options, named = replace(options, mbox=place), None
    elif named and (place / "series").is_file() and options.quilt is None:
        options, named = replace(options, quilt=place), None
    workloads = named_by(words).with_options((), options.workload).only_workloads("a series has its own")
    return replace(options, commits=named, workload=list(workloads) or None)


@examples("ktrial watch 6.12 --once", "ktrial watch 6.12 --every 6h --workloads fork,pipe")
@on_fleet_in_bisection
def watch(
    *,
    targets: list[str] = Argument(
        ..., metavar="KERNEL…", help="debian:6.12, or git:DIR@BRANCH.", autocompletion=kernel_names
    ),
    guest: GuestOptions,
    workloads: WorkloadSets = None,
    maximum: Limits = None,
    once: bool = Option(False, "--once", help="Look once, for cron and CI."),
    every: str = Option("6h", metavar="6h", help="Else: the time between two looks."),
    top: int = Option(3, min=0, metavar="N", help="Functions to show for each change."),
    commits: bool = Option(
        True, "--commits/--no-commits", help="With a branch: find the commits that made a difference."
    ),
    summary: Path | None = Option(None, metavar="FILE.md", help="Append what is found, as Markdown."),
    json: Json = False,
) -> None:
    """Follow kernels: run and compare what is new.

    The store keeps what was seen last. If the numbers of a branch have changed, the commits that made the
    difference are built and measured, as ktrial series --every does. Exit codes of --once, as in check:
    0 nothing beyond; 1 beyond; 125 if a kernel is not available or does not boot, or nothing can be decided.
    """
    import time

    from ktrial.experiment.regression_check import worst

    seconds = duration("--every", every)
    options = MeasurementOptions(**vars(guest), workload=workload_names_of(workloads or ["quick"]))
    check_first(kernels=targets, workloads=options.workload, jobs=options.jobs)
    while True:
        looks, between = _looks(targets, options, maximum or [], commits=commits)
        _tell(looks, between, top, summary, json=json)
        if once:
            raise typer.Exit(code_of(worst(look.decision for look in looks)))
        time.sleep(seconds)


def _looks(
    targets: list[str], options: MeasurementOptions, maximum: list[str], *, commits: bool
) -> "tuple[list[TargetLook], dict[str, CommitsBetween]]":
    """A look at each kernel; of those that are not what they were, target → the commits between."""
    from ktrial.cli.progress import progress
    from ktrial.cli.running.regressions import record_check
    from ktrial.experiment.watch import look
    from ktrial.series.commit_ranges import commits_between

    measured = kernel_measurement.measurement(options)
    limits = kernel_measurement.limits(maximum, measured.workloads)
    kernel_name = registry().kernel_name
    names = (text if text.startswith("git:") else kernel_name(text) for text in targets)
    with open_store(options.store) as store, progress() as observer:
        runs = kernel_measurement.runs(store, observer, options.jobs)
        looks = [
            replace(seen, check=record_check(store, seen.check, "watch")) if seen.check else seen
            for seen in (look(target, measured, limits, runs) for target in dict.fromkeys(names))
        ]
        between = {}
        for seen in looks if commits else ():
            if new_commits := commits_between(seen, measured, limits, runs, observer.notice):
                between[seen.target] = new_commits
        return looks, between


def _tell(
    looks: "Sequence[TargetLook]",
    between: "Mapping[str, CommitsBetween]",
    top: int,
    summary: Path | None,
    *,
    json: bool,
) -> None:
    from ktrial.cli.render import regression_check

    if summary:
        append_text(summary, regression_check.looks_as_markdown(looks, top, between))
    if json:
        print_json(regression_check.looks_as_json(looks, between))
        return
    console = output()
    for look in looks:
        if look.check:
            regression_check.print_check(look.check, top, console)
        if look.target in between:
            text = regression_check.commits_as_text(between[look.target], top)
            console.print(text, markup=False, highlight=False, soft_wrap=True)
        console.print(one_line(regression_check.sentence(look)))
