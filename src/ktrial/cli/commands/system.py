"""`ktrial doctor` and `host`: what this system lacks, what makes it quieter, and how it was before."""

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ktrial.cli.abandoned_changes import put_back_abandoned
from ktrial.cli.command_line import Option, command_group, examples
from ktrial.cli.console import messages, output, print_json, print_texts, say
from ktrial.cli.error_handling import tell
from ktrial.cli.options.common import Json, NoWait
from ktrial.errors import KtrialError
from ktrial.interruption import deferred

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from ktrial.experiment.host_settings import QuietingStep


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
        print_json(
            {
                "usable": usable,
                "checks": [check.model_dump(mode="json") for check in checks],
                "environment": environment.model_dump(mode="json")["readings"],
            }
        )
    else:
        rows = ((check.state.value, check.name, check.found, "", check.remedy) for check in checks)
        output().print(_marked_table(rows))
        output().print(
            "exact mode can run here" if usable else "exact mode cannot run here: see what is marked ✗"
        )
        output().print("\nwhat can disturb trials in real time (host, kvm) here:")
        readings = (
            (
                "limited" if reading.concern else "unknown" if reading.absent else "fine",
                reading.name,
                reading.value or f"not known: {reading.absent}",
                reading.concern,
                reading.advice,
            )
            for reading in environment.readings
        )
        output().print(_marked_table(readings))
    if not usable:
        raise typer.Exit(1)


def _marked_table(rows: Iterable[tuple[str, str, str, str, str]]) -> "RichTable":
    """State, name, what there is; below it what is wrong with it, and what helps."""
    from ktrial.cli.render.table import rendered
    from ktrial.format.table import Column, Emphasis, Row, Table, own

    marks = {
        "fine": ("✓", Emphasis.GOOD),
        "limited": ("!", Emphasis.CAUTION),
        "missing": ("✗", Emphasis.BAD),
        "unknown": ("–", Emphasis.MUTED),
    }
    columns = (Column("mark"), Column("name", wraps=True), Column("found", wraps=True))
    cells = []
    for state, name, text, problem, remedy in rows:
        mark, emphasis = marks[state]
        lines = "\n".join(filter(None, (text, problem, f"→ {remedy}" if remedy else "")))
        cells.append(Row((own(mark, emphasis=emphasis), own(name), own(lines))))
    return rendered(Table(columns, tuple(cells)))


app = command_group("Quieten this machine for measuring, and put its settings back.")


@app.callback()
def host(context: typer.Context) -> None:
    """Quieten this machine for measuring, and put its settings back."""
    if context.invoked_subcommand != "restore":  # which tells what it puts back
        put_back_abandoned()


@app.declare("quiesce")
@examples("ktrial host quiesce --dry-run", "ktrial host quiesce --undo")
def quiesce(
    dry_run: bool = Option(False, "--dry-run", help="Only say what would be changed."),
    undo: bool = Option(False, "--undo", help="Put back what an earlier quiesce has changed."),
    no_wait: NoWait = False,
    json: Json = False,
) -> None:
    """Set this machine up for measuring, and --undo it.

    Frequency, idle states, background work.
    Each change is journaled first; --undo, or ktrial host restore, puts back what was there.
    """
    from ktrial.experiment.host_settings import PURPOSE, apply_quieting, quieting_plan
    from ktrial.knobs.apply import changing
    from ktrial.target.local import LocalTarget

    if undo:
        undone = _put_back(wait=not no_wait, which=lambda entry: entry.purpose == PURPOSE, dry_run=dry_run)
        if json:
            print_json([{"ending": change.ending.value, "text": change.text} for change in undone])
        _tell_put_back(undone, quiet=json)
        return
    target = LocalTarget()
    steps = quieting_plan(target)
    if dry_run or all(step.left_out for step in steps):
        _tell_steps(steps, json)
        say("nothing was changed: this was a dry run" if dry_run else "there is nothing to change here")
        return
    with changing(target, PURPOSE, lasting=True, wait=not no_wait, say=say) as changes:
        applied = apply_quieting(changes, steps, lambda _step: None)
    _tell_steps(applied, json)
    changed = any(not step.left_out for step in applied)
    say("to put back what was there: ktrial host quiesce --undo" if changed else "nothing was changed")
    pairs = zip(steps, applied, strict=True)
    refused = [step for planned, step in pairs if step.left_out and not planned.left_out]
    for step in refused:
        tell(step.left_out, step.advice, kind="warning")
    if refused:
        raise typer.Exit(1)


