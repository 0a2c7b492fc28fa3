"""`ktrial tune`: search over settings, with an answer that was confirmed, and that can be taken back."""

from pathlib import Path
from typing import Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import (
    AllowHostChanges,
    GuestMemory,
    Html,
    Jobs,
    Json,
    Margin,
    NoHtml,
    OwnMetrics,
    StoreOption,
)
from ktrial.cli.options.completion import kernel_names, machine_names, tunable_names, workload_names
from ktrial.cli.options.fleet import on_fleet
from ktrial.cli.options.machine_wait import waits_for_machine
from ktrial.cli.options.user import User, with_user

Command = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="STUDY | -- COMMAND",
        help="The command to measure; or a study file with a section [search].",
        show_default=False,
    ),
]
Knobs = Annotated[
    list[str] | None,
    typer.Option(
        "--knobs",
        metavar="K1,K2…",
        help="Subsystems (vm), names, patterns, NAME=low..high, NAME=a,b,c; repeated.",
        autocompletion=tunable_names,
    ),
]
_METRIC = "How a metric is found in what the command prints: NAME=REGEX, NAME=json:PATH; repeated."


@examples(
    "ktrial tune --knobs vm,sched --maximise rps -- ./bench.sh",
    "ktrial tune --knobs vm --kernel debian:6.12 --workload fork --dry-run",
)
@on_fleet
@waits_for_machine
def tune(
    command: Command = None,
    knobs: Knobs = None,
    workload: Annotated[
        str | None,
        typer.Option(metavar="W", help="A workload, not a command.", autocompletion=workload_names),
    ] = None,
    maximise: Annotated[list[str] | None, typer.Option(metavar="METRIC", help="Make it larger.")] = None,
    minimise: Annotated[list[str] | None, typer.Option(metavar="METRIC", help="Make it smaller.")] = None,
    subject_to: Annotated[
        list[str] | None, typer.Option(metavar="'p99<=20ms'", help="A limit to keep; repeated.")
    ] = None,
    metric: Annotated[list[str] | None, typer.Option(metavar="NAME=HOW", help=_METRIC)] = None,
    metrics: OwnMetrics = None,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="host, kvm, exact; host where no kernel is named.",
            autocompletion=machine_names,
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The kernel, where one is booted.", autocompletion=kernel_names),
    ] = None,
    budget: Annotated[int | None, typer.Option(min=1, metavar="RUNS", help="Runs in all; else 65.")] = None,
    time: Annotated[str | None, typer.Option(metavar="30min", help="Time in all.")] = None,
    margin: Margin = None,
    optimiser: Annotated[
        str | None, typer.Option(metavar="tpe|random", help="How the next settings are chosen.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="Of all that is random.")] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Runs of the command in a trial; else 1.")
    ] = None,
    discard: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Runs before those that do not count; else 0.")
    ] = None,
    carry: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="A file that the command needs in a guest.")
    ] = None,
    limit: Annotated[str | None, typer.Option(metavar="5min", help="End a run after so long.")] = None,
    memory: GuestMemory = None,
    boot: Annotated[
        list[str] | None, typer.Option(metavar="PARAMETER", help="A boot parameter of every trial.")
    ] = None,
    perturbations: Annotated[
        int | None,
        typer.Option(min=1, max=1000, metavar="N", help="In exact mode: for the confirmation; else 3."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan, and measure nothing.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the search that was interrupted last.")
    ] = False,
    allow_host_changes: AllowHostChanges = False,
    user: User = None,
    answer: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the answer there, as files to be installed.")
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Leave the answer in force here, until ktrial restore.")
    ] = False,
    json: Json = False,
    store: StoreOption = None,
    html: Html = None,
    no_html: NoHtml = False,
    jobs: Jobs = None,
) -> None:
    """Search for better settings, and confirm the answer.

    Settings are put back after each run, and nothing stays in force without --apply. Interrupted, the same
    command goes on where it stopped.
    """
    from ktrial.cli.options.tune import TuneOptions, study_of
    from ktrial.cli.running.search import SearchOptions, go_on, search

    options = SearchOptions(
        json=json,
        store=store,
        html=html,
        no_html=no_html,
        dry_run=dry_run,
        allow_host_changes=allow_host_changes,
        answer=answer,
        apply=apply,
    )
    if resume:
        go_on(options)
        return
    asked = TuneOptions(
        words=tuple(command or ()),
        knobs=tuple(knobs or ()),
        workload=workload,
        maximise=tuple(maximise or ()),
        minimise=tuple(minimise or ()),
        subject_to=tuple(subject_to or ()),
        metrics=tuple(metric or ()),
        format=metrics,
        machine=machine,
        kernel=kernel,
        budget=budget,
        time=time,
        margin=margin,
        optimiser=optimiser,
        seed=seed,
        repeats=repeats,
        discarded=discard,
        carry=tuple(carry or ()),
        limit=limit,
        memory=memory,
        boot=tuple(boot or ()),
        perturbations=perturbations,
        jobs=jobs,
    )
    search(with_user(study_of(asked), user), options)
