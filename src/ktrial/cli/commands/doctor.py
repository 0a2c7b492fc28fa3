"""`ktrial doctor`: what this machine lacks, what brings it, and what would disturb timed trials."""

from typing import TYPE_CHECKING

import typer

from ktrial.cli.console import messages, output, print_json
from ktrial.cli.options.common import Json

_MARKS = {"fine": ("✓", "green"), "limited": ("!", "yellow"), "missing": ("✗", "red")}
if TYPE_CHECKING:
    from rich.table import Table

    from ktrial.model.environment import Environment, Reading

_VERDICTS = {
    True: "exact mode can run here",
    False: "exact mode cannot run here: see what is marked ✗",
}


def doctor(json: Json = False) -> None:
    """Check this machine, and say what is missing."""
    from rich.table import Table
    from rich.text import Text

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
        table = Table(box=None, pad_edge=False, show_header=False)
        for check in checks:
            mark, style = _MARKS[check.state]
            remedy = f"\n→ {check.remedy}" if check.remedy else ""
            table.add_row(Text(mark, style=style), check.name, f"{check.found}{remedy}")
        output().print(table)
        output().print(_VERDICTS[usable])
        output().print("\nwhat can disturb trials in real time (host, kvm) here:")
        output().print(_environment_table(environment))
    if not usable:
        raise typer.Exit(1)


def _environment_table(environment: "Environment") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    for reading in environment.readings:
        mark, style = _mark(reading)
        shown = reading.value or f"not known: {reading.absent}"
        concern = f"\n{reading.concern}" if reading.concern else ""
        advice = f"\n→ {reading.advice}" if reading.advice else ""
        table.add_row(Text(mark, style=style), reading.name, f"{shown}{concern}{advice}")
    return table


def _mark(reading: "Reading") -> tuple[str, str]:
    if reading.concern:
        return _MARKS["limited"]
    return ("–", "dim") if reading.absent else _MARKS["fine"]
