"""`ktrial quiesce`: makes this machine quieter for measuring, and `--undo` takes it back."""

from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.console import output, print_json, say
from ktrial.cli.error_handling import tell
from ktrial.cli.options.common import Json

if TYPE_CHECKING:
    from ktrial.experiment.host_settings import QuietingStep


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
    from ktrial.knobs import changing
    from ktrial.target import LocalTarget

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
    from ktrial.knobs import LEFT, Journal, restore
    from ktrial.target import LocalTarget

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
