"""`ktrial store`: look after the store itself."""

from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ktrial.cli.command_line import KtrialCommand, command_group, examples
from ktrial.cli.commands.store_copying import copy, merge
from ktrial.cli.commands.store_files import collect, files
from ktrial.cli.options.common import Json, StoreOption
from ktrial.cli.options.completion import study_names

if TYPE_CHECKING:
    from ktrial.store import Store
    from ktrial.store.study_digests import StudyCheck
    from ktrial.store.trial_digests import TrialCheck

app = command_group("Look after the store of trials.")
app.command("copy", cls=KtrialCommand)(copy)
app.command("merge", cls=KtrialCommand)(merge)
app.command("files", cls=KtrialCommand)(files)
app.command("collect", cls=KtrialCommand)(collect)
DAMAGED = 1
"""The exit code where a trial is not what was stored."""


@app.command("verify", cls=KtrialCommand)
@examples("ktrial store verify", "ktrial store verify quick --remove-damaged")
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
    """Compare every stored study, answer and trial, and all that belongs to it, with its digest.

    No verdict is given from a damaged trial. Trials that an older ktrial stored have no digest, and are only
    counted. Exit code 1: something is damaged (and still there).
    """
    from ktrial.cli.console import messages, output, print_json
    from ktrial.store import open_store

    with open_store(store, read_only=not remove_damaged) as opened:
        checked, missing = [], {}
        with messages().status("") as status:
            for study in _wanted(opened, studies or []):
                status.update(f"{study.name}: reading its trials")
                checked.append((study, opened.check_trials(study.id)))
                if problem := opened.missing_trials(study.id):
                    missing[study.id] = problem
        damaged = [check for _, checks in checked for check in checks if check.damaged]
        parts = [study for study, _ in checked if study.damaged]
        if remove_damaged:
            opened.remove_trials([check.trial_id for check in damaged])
            for study, checks in checked:
                if study.id in missing or any(check.damaged for check in checks):
                    opened.accept_missing_trials(study.id)
            for study in parts:
                opened.remove_damaged(study)
    if json:
        print_json(
            [
                {**_data(study, checks, removed=remove_damaged), "missing": missing.get(study.id, "")}
                for study, checks in checked
            ]
        )
    else:
        output().print(_table(checked, missing))
        for line in _lines(checked, missing):
            print(line)
    if missing and not remove_damaged:
        messages().print(
            "what is missing was in the store: put a copy of it back if there is one; or ktrial store verify "
            "--remove-damaged takes the trials that are there for all, and the command that ran the study "
            "runs the others again"
        )
    if (damaged or parts) and not remove_damaged:
        rest = "the command that ran the study then runs them again"
        messages().print(f"take them away: ktrial store verify --remove-damaged; {rest}")
        if any("(its file " in what for one in damaged for what in one.damaged):
            messages().print(
                "where a file is lost, the trial's numbers and verdicts are whole: put the file back from a "
                "backup, under its name, and nothing has to be taken away"
            )
        if any("study" in study.damaged for study in parts):
            messages().print(
                "what a study asks for is put right by the command that ran it, and its trials stay; "
                "--remove-damaged takes them away with it"
            )
    if (damaged or parts or missing) and not remove_damaged:
        raise typer.Exit(DAMAGED)
    if missing:
        messages().print("the command that ran the study runs the missing trials again")
    if damaged or parts:
        count = len(damaged) + sum(len(study.damaged) for study in parts)
        messages().print(f"{count} removed: the command that ran the study runs them again")


def _wanted(opened: "Store", names: list[str]) -> "list[StudyCheck]":
    """Those that are named, or all. Raises StudyNotStored."""
    every = opened.check_studies()
    if not names:
        return list(every)
    wanted = []
    for name in names:
        named = [each for each in every if each.name == name] or [
            each for each in every if str(each.id) == name
        ]
        wanted.append(named[-1] if named else _missing(opened, name))
    return wanted


def _missing(opened: "Store", name: str) -> NoReturn:
    from ktrial.store.errors import StudyNotStored

    raise StudyNotStored(store=opened.name, study=name, similar="")


def _data(study: "StudyCheck", checks: "tuple[TrialCheck, ...]", *, removed: bool) -> dict[str, Any]:
    return {
        "number": study.id,
        "study": study.name,
        "damaged_parts": list(study.damaged),
        "trials": len(checks),
        "without_digest": sum(not check.has_digest for check in checks),
        "damaged": [
            {"trial": check.key, "what": list(check.damaged), "removed": removed}
            for check in checks
            if check.damaged
        ],
    }


def _table(checked: "list[tuple[StudyCheck, tuple[TrialCheck, ...]]]", missing: dict[int, str]) -> Any:
    from rich.table import Table

    table = Table("number", "study", "trials", "without digest", "damaged", box=None, pad_edge=False)
    for study, checks in checked:
        counts = (
            len(checks),
            sum(not each.has_digest for each in checks),
            sum(bool(each.damaged) for each in checks) + len(study.damaged) + (study.id in missing),
        )
        table.add_row(str(study.id), study.name, *map(str, counts))
    return table


def _lines(checked: "list[tuple[StudyCheck, tuple[TrialCheck, ...]]]", missing: dict[int, str]) -> list[str]:
    """Each damaged trial, and that older ones cannot be judged."""
    lines = [f"damaged: {study.name}: {missing[study.id]}" for study, _ in checked if study.id in missing]
    lines += [
        f"damaged: {study.name}, {what}: it is not what was stored"
        for study, _ in checked
        for what in study.damaged
    ]
    lines += [
        f"damaged: {study.name}, trial {check.key}: {', '.join(check.damaged)}"
        for study, checks in checked
        for check in checks
        if check.damaged
    ]
    if any(
        not study.has_digest or any(not check.has_digest for check in checks) for study, checks in checked
    ):
        lines.append("what has no digest was stored by an older ktrial: whether it changed cannot be told")
    return lines
