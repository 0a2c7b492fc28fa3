"""`ktrial series`: what each patch of a series costs, where, and what nothing exercised."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import (
    BootParameters,
    GuestMemory,
    Jobs,
    Json,
    Perturbations,
    StoreOption,
    on_fleet_in_bisection,
)
from ktrial.cli.options.completion import kernel_names
from ktrial.cli.options.kernel_measurement import (
    Cpus,
    Fuzz,
    Limits,
    MeasurementOptions,
    Workloads,
    WorkloadSets,
)

if TYPE_CHECKING:
    from ktrial.experiment.watch import TargetLook
    from ktrial.model.study import Measurement
    from ktrial.series.commit_ranges import CommitsBetween


@examples(
    "ktrial series v6.1.170..my-branch --git linux",
    "ktrial series --mbox v3.mbx --onto debian:linux-source-6.1 --max +0.5%",
    "ktrial series --quilt debian/patches-rt --onto linux --text reply.txt",
)
@on_fleet_in_bisection
def series(
    context: typer.Context,
    commits: Annotated[
        str | None, typer.Argument(metavar="[BASE..TIP]", help="Commits of a git tree: HEAD~12..HEAD.")
    ] = None,
    git: Annotated[
        Path | None, typer.Option("--git", metavar="DIR", help="The git tree; else the one it stands in.")
    ] = None,
    mbox: Annotated[
        Path | None,
        typer.Option("--mbox", metavar="FILE", help="Mails: git format-patch --stdout, b4 am."),
    ] = None,
    quilt: Annotated[
        Path | None,
        typer.Option(
            "--quilt", metavar="DIR", help="A series file's directory, or debian:linux-source-6.1/patches-rt."
        ),
    ] = None,
    onto: Annotated[
        str | None,
        typer.Option("--onto", metavar="S", help="What they apply to: debian:linux-source-6.1, DIR…"),
    ] = None,
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
    workload: Workloads = None,
    candidate: Annotated[
        list[str] | None,
        typer.Option("--candidate", metavar="FILE.toml", help="A workload of yours to choose from, too."),
    ] = None,
    maximum: Limits = None,
    top: Annotated[int, typer.Option(min=0, metavar="N", help="Functions to show for each change.")] = 3,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what applies, and estimate; build and boot nothing.")
    ] = False,
    every: Annotated[
        int | None,
        typer.Option("--every", min=2, metavar="N", help="Measure every Nth, then only where ends differ."),
    ] = None,
    thorough: Annotated[
        bool,
        typer.Option("--thorough", help="With --every: look where ends are alike too: changes may cancel."),
    ] = False,
    each_alone: Annotated[
        bool, typer.Option("--each-alone", help="Measure each patch alone on the base, too.")
    ] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Build mails without a sandbox, where bubblewrap is missing.")
    ] = False,
    text: Annotated[
        Path | None, typer.Option("--text", metavar="FILE", help="Write the report as plain text too.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE.md", help="Write it as Markdown too.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE.html", help="Write it as one HTML page too.")
    ] = None,
    json: Json = False,
    perturbations: Perturbations = None,
    memory: GuestMemory = None,
    cpus: Cpus = None,
    machine: Annotated[
        Literal["exact", "exact-parallel"],
        typer.Option("--machine", metavar="exact|exact-parallel", help="The second: CPUs in simulated time."),
    ] = "exact",
    model: Annotated[
        str,
        typer.Option(metavar="M", help="Machine exact: model cycles too: default, desktop, FILE.toml."),
    ] = "none",
    boot: BootParameters = None,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Say what each patch of a series costs, where.

    Said first is what of the series no workload executes. The kernels are built one after the other. Without
    --workload those built-in workloads are taken that execute what the series changes. Interrupted, the same
    command goes on where it was.

    Exit codes: 0 within --max (+1%), each patch and all together; 1 beyond; 125 where a patch does not apply,
    build or boot, or nothing can be decided; 2 for a mistake in what was asked; 128 or more for all that says
    nothing about the series.
    """
    from ktrial.cli.console import check_writable, output, print_json, write_page, write_text
    from ktrial.cli.git_bisect import Endings, code_of
    from ktrial.cli.options.own_command import own_words
    from ktrial.cli.running.series import SeriesOptions, as_json, show_plan
    from ktrial.report.patch_series import as_markdown, as_text, series_page

    with Endings():
        given = MeasurementOptions.of(workload, memory, cpus, boot, perturbations, own_words(context))
        asked = SeriesOptions(
            commits=commits,
            git=git,
            mbox=mbox,
            quilt=quilt,
            onto=onto,
            config=configuration,
            options=tuple(option or ()),
            make=tuple(make or ()),
            fuzz=fuzz,
            given=given,
            maximum=tuple(maximum or ()),
            store=store,
            jobs=jobs,
            trust=trust,
            each_alone=each_alone,
            every=every or 0,
            thorough=thorough,
            offered=tuple(candidate or ()),
            machine=machine,
            model=model,
        )
        check_writable([path for path in (text, markdown, html) if path])
        if dry_run:
            show_plan(asked, json)
            raise typer.Exit
        result, alone = asked.run()
        report = as_text(result, asked.command, top, alone)
        if text:
            write_text(text, report)
        if markdown:
            write_text(markdown, as_markdown(result, asked.command, top, alone))
        if html:
            write_page(html, series_page(result, asked.command, top, alone), asked.command)
        if json:
            print_json(as_json(result, asked.command, alone))
        else:
            output().print(report, end="", markup=False, highlight=False, soft_wrap=True)
        code = code_of(result.decision)
    raise typer.Exit(code)


