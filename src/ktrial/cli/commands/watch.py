"""`ktrial watch`: follow kernels; what is new is fetched, run and compared."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import GuestMemory, Jobs, Json, Perturbations, StoreOption
from ktrial.cli.options.completion import kernel_names
from ktrial.cli.options.fleet import on_fleet_in_bisection
from ktrial.cli.options.kernel_measurement import Cpus, Limits, WorkloadSets

if TYPE_CHECKING:
    from ktrial.experiment.single_kernel import Measurement
    from ktrial.experiment.watch import TargetLook
    from ktrial.series.commit_ranges import CommitsBetween

    CommitsByTarget = dict[str, CommitsBetween]
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
    from ktrial.cli.commands.matrix import workload_names_of
    from ktrial.cli.git_bisect import Endings, code_of
    from ktrial.cli.options.duration_size_share import duration
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
    from ktrial.cli.running.progress import progress
    from ktrial.experiment.watch import look
    from ktrial.series.commit_ranges import commits_between
    from ktrial.store import default_location, open_store

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
    from ktrial.cli.console import output, print_json
    from ktrial.cli.files import append_text
    from ktrial.cli.render.regression_check import print_check
    from ktrial.cli.render.watch import as_json, as_markdown, commits_as_text, sentence
    from ktrial.format.sanitize import one_line

    if summary:
        append_text(summary, as_markdown(looks, top, between))
    if json:
        print_json(as_json(looks, between))
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
    from ktrial.cli.installed import registry
    from ktrial.experiment.kernel_choice import full_name

    named = registry().kernel_name
    names = (one if one.startswith("git:") else named(full_name(one)) for one in targets)
    return list(dict.fromkeys(names))
