"""`ktrial doctor`: what this machine lacks, and the command that brings it."""

import typer

from ktrial.cli.options import Json
from ktrial.cli.terminal import messages, output, print_json

_MARKS = {"fine": ("✓", "green"), "limited": ("!", "yellow"), "missing": ("✗", "red")}
_VERDICTS = {
    True: "exact mode can run here",
    False: "exact mode cannot run here: see what is marked ✗",
}


def doctor(json: Json = False) -> None:
    """Check this machine, and say what is missing."""
    from rich.table import Table
    from rich.text import Text

    from ktrial.runner.doctor import State, examine

    with messages().status("looking at this machine") as status:
        checks = list(examine(status.update))
    usable = all(check.state is not State.MISSING for check in checks)
    if json:
        print_json({"usable": usable, "checks": [check.model_dump(mode="json") for check in checks]})
    else:
        table = Table(box=None, pad_edge=False, show_header=False)
        for check in checks:
            mark, style = _MARKS[check.state]
            remedy = f"\n→ {check.remedy}" if check.remedy else ""
            table.add_row(Text(mark, style=style), check.name, f"{check.found}{remedy}")
        output().print(table)
        output().print(_VERDICTS[usable])
    if not usable:
        raise typer.Exit(1)
