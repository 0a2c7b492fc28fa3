"""`ktrial restore`: puts back what was changed on this system."""

import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.console import output, print_json, say
from ktrial.cli.error_handling import tell
from ktrial.cli.options.common import Json
from ktrial.errors import KtrialError


class UnitNotWritten(KtrialError):
    """The systemd unit {path} cannot be written: {problem}."""

    hint = "run the same command as root: sudo …; or name another place: --unit-path FILE"


@examples("ktrial restore --list", "ktrial restore")
def restore(
    list_only: Annotated[bool, typer.Option("--list", help="Only show what was changed.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also where somebody else has changed it since.")
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Leave everything as it is now, and forget what was there.")
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait for another ktrial that changes knobs.")
    ] = False,
    install_unit: Annotated[
        bool, typer.Option("--install-unit", help="Write a systemd unit that runs this at boot.")
    ] = False,
    unit_path: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write it, if not in /etc/systemd/system.")
    ] = None,
    json: Json = False,
) -> None:
    """Put back what ktrial has changed on this system."""
    if install_unit:
        _install(unit_path, dry_run=dry_run)
    elif list_only:
        _list(json)
    else:
        _restore(json, not no_wait, dry_run, force, forget)


def _restore(json: bool, wait: bool, dry_run: bool, force: bool, forget: bool) -> None:
    from ktrial.interruption import deferred
    from ktrial.knobs import LEFT, Journal
    from ktrial.knobs import restore as put_back
    from ktrial.target import LocalTarget

    journal = Journal()
    with journal.held(wait=wait, say=say), deferred():
        undone = put_back(journal, LocalTarget(), force=force, forget=forget, dry_run=dry_run)
    if json:
        print_json([_data(one) for one in undone])
    else:
        for one in undone:
            if one.ending in LEFT:
                tell(one.text, kind="warning")
            else:
                print(one.text)
        if not undone:
            say("there is nothing to put back")
        elif dry_run:
            say("nothing was changed: this was a dry run")
    if any(one.ending in LEFT for one in undone):
        raise typer.Exit(1)


def _list(json: bool) -> None:
    from ktrial.cli.render.table import rendered
    from ktrial.format.table import Field, table, text_field
    from ktrial.knobs import Journal
    from ktrial.knobs.journal.journal import Entry

    entries, damaged = Journal().entries()
    for one in damaged:
        tell(f"the journal entry {one.path} is damaged: {one.problem}", kind="warning")
    if json:
        print_json([entry.model_dump(mode="json") for entry in entries])
    elif not entries:
        say("there is nothing to put back")
    else:
        fields: tuple[Field[Entry], ...] = (
            text_field("changed", lambda entry: _moment(entry.time)),
            text_field("by", lambda entry: entry.purpose),
            text_field("knob", lambda entry: entry.knob),
            text_field("was", lambda entry: entry.old),
            text_field("set to", lambda entry: entry.new),
        )
        output().print(rendered(table(fields, entries)))
    if damaged:
        raise typer.Exit(1)


def _moment(seconds: float) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _install(unit_path: Path | None, *, dry_run: bool) -> None:
    from ktrial.knobs import journal_directory
    from ktrial.knobs.journal import location

    program = (
        Path(sys.argv[0]) if sys.argv[0].endswith("ktrial") else Path(shutil.which("ktrial") or "ktrial")
    )
    if dry_run:
        sys.stdout.write(location.text(program.resolve(), journal_directory()))
        say(f"nothing was written: this was a dry run; it would be {location.unit_path(unit_path)}")
        return
    try:
        path = location.install(program.resolve(), journal_directory(), unit_path)
    except OSError as error:
        raise UnitNotWritten(path=error.filename, problem=error.strerror) from error
    print(path, flush=True)
    say(f"to have it run at boot: systemctl daemon-reload && systemctl enable {location.NAME}")


def _data(one: Any) -> dict[str, Any]:
    entry = one.entry.model_dump(mode="json") if one.entry else None
    return {"ending": one.ending.value, "text": one.text, "entry": entry}
