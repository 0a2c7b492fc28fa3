"""`ktrial list`: the studies in the store."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.console import output, print_json, say
from ktrial.cli.options.common import Json, StoreOption

if TYPE_CHECKING:
    from ktrial.store import StoredStudy

All = Annotated[
    bool,
    typer.Option("--all", help="Also what check, watch, baseline and bisect measured for themselves."),
]


def list_studies(store: StoreOption = None, all_: All = False, json: Json = False) -> None:
    """List the studies in the store."""
    from ktrial.model.plan import treatments
    from ktrial.store import default_location, open_store

    with open_store(store or default_location()) as opened:
        every = [(one, len(treatments(one.study))) for one in opened.studies()]
        name = opened.name
    rows = [(one, arms) for one, arms in every if all_ or _is_a_users(one, arms)]
    if json:
        print_json([_data(one, arms, name) for one, arms in rows])
        return
    if rows:
        _print(rows)
    elif not every:
        say(f"there is no study in {name} yet; run one: ktrial run STUDY.toml")
    if hidden := len(every) - len(rows):
        say(f"{hidden} more that ktrial measured for check, watch, baseline or bisect: ktrial list --all")


def _is_a_users(one: "StoredStudy", arms: int) -> bool:
    """A study file can choose no name with a colon, and has a search or at least two treatments."""
    if one.study.search:
        return True
    return ":" not in one.study.name and arms > 1


def _planned(one: "StoredStudy", arms: int) -> int | None:
    """How many trials there will be; of a search at most; None where only its time is limited."""
    return one.study.search.budget.runs if one.study.search else arms * one.study.blocks


def _data(one: "StoredStudy", arms: int, store: str) -> dict[str, Any]:
    return {
        "id": one.id,
        "study": one.study.name,
        "question": one.study.question,
        "created": one.created.isoformat(),
        "planned": _planned(one, arms),
        "finished": one.finished,
        "failed": one.failed,
        "store": store,
    }


def _print(rows: "list[tuple[StoredStudy, int]]") -> None:
    from rich.table import Table

    from ktrial.format import number_format
    from ktrial.format.sanitize import one_line

    table = Table("id", "study", "made", "trials", "question", box=None, pad_edge=False, header_style="bold")
    for one, arms in rows:
        failed = f", {one.failed} failed" if one.failed else ""
        trials = f"{one.finished}/{_planned(one, arms) or '?'}{failed}"
        made = number_format.moment(one.created)
        table.add_row(str(one.id), one_line(one.study.name), made, trials, one_line(one.study.question))
    output().print(table)