def _tell_steps(steps: "tuple[QuietingStep, ...]", json: bool) -> None:

    if json:
        print_json([step.model_dump(mode="json") for step in steps])
        return
    rows = (
        (step.name, step.before, step.value, f"left out: {step.left_out}" if step.left_out else step.why)
        for step in steps
    )
    print_texts(("knob", "is", "quiet", "why"), rows)


@app.declare("restore")
@examples("ktrial host restore --list", "ktrial host restore")
def restore(
    list_only: bool = Option(False, "--list", help="Only show what was changed."),
    dry_run: bool = Option(False, "--dry-run", help="Only say what would be done."),
    force: bool = Option(False, "--force", help="Also settings that somebody else has changed since."),
    forget: bool = Option(
        False, "--forget", help="Keep the settings as they are now, and forget the earlier ones."
    ),
    no_wait: NoWait = False,
    install_unit: bool = Option(False, "--install-unit", help="Write a systemd unit that runs this at boot."),
    unit_path: Path | None = Option(
        None, metavar="FILE", help="Where to write it, if not in /etc/systemd/system."
    ),
    json: Json = False,
) -> None:
    """Put back what ktrial has changed on this system."""
    if install_unit:
        _install_unit(unit_path, dry_run=dry_run)
        return
    if list_only:
        _list_changes(json)
        return
    undone = _put_back(wait=not no_wait, force=force, forget=forget, dry_run=dry_run)
    if json:
        print_json(
            [
                {
                    "ending": change.ending.value,
                    "text": change.text,
                    "entry": change.entry.model_dump(mode="json") if change.entry else None,
                }
                for change in undone
            ]
        )
    elif undone and dry_run:
        _tell_put_back(undone, note="nothing was changed: this was a dry run")
        return
    _tell_put_back(undone, quiet=json, tells_left=not json)


def _put_back(*, wait: bool, **options: Any) -> Any:
    """Put back what the journal has; what became of each change."""
    from ktrial.knobs.journal import Journal
    from ktrial.knobs.restore import restore as put_back
    from ktrial.target.local import LocalTarget

    journal = Journal()
    with journal.held(wait=wait, say=say), deferred():
        return put_back(journal, LocalTarget(), **options)


def _tell_put_back(undone: Any, *, quiet: bool = False, tells_left: bool = True, note: str = "") -> None:
    """Print each change. Raises typer.Exit with 1 where one was left as it is."""
    from ktrial.knobs.restore import LEFT

    for change in undone:
        if change.ending in LEFT:
            if tells_left:
                tell(change.text, kind="warning")
        elif not quiet:
            print(change.text)
    if not undone and tells_left:
        say("there is nothing to put back")
    if note:
        say(note)
    if any(change.ending in LEFT for change in undone):
        raise typer.Exit(1)


def _list_changes(json: bool) -> None:
    from datetime import UTC, datetime

    from ktrial.knobs.journal import Journal

    entries, damaged = Journal().entries()
    for damage in damaged:
        tell(f"the journal entry {damage.path} is damaged: {damage.problem}", kind="warning")
    if json:
        print_json([entry.model_dump(mode="json") for entry in entries])
    elif not entries:
        say("there is nothing to put back")
    else:
        rows = (
            (
                f"{datetime.fromtimestamp(entry.time, UTC):%Y-%m-%d %H:%M:%S} UTC",
                entry.purpose,
                entry.knob,
                entry.old,
                entry.new,
            )
            for entry in entries
        )
        print_texts(("changed", "by", "knob", "was", "set to"), rows)
    if damaged:
        raise typer.Exit(1)


def _install_unit(unit_path: Path | None, *, dry_run: bool) -> None:
    from ktrial.knobs import journal_location
    from ktrial.knobs.journal_location import journal_directory

    program = sys.argv[0] if sys.argv[0].endswith("ktrial") else shutil.which("ktrial") or "ktrial"
    resolved = Path(program).resolve()
    if dry_run:
        sys.stdout.write(journal_location.text(resolved, journal_directory()))
        say(f"nothing was written: this was a dry run; it would be {journal_location.unit_path(unit_path)}")
        return
    try:
        path = journal_location.install(resolved, journal_directory(), unit_path)
    except OSError as error:
        raise KtrialError(
            f"The systemd unit {error.filename} cannot be written: {error.strerror}.",
            hint="run the same command as root: sudo …; or name another place: --unit-path FILE",
        ) from error
    print(path, flush=True)
    say(f"to have it run at boot: systemctl daemon-reload && systemctl enable {journal_location.NAME}")
