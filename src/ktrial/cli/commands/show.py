"""`ktrial show`: what a study in the store has measured."""

from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.console import output, print_json
from ktrial.cli.options.common import Json, StoredStudyName, StoreOption

if TYPE_CHECKING:
    from ktrial.model.study_record import StudyRecord


def show(
    study: StoredStudyName = None,
    console: Annotated[
        bool, typer.Option("--console", help="Show the consoles of trials that failed, instead.")
    ] = False,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Show a study's verdicts again; nothing is run."""
    from ktrial.analysis.result import record as record_of
    from ktrial.cli.options.stored_study import find
    from ktrial.cli.render.attribution import MOST_WORKLOADS, print_whys
    from ktrial.cli.render.comparisons import print_result
    from ktrial.cli.render.study_json import as_json
    from ktrial.report import whys
    from ktrial.store import default_location, open_store

    with open_store(store or default_location()) as opened:
        stored = find(opened, study)
        if stored.study.search and not console:
            from ktrial.cli.running.search_answer import show_search

            show_search(stored, opened, json=json)
            return
        record = record_of(opened, stored.id)
        name, reasons = (
            opened.name,
            () if console else whys(opened, record, None if json else MOST_WORKLOADS + 1, graphs=False),
        )
    if json:
        print_json(as_json(record, name, whys=reasons))
    elif console:
        _print_consoles(record)
    else:
        print_result(record, output())
        print_whys(reasons, output())


def _print_consoles(record: "StudyRecord") -> None:
    from ktrial.cli.render.comparisons import failure
    from ktrial.format.sanitize import printable
    from ktrial.report.text import comparisons

    failed = comparisons.failed_trials(record)
    if not failed:
        print(f"no trial of {record.study.name} failed")
    for trial in failed:
        print(f"--- {failure(trial)}")
        print(printable(trial.console).rstrip() or "(the console is empty)")
