"""`ktrial revalidate`: measures what a search found again: does it still hold, does it gain at all."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import AllowHostChanges, Html, Jobs, Json, NoHtml, StoredStudyName, StoreOption
from ktrial.cli.options.completion import kernel_names
from ktrial.cli.options.fleet import on_fleet
from ktrial.cli.options.machine_wait import waits_for_machine

if TYPE_CHECKING:
    from ktrial.model.comparison import Comparison
    from ktrial.model.study import Study
    from ktrial.model.tuning import Tuned
    from ktrial.store import Store

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
    from ktrial.cli.options.stored_study import open_existing
    from ktrial.cli.running.search_answer import files_of
    from ktrial.cli.running.study import RunOptions, run_and_show
    from ktrial.optimize.revalidation import judged, shown_again
    from ktrial.report.json.study import as_json

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
        result = as_json(ended.record, ended.store, ended.report, ended.whys)
        print_json({**result, "holds": holds.value, "was": was, "said": said, "files": list(map(str, files))})
    else:
        print(said)
        for file in files:
            print(f"written: {file}")
    if holds.bad:
        raise typer.Exit(NO_MORE)


def _tuned(store: "Store", name: str | None) -> "tuple[Study, Tuned]":
    """The newest search of this name, and how it ended. Raises NothingTuned, NotATune."""
    from ktrial.cli.options.stored_study import find
    from ktrial.optimize.session import ended
    from ktrial.studyfile.errors import NotATune, NothingTuned

    searches = [one for one in store.studies() if one.study.search]
    stored = find(store, name) if name or not searches else searches[-1]
    study = stored.study
    if study.search is None or study.search.space is None:
        raise NotATune(study=study.name)
    tuned = ended(store, stored)
    if tuned is None:
        raise NothingTuned(study=study.name, problem="it was interrupted; ktrial tune --resume goes on")
    return study, tuned


def _again(store: "Store", study: "Study", tuned: "Tuned", kernel: str | None, blocks: int) -> "Study":
    from ktrial.cli.command_line import BadOption
    from ktrial.cli.installed import registry
    from ktrial.optimize.revalidation import measured_again, next_revalidation, revalidation_of
    from ktrial.studyfile.knob_patterns import KERNEL

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
