"""`ktrial tune`: search over settings, with an answer that was confirmed, and that can be taken back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    StoredStudyName,
    StoreOption,
    User,
    on_fleet,
    waits_for_machine,
    with_user,
)
from ktrial.cli.options.completion import kernel_names, machine_names, tunable_names, workload_names

if TYPE_CHECKING:
    from ktrial.model.comparison import Comparison
    from ktrial.model.study import Study
    from ktrial.model.tuning import Tuned
    from ktrial.store.store import Store


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
    from ktrial.cli.running.search import SearchOptions, TuneOptions, go_on, search, study_of

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


# `ktrial revalidate`: measures what a search found again: does it still hold, does it gain at all.

NO_MORE = 1
"""Exit code where the answer does not hold any more."""


@examples("ktrial revalidate", "ktrial revalidate my-search --kernel debian:6.12")
@on_fleet
@waits_for_machine
def revalidate(
    study: StoredStudyName = None,
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="On this kernel.", autocompletion=kernel_names)
    ] = None,
    blocks: Annotated[
        int, typer.Option(min=6, max=10_000, metavar="N", help="In real time: blocks at most.")
    ] = 30,
    allow_host_changes: AllowHostChanges = False,
    json: Json = False,
    store: StoreOption = None,
    html: Html = None,
    no_html: NoHtml = False,
    jobs: Jobs = None,
    answer: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="If they gain, write the settings there, to be installed."),
    ] = None,
) -> None:
    """Measure the answer of `ktrial tune` again, or its candidate.

    The old settings against the answer's, in fresh blocks; of a search that could show no gain, those that
    promised most. Exit status 1 where they bring none.
    """
    from ktrial.cli.console import print_json
    from ktrial.cli.running.search_answer import files_of
    from ktrial.cli.running.study import RunOptions, run_and_show
    from ktrial.cli.studies import open_existing
    from ktrial.optimize.revalidation import judged, shown_again
    from ktrial.report.csv_and_json import record_as_json

    with open_existing(store) as opened:
        searched, tuned = _tuned(opened, study)
        again = _again(opened, searched, tuned, kernel, blocks)
    options = RunOptions(
        json=json, store=store, html=html, no_html=no_html, jobs=jobs, allow_host_changes=allow_host_changes
    )
    ended = run_and_show(again, options)
    now = ended.record.result.comparisons
    holds = judged(tuned, now)
    said, was = _said(tuned, now, holds.value), tuned.comparisons[0].model_dump(mode="json")
    again_tuned = shown_again(searched, tuned, now)
    files = files_of(searched, again_tuned, ended.record.trials, answer) if answer and holds.good else ()
    if json:
        result = record_as_json(ended.record, ended.store, ended.report, ended.whys)
        print_json({**result, "holds": holds.value, "was": was, "said": said, "files": list(map(str, files))})
    else:
        print(said)
        for file in files:
            print(f"written: {file}")
    if holds.bad:
        raise typer.Exit(NO_MORE)


def _tuned(store: "Store", name: str | None) -> "tuple[Study, Tuned]":
    """The newest search of this name, and how it ended. Raises NothingTuned, NotATune."""
    from ktrial.cli.studies import find
    from ktrial.optimize.session import ended
    from ktrial.studyfile.errors import NothingTuned, TuningError

    searches = [one for one in store.studies() if one.study.search]
    stored = find(store, name) if name or not searches else searches[-1]
    study = stored.study
    if study.search is None or study.search.space is None:
        raise TuningError(
            f"The study {study.name} is no search: it compares the treatments that it names.",
            hint="ktrial run runs it; ktrial tune needs --knobs, or a section [search]",
        )
    tuned = ended(store, stored)
    if tuned is None:
        raise NothingTuned(study=study.name, problem="it was interrupted; ktrial tune --resume goes on")
    return study, tuned


def _again(store: "Store", study: "Study", tuned: "Tuned", kernel: str | None, blocks: int) -> "Study":
    from ktrial.cli.command_line import BadOption
    from ktrial.cli.studies import registry
    from ktrial.optimize.revalidation import measured_again, next_revalidation, revalidation_of
    from ktrial.studyfile.search import KERNEL

    if kernel:
        if study.machine.kind == "host":
            raise BadOption(option="--kernel", problem="the machine host is this system, as it runs")
        if KERNEL in measured_again(study, tuned):
            raise BadOption(option="--kernel", problem="the answer itself is a kernel")
        name = registry().kernel_name(kernel)
        study = study.model_copy(update={"machine": study.machine.model_copy(update={"kernel": name})})
    return next_revalidation(store, revalidation_of(study, tuned, blocks=blocks))


def _said(tuned: "Tuned", now: "tuple[Comparison, ...]", holds: str) -> str:
    from ktrial.cli.console import breakable
    from ktrial.format import number_format

    before = tuned.comparisons[0]
    what, when = (
        ("The answer", "when it was found") if tuned.confirmed else ("The candidate", "in the search")
    )
    same = next((one for one in now if one.metric == before.metric), None)
    was = f"{number_format.change(before.ratio)} ({number_format.interval(before.low, before.high)})"
    is_ = (
        f"{number_format.change(same.ratio)} ({number_format.interval(same.low, same.high)})"
        if same
        else number_format.NONE
    )
    return breakable(f"{what} {holds}: {before.metric} {is_}; {when}: {was}.")
