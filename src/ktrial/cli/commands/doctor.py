"""`ktrial doctor`: what this machine lacks, what brings it, and what would disturb timed trials."""

from typing import TYPE_CHECKING

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.console import messages, output, print_json
from ktrial.cli.options.common import Json

_MARKS = {"fine": "✓", "limited": "!", "missing": "✗", "unknown": "–"}
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table as RichTable

    from ktrial.experiment.doctor import SystemCheck
    from ktrial.model.environment import Environment, Reading

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
