"""`ktrial show`: what a study in the store has measured."""

from typing import Annotated

import typer

from ktrial.cli.options import Json, StoredStudyName, StoreOption
from ktrial.cli.terminal import output, print_json
from ktrial.model.record import StudyRecord


def show(
    study: StoredStudyName = None,
    console: Annotated[
        bool, typer.Option("--console", help="Show the consoles of trials that failed, instead.")
    ] = False,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Show a study's verdicts again; nothing is run."""
    from ktrial.cli.result_json import as_json
    from ktrial.cli.stored import find
    from ktrial.cli.tune_shown import show_search
    from ktrial.cli.verdicts import print_result
    from ktrial.cli.whys import MOST_WORKLOADS, print_whys
    from ktrial.report import whys
    from ktrial.runner.result import record as record_of
    from ktrial.store import default_location, open_store

    with open_store(store or default_location()) as opened:
        stored = find(opened, study)
        if stored.study.search and not console:
            show_search(stored, opened, json=json)
            return
        record = record_of(opened, stored.id)
        name, reasons = (
            opened.name,
            () if console else whys(opened, record, None if json else MOST_WORKLOADS + 1),
        )
    if json:
        print_json(as_json(record, name, whys=reasons))
    elif console:
        _print_consoles(record)
    else:
        print_result(record, output())
        print_whys(reasons, output())


def _print_consoles(record: StudyRecord) -> None:
    from ktrial.cli.verdicts import failure
    from ktrial.report import summary
    from ktrial.report.printable import printable

    failed = summary.failed_trials(record)
    if not failed:
        print(f"no trial of {record.study.name} failed")
    for trial in failed:
        print(f"--- {failure(trial)}")
        print(printable(trial.console).rstrip() or "(the console is empty)")
