"""`ktrial show`: what a study in the store has measured."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli import output_cache, show_cache
from ktrial.cli.command_line import examples
from ktrial.cli.console import json_text, output
from ktrial.cli.options.bundled_study import Signers, StudyOrBundle, is_bundle, open_named
from ktrial.cli.options.common import Json, StoreOption

if TYPE_CHECKING:
    from ktrial.model.study_record import StudyRecord


@examples("ktrial show", "ktrial show quick --json", "ktrial show quick.zip")
def show(
    study: StudyOrBundle = None,
    console: Annotated[
        bool, typer.Option("--console", help="Show the consoles of trials that failed, instead.")
    ] = False,
    signers: Signers = None,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Show a study's verdicts again; nothing is run."""
    from ktrial.store import default_location

    location = store or default_location()
    form = "consoles" if console else "json" if json else "text"
    key = None if console or is_bundle(study) else show_cache.key_of(location, study, form)
    printed = key and output_cache.get(key)
    if not printed:
        with output_cache.warnings_heard() as warned:
            printed = _worked_out(store, study, form, signers)
        # While it was worked out, a trial may have ended.
        if printed and key and not warned and key == show_cache.key_of(location, study, form):
            output_cache.put(key, printed)
    if printed and json:
        print(printed, end="")
    elif printed:
        from ktrial.cli.render.recorded import replay

        replay(printed, output())


def _worked_out(store: str | None, study: str | None, form: str, signers: Path | None) -> str:
    """The JSON, or the record of what is printed; empty where it was printed right away."""
    from ktrial.analysis.result import record as record_of
    from ktrial.cli.render.attribution import MOST_WORKLOADS
    from ktrial.cli.render.recorded import recorded
    from ktrial.report import whys
    from ktrial.report.json.study import as_json

    with open_named(store, study, signers) as (opened, stored):
        if stored.study.search and form != "consoles":
            from ktrial.cli.running.search_answer import show_search

            show_search(stored, opened, json=form == "json")
            return ""
        record = record_of(opened, stored.id)
        if form == "consoles":
            _print_consoles(record)
            return ""
        most = None if form == "json" else MOST_WORKLOADS + 1
        name, reasons = opened.name, whys(opened, record, most, graphs=False)
    return json_text(as_json(record, name, whys=reasons)) if form == "json" else recorded(record, reasons)


def _print_consoles(record: "StudyRecord") -> None:
    from ktrial.cli.render.study_result import failure
    from ktrial.format.sanitize import printable
    from ktrial.report.text import study_summary

    failed = study_summary.failed_trials(record)
    if not failed:
        print(f"no trial of {record.study.name} failed")
    for trial in failed:
        print(f"--- {failure(trial)}")
        print(printable(trial.console).rstrip() or "(the console is empty)")
