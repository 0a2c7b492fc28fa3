"""`ktrial doctor`: what this machine lacks, what brings it, and what would disturb timed trials."""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.console import messages, output, print_json, say
from ktrial.cli.error_handling import tell
from ktrial.cli.options.common import Json
from ktrial.errors import KtrialError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table as RichTable

    from ktrial.experiment.doctor import SystemCheck
    from ktrial.experiment.host_settings import QuietingStep
    from ktrial.model.trial import Environment, Reading


# `ktrial doctor`: what this machine lacks, what brings it, and what would disturb timed trials.

_MARKS = {"fine": "✓", "limited": "!", "missing": "✗", "unknown": "–"}


_VERDICTS = {
    True: "exact mode can run here",
    False: "exact mode cannot run here: see what is marked ✗",
}


@examples("ktrial doctor", "ktrial doctor --json")
def doctor(json: Json = False) -> None:
    """Check this machine, and say what is missing."""
    from ktrial.experiment.doctor import State, examine
    from ktrial.monitors.environment import audit

    with messages().status("looking at this machine") as status:
        checks = list(examine(status.update))
    environment = audit()
    usable = all(check.state is not State.MISSING for check in checks)
    if json:
        told = [check.model_dump(mode="json") for check in checks]
        print_json(
            {"usable": usable, "checks": told, "environment": environment.model_dump(mode="json")["readings"]}
        )
    else:
        output().print(_checks_table(checks))
        output().print(_VERDICTS[usable])
        output().print("\nwhat can disturb trials in real time (host, kvm) here:")
        output().print(_environment_table(environment))
    if not usable:
        raise typer.Exit(1)


def _checks_table(checks: "list[SystemCheck]") -> "RichTable":
    return _marked((one.state.value, one.name, one.found, "", one.remedy) for one in checks)


def _environment_table(environment: "Environment") -> "RichTable":
    return _marked(
        (_state(one), one.name, one.value or f"not known: {one.absent}", one.concern, one.advice)
        for one in environment.readings
    )


def _marked(rows: "Iterable[tuple[str, str, str, str, str]]") -> "RichTable":
    """State, name, what there is; below it what is wrong with it, and what helps."""
    from ktrial.cli.render.table import rendered
    from ktrial.format.table import Column, Emphasis, Row, Table, own

    columns = (Column("mark"), Column("name", wraps=True), Column("found", wraps=True))
    emphasis = {
        "fine": Emphasis.GOOD,
        "limited": Emphasis.CAUTION,
        "missing": Emphasis.BAD,
        "unknown": Emphasis.MUTED,
    }

    def row(state: str, name: str, text: str, problem: str, remedy: str) -> Row:
        lines = "\n".join(filter(None, (text, problem, f"→ {remedy}" if remedy else "")))
        return Row((own(_MARKS[state], emphasis=emphasis[state]), own(name), own(lines)))

    return rendered(Table(columns, tuple(row(*texts) for texts in rows)))


def _state(reading: "Reading") -> str:
    if reading.concern:
        return "limited"
    return "unknown" if reading.absent else "fine"


# `ktrial quiesce`: makes this machine quieter for measuring, and `--undo` takes it back.


@examples("ktrial quiesce --dry-run", "ktrial quiesce --undo")
def quiesce(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be changed.")] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Put back what an earlier quiesce has changed.")
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait for another ktrial that changes knobs.")
    ] = False,
    json: Json = False,
) -> None:
    """Set this machine up for measuring, and --undo it.

    Frequency, idle states, background work.
    Each change is journaled first; --undo, or ktrial restore, puts back what was there.
    """
    if undo:
        _undo(dry_run, not no_wait, json)
    else:
        _quiesce(dry_run, not no_wait, json)


def _quiesce(dry_run: bool, wait: bool, json: bool) -> None:
    from ktrial.experiment.host_settings import PURPOSE, apply_quieting, quieting_plan
    from ktrial.knobs.apply import changing
    from ktrial.target.local import LocalTarget

    target = LocalTarget()
    steps = quieting_plan(target)
    wanted = [step for step in steps if not step.left_out]
    if dry_run or not wanted:
        _tell(steps, json)
        say("nothing was changed: this was a dry run" if dry_run else "there is nothing to change here")
        return
    with changing(target, PURPOSE, lasting=True, wait=wait, say=say) as changes:
        done = apply_quieting(changes, steps, lambda _step: None)
    _tell(done, json)
    changed = any(not one.left_out for one in done)
    say("to put back what was there: ktrial quiesce --undo" if changed else "nothing was changed")
    refused = [one for step, one in zip(steps, done, strict=True) if one.left_out and not step.left_out]
    for one in refused:
        tell(one.left_out, one.advice, kind="warning")
    if refused:
        raise typer.Exit(1)


def _tell(steps: "tuple[QuietingStep, ...]", json: bool) -> None:
    from ktrial.cli.render.table import rendered
    from ktrial.format.table import Field, table, text_field

    if json:
        print_json([step.model_dump(mode="json") for step in steps])
        return
    fields: tuple[Field[QuietingStep], ...] = (
        text_field("knob", lambda step: step.name),
        text_field("is", lambda step: step.before),
        text_field("quiet", lambda step: step.value),
        text_field("why", lambda step: f"left out: {step.left_out}" if step.left_out else step.why),
    )
    output().print(rendered(table(fields, steps)))


def _undo(dry_run: bool, wait: bool, json: bool) -> None:
    from ktrial.experiment.host_settings import PURPOSE
    from ktrial.interruption import deferred
    from ktrial.knobs.journal import Journal
    from ktrial.knobs.restore import LEFT, restore
    from ktrial.target.local import LocalTarget

    journal = Journal()
    with journal.held(wait=wait, say=say), deferred():
        undone = restore(
            journal, LocalTarget(), which=lambda entry: entry.purpose == PURPOSE, dry_run=dry_run
        )
    if json:
        print_json([{"ending": one.ending.value, "text": one.text} for one in undone])
    for one in undone:
        if one.ending in LEFT:
            tell(one.text, kind="warning")
        elif not json:
            print(one.text)
    if not undone:
        say("there is nothing to put back")
    if any(one.ending in LEFT for one in undone):
        raise typer.Exit(1)


# `ktrial restore`: puts back what was changed on this system.


class UnitNotWritten(KtrialError):
    """The systemd unit `path` cannot be written: `problem`."""

    text = "The systemd unit {path} cannot be written: {problem}."
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
    from ktrial.knobs.journal import Journal
    from ktrial.knobs.restore import LEFT
    from ktrial.knobs.restore import restore as put_back
    from ktrial.target.local import LocalTarget

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
    from ktrial.knobs.journal import Entry, Journal

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
    from ktrial.knobs import journal_location
    from ktrial.knobs.journal_location import journal_directory

    program = (
        Path(sys.argv[0]) if sys.argv[0].endswith("ktrial") else Path(shutil.which("ktrial") or "ktrial")
    )
    if dry_run:
        sys.stdout.write(journal_location.text(program.resolve(), journal_directory()))
        say(f"nothing was written: this was a dry run; it would be {journal_location.unit_path(unit_path)}")
        return
    try:
        path = journal_location.install(program.resolve(), journal_directory(), unit_path)
    except OSError as error:
        raise UnitNotWritten(path=error.filename, problem=error.strerror) from error
    print(path, flush=True)
    say(f"to have it run at boot: systemctl daemon-reload && systemctl enable {journal_location.NAME}")


def _data(one: Any) -> dict[str, Any]:
    entry = one.entry.model_dump(mode="json") if one.entry else None
    return {"ending": one.ending.value, "text": one.text, "entry": entry}
