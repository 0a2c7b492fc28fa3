"""`ktrial store`: look after the store itself."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import KtrialCommand, command_group
from ktrial.cli.options.common import Json, StoreOption
from ktrial.cli.options.completion import study_names

if TYPE_CHECKING:
    from ktrial.store import StoredStudy
    from ktrial.store.trial_digests import TrialCheck

app = command_group("Look after the store of trials.")
DAMAGED = 1
"""The exit code where a trial is not what was stored."""


@app.command("verify", cls=KtrialCommand)
def verify(
    studies: Annotated[
        list[str] | None,
        typer.Argument(
            help="Studies, by name or number; without, all.", metavar="[STUDY…]", autocompletion=study_names
        ),
    ] = None,
    store: StoreOption = None,
    remove_damaged: Annotated[
        bool, typer.Option("--remove-damaged", help="Take damaged trials away, so that they are run again.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare every stored trial, and all that belongs to it, with the digest that it was stored with.

    No verdict is given from a damaged trial. Trials that an older ktrial stored have no digest, and are only
    counted. Exit code 1: something is damaged (and still there).
    """
    from ktrial.cli.console import messages, output, print_json
    from ktrial.store import open_store

    with open_store(store, read_only=not remove_damaged) as opened:
        wanted = [opened.find(name) for name in studies] if studies else opened.studies()
        checked = []
        with messages().status("") as status:
            for study in wanted:
                status.update(f"{study.study.name}: reading {study.finished} trials")
                checked.append((study, opened.check_trials(study.id)))
        damaged = [check for _, checks in checked for check in checks if check.damaged]
        if remove_damaged:
            opened.remove_trials([check.trial_id for check in damaged])
    if json:
        print_json([_data(study, checks, removed=remove_damaged) for study, checks in checked])
    else:
        output().print(_table(checked))
        for line in _lines(checked):
            print(line)
    if damaged and not remove_damaged:
        rest = "the command that ran the study then runs them again"
        messages().print(f"take them away: ktrial store verify --remove-damaged; {rest}")
        raise typer.Exit(DAMAGED)
    if damaged:
        messages().print(f"{len(damaged)} removed: the command that ran the study runs them again")


def _data(study: "StoredStudy", checks: "tuple[TrialCheck, ...]", *, removed: bool) -> dict[str, Any]:
    return {
        "number": study.id,
        "study": study.study.name,
        "trials": len(checks),
        "without_digest": sum(not check.has_digest for check in checks),
        "damaged": [
            {"trial": check.key, "what": list(check.damaged), "removed": removed}
            for check in checks
            if check.damaged
        ],
    }


def _table(checked: "list[tuple[StoredStudy, tuple[TrialCheck, ...]]]") -> Any:
    from rich.table import Table

    table = Table("number", "study", "trials", "without digest", "damaged", box=None, pad_edge=False)
    for study, checks in checked:
        counts = (
            len(checks),
            sum(not each.has_digest for each in checks),
            sum(bool(each.damaged) for each in checks),
        )
        table.add_row(str(study.id), study.study.name, *map(str, counts))
    return table


def _lines(checked: "list[tuple[StoredStudy, tuple[TrialCheck, ...]]]") -> list[str]:
    """Each damaged trial, and that older ones cannot be judged."""
    lines = [
        f"damaged: {study.study.name}, trial {check.key}: {', '.join(check.damaged)}"
        for study, checks in checked
        for check in checks
        if check.damaged
    ]
    if any(not check.has_digest for _, checks in checked for check in checks):
        lines.append(
            "trials without a digest were stored by an older ktrial: whether they changed cannot be told"
        )
    return lines
