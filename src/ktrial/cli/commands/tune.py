"""`ktrial tune` and `tune revalidate`: search over settings, confirm the answer, measure it again later."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ktrial.cli.command_line import Argument, BadOption, Option, examples
from ktrial.cli.console import breakable, print_json
from ktrial.cli.options.common import (
    AllowHostChanges,
    BootParameters,
    DryRun,
    GuestMemory,
    Margin,
    MetricsFormat,
    RunOptions,
    StoredStudyName,
    User,
    on_fleet,
    waits_for_machine,
    with_user,
)
from ktrial.cli.options.completion import kernel_names, machine_names, tunable_names, workload_names
from ktrial.cli.studies import find, open_existing, registry
from ktrial.format import number_format
from ktrial.studyfile.errors import NothingTuned, TuningError

if TYPE_CHECKING:
    from ktrial.model.comparison import Comparison
    from ktrial.model.study import Study
    from ktrial.model.tuning import Tuned
    from ktrial.store.store import Store

NO_MORE = 1
"""Exit code where the answer does not hold any more."""


@dataclass(frozen=True)
class TuneOptions:
    """What is searched: over which settings, in which workload or command, for what, and for how long."""

    command: list[str] | None = Argument(
        None,
        metavar="STUDY | -- COMMAND",
        help="The command to measure; or a study file with a section [search].",
        show_default=False,
    )
    knobs: list[str] | None = Option(
        None,
        metavar="K1,K2…",
        help="Subsystems (vm), names, patterns, NAME=low..high, NAME=a,b,c; repeated.",
        autocompletion=tunable_names,
    )
    workload: str | None = Option(
        None, metavar="W", help="A workload instead of a command.", autocompletion=workload_names
    )
    maximise: list[str] | None = Option(None, metavar="METRIC", help="A metric to make larger.")
    minimise: list[str] | None = Option(None, metavar="METRIC", help="A metric to make smaller.")
    subject_to: list[str] | None = Option(None, metavar="'p99<=20ms'", help="A limit to keep; repeated.")
    metric: list[str] | None = Option(
        None,
        metavar="NAME=HOW",
        help="Where a metric is in the command's output: NAME=REGEX, NAME=json:PATH; repeated.",
    )
    metrics: MetricsFormat = None
    machine: str | None = Option(
        None,
        metavar="NAME",
        help="host, kvm, exact; host where no kernel is named.",
        autocompletion=machine_names,
    )
    kernel: str | None = Option(
        None, metavar="NAME", help="The kernel, where one is booted.", autocompletion=kernel_names
    )
    budget: int | None = Option(None, min=1, metavar="RUNS", help="Runs in total; else 65.")
    time: str | None = Option(None, metavar="30min", help="Time in total.")
    margin: Margin = None
    optimiser: str | None = Option(None, metavar="tpe|random", help="How the next settings are chosen.")
    seed: int | None = Option(None, min=0, metavar="N", help="The seed of everything random.")
    repeats: int | None = Option(None, min=1, metavar="N", help="Runs of the command in a trial; else 1.")
    discard: int | None = Option(
        None, min=0, metavar="N", help="Runs of the command before those, not counted; else 0."
    )
    carry: list[str] | None = Option(None, metavar="FILE", help="A file that the command needs in a guest.")
    limit: str | None = Option(None, metavar="5min", help="End a run after this time.")
    memory: GuestMemory = None
    boot: BootParameters = None
    perturbations: int | None = Option(
        None, min=1, max=1000, metavar="N", help="In exact mode: perturbations of the confirmation; else 3."
    )


@dataclass(frozen=True)
class SearchOptions(RunOptions):
    """How a search is run, and what becomes of its answer."""

    dry_run: DryRun = False
    allow_host_changes: AllowHostChanges = False
    answer: Path | None = Option(
        None, metavar="DIR", help="Write the answer to this directory, as files to install."
    )
    apply: bool = Option(False, "--apply", help="Keep the answer in force here, until ktrial host restore.")


@examples(
    "ktrial tune --knobs vm,sched --maximise rps -- ./bench.sh",
    "ktrial tune --knobs vm --kernel debian:6.12 --workload fork --dry-run",
)
@on_fleet
@waits_for_machine
def tune(
    options: TuneOptions,
    search_options: SearchOptions,
    resume: bool = Option(False, "--resume", help="Go on with the last interrupted search."),
    user: User = None,
) -> None:
    """Search for better settings, and confirm the answer.

    Settings are put back after each run, and nothing stays in force without --apply. Interrupted, the same
    command goes on where it stopped.
    """
    from ktrial.cli.running.search import go_on, search
    from ktrial.cli.running.tuned_study import study_of

    if resume:
        go_on(search_options)
    else:
        search(with_user(study_of(options, search_options.jobs), user), search_options)


@dataclass(frozen=True)
class RevalidateOptions(RunOptions):
    """How the answer is measured again."""

    allow_host_changes: AllowHostChanges = False


@examples("ktrial tune revalidate", "ktrial tune revalidate my-search --kernel debian:6.12")
@on_fleet
@waits_for_machine
def revalidate(
    options: RevalidateOptions,
    study: StoredStudyName = None,
    kernel: str | None = Option(
        None, metavar="NAME", help=("The kernel to measure on."), autocompletion=kernel_names
    ),
    blocks: int = Option(30, min=6, max=10_000, metavar="N", help="In real time: the most blocks."),
    answer: Path | None = Option(
        None, metavar="DIR", help="If they gain, write the settings to this directory, as files to install."
    ),
) -> None:
    """Measure the answer or the best candidate of a search again.

    Compares the old settings with those of the answer, in fresh blocks. If the search showed no gain, it
    takes the settings that promised most. Exit code 1: they bring no gain.
    """
    from ktrial.cli.running.search_answer import files_of
    from ktrial.cli.running.study import run_and_show
    from ktrial.optimize.revalidation import judged, shown_again

    with open_existing(options.store) as store:
        searched, tuned = _searched(store, study)
        again = _study_again(store, searched, tuned, kernel, blocks)
    finished = run_and_show(again, options)
    record = finished.record
    comparisons = record.result.comparisons
    holds = judged(tuned, comparisons)
    sentence = _sentence(tuned, comparisons, holds.value)
    files: tuple[Path, ...] = ()
    if answer and holds.good:
        files = files_of(searched, shown_again(searched, tuned, comparisons), record.trials, answer)
    if options.json:
        print_json(
            {
                **finished.as_json(),
                "holds": holds.value,
                "was": tuned.comparisons[0].model_dump(mode="json"),
                "said": sentence,
                "files": list(map(str, files)),
            }
        )
    else:
        print(sentence)
        for file in files:
            print(f"written: {file}")
    if holds.bad:
        raise typer.Exit(NO_MORE)


def _searched(store: "Store", name: str | None) -> "tuple[Study, Tuned]":
    """The newest search of this name, and how it ended. Raises NothingTuned, TuningError."""
    from ktrial.optimize.session import ended

    searches = [stored for stored in store.studies() if stored.study.search]
    stored = find(store, name) if name or not searches else searches[-1]
    study = stored.study
    if study.search is None or study.search.space is None:
        raise TuningError(
            f"The study {study.name} is not a search: it compares the treatments that it names.",
            hint="ktrial run runs it; ktrial tune needs --knobs, or a section [search]",
        )
    tuned = ended(store, stored)
    if tuned is None:
        raise NothingTuned(study.name, "it was interrupted; ktrial tune --resume goes on")
    return study, tuned


def _study_again(store: "Store", study: "Study", tuned: "Tuned", kernel: str | None, blocks: int) -> "Study":
    from ktrial.optimize.revalidation import measured_again, next_revalidation, revalidation_of
    from ktrial.studyfile.search import KERNEL

    if kernel:
        if study.machine.kind == "host":
            raise BadOption("--kernel", "the machine host is this system, as it runs")
        if KERNEL in measured_again(study, tuned):
            raise BadOption("--kernel", "the answer itself is a kernel")
        name = registry().kernel_name(kernel)
        study = study.model_copy(update={"machine": study.machine.model_copy(update={"kernel": name})})
    return next_revalidation(store, revalidation_of(study, tuned, blocks=blocks))


def _sentence(tuned: "Tuned", comparisons: "tuple[Comparison, ...]", holds: str) -> str:

    def change(comparison: "Comparison") -> str:
        interval = number_format.interval(comparison.low, comparison.high) or comparison.no_interval
        return f"{number_format.change(comparison.ratio)} ({interval})"

    before = tuned.comparisons[0]
    answer = "The answer" if tuned.confirmed else "The candidate"
    when = "when it was found" if tuned.confirmed else "in the search"
    same = [comparison for comparison in comparisons if comparison.metric == before.metric]
    after = change(same[0]) if same else number_format.NONE
    return breakable(f"{answer} {holds}: {before.metric} {after}; {when}: {change(before)}.")