# `ktrial watch`: follow kernels; what is new is fetched, run and compared.

if TYPE_CHECKING:
    CommitsByTarget = dict[str, CommitsBetween]


if TYPE_CHECKING:
    """Target → its commits, where it is not what it was."""


@examples("ktrial watch debian:6.12 --once", "ktrial watch debian:6.12 --every 6h --workloads fork,pipe")
@on_fleet_in_bisection
def watch(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="KERNEL…", help="debian:6.12, or git:DIR@BRANCH.", autocompletion=kernel_names
        ),
    ],
    workloads: WorkloadSets = None,
    maximum: Limits = None,
    once: Annotated[bool, typer.Option("--once", help="One look, for cron and CI.")] = False,
    every: Annotated[str, typer.Option(metavar="6h", help="Else how long to wait between looks.")] = "6h",
    top: Annotated[int, typer.Option(min=0, metavar="N", help="Functions to show for each change.")] = 3,
    commits: Annotated[
        bool,
        typer.Option("--commits/--no-commits", help="Of a branch: find the commits that made a difference."),
    ] = True,
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE.md", help="Append what is found, as Markdown.")
    ] = None,
    json: Json = False,
    perturbations: Perturbations = None,
    memory: GuestMemory = None,
    cpus: Cpus = None,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Follow kernels: run and compare what is new.

    What was seen last is in the store. Where a branch is not what it was, the commits that made the
    difference are built and measured, as ktrial series --every does. Exit codes of --once, as in check:
    0 nothing beyond, 1 beyond, 125 where a kernel cannot be had or does not boot, or nothing can be decided.
    """
    from ktrial.cli.commands.history import workload_names_of
    from ktrial.cli.git_bisect import Endings, code_of
    from ktrial.cli.options.common import duration
    from ktrial.cli.options.kernel_measurement import MeasurementOptions, limits, measurement
    from ktrial.cli.running.preflight import check_first
    from ktrial.experiment.watch import worst_of

    with Endings():
        seconds = duration("--every", every)
        names = workload_names_of(workloads or ["quick"])
        check_first(kernels=targets, workloads=names, jobs=jobs)
        how = measurement(MeasurementOptions.of(names, memory, cpus, None, perturbations))
        edges = limits(maximum or [], how.workloads)
        while True:
            looks, between = _looks(_named(targets), how, edges, store, jobs, commits=commits)
            _tell(looks, between, top, summary, json=json)
            if once:
                break
            time.sleep(seconds)
        code = code_of(worst_of(looks))
    raise typer.Exit(code)


def _looks(
    targets: list[str],
    how: "Measurement",
    edges: dict[str, float],
    store: str | None,
    jobs: int | None,
    *,
    commits: bool,
) -> "tuple[list[TargetLook], CommitsByTarget]":
    from ktrial.cli.options import kernel_measurement as measuring
    from ktrial.cli.progress import progress
    from ktrial.experiment.watch import look
    from ktrial.series.commit_ranges import commits_between
    from ktrial.store.location import default_location
    from ktrial.store.store import open_store

    with open_store(store or default_location()) as opened, progress() as observer:
        runs = measuring.runs(opened, observer, jobs)
        looks = [look(target, how, edges, runs) for target in targets]
        between = {
            one.target: commits_between(one, how, edges, runs, observer.notice) if commits else None
            for one in looks
        }
        return looks, {target: one for target, one in between.items() if one}


def _tell(
    looks: "list[TargetLook]", between: "CommitsByTarget", top: int, summary: Path | None, *, json: bool
) -> None:
    from ktrial.cli.console import append_text, output, print_json
    from ktrial.cli.render.regression_check import (
        commits_as_text,
        looks_as_json,
        looks_as_markdown,
        print_check,
        sentence,
    )
    from ktrial.format.sanitize import one_line

    if summary:
        append_text(summary, looks_as_markdown(looks, top, between))
    if json:
        print_json(looks_as_json(looks, between))
        return
    console = output()
    for one in looks:
        if one.check:
            print_check(one.check, top, console)
        if one.target in between:
            said = commits_as_text(between[one.target], top)
            console.print(said, markup=False, highlight=False, soft_wrap=True)
        console.print(one_line(sentence(one)))


def _named(targets: list[str]) -> list[str]:
    from ktrial.cli.studies import registry
    from ktrial.experiment.kernel_choice import full_name

    named = registry().kernel_name
    names = (one if one.startswith("git:") else named(full_name(one)) for one in targets)
    return list(dict.fromkeys(names))
