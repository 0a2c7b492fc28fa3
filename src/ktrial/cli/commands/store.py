"""`ktrial store`: look after the store itself."""

from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ktrial.cli.command_line import KtrialCommand, command_group, examples
from ktrial.cli.options.common import Json, StoreOption
from ktrial.cli.options.completion import study_names

if TYPE_CHECKING:
    from ktrial.store.copying import Copied
    from ktrial.store.integrity import StudyCheck
    from ktrial.store.part_files import FilePlace
    from ktrial.store.store import Store
    from ktrial.store.trial_rows import TrialCheck


app = command_group("Look after the store of trials.")


From = Annotated[str, typer.Argument(metavar="FROM", help="A store: a file or a URL.")]


# `ktrial store copy` and `ktrial store merge`: studies from one store into another.

NOT_ALL = 1
"""The exit code where something was not copied."""


def _copied(source: str, target: str, *, json: bool, keeps_number: bool) -> None:
    from ktrial.cli.command_line import BadOption
    from ktrial.cli.console import messages, output, print_json
    from ktrial.store.copying import check_is_copy
    from ktrial.store.store import open_store

    with open_store(source, existing=True) as first, open_store(target) as second:
        if first.name == second.name:
            raise BadOption(option="FROM", problem=f"both stores are {first.name}")
        if keeps_number:
            check_is_copy(first, second)
        with messages().status("") as status:
            copied, left_out = _each(first, second, status.update, keeps_number=keeps_number)
    if json:
        print_json({"studies": [one._asdict() for one in copied], "damaged_studies": left_out})
    else:
        output().print(_store_copying_table(copied))
        for line in _store_copying_lines(copied, left_out):
            messages().print(line)
    if left_out or any(one.damaged or one.differing for one in copied):
        raise typer.Exit(NOT_ALL)


def _each(
    first: "Store", second: "Store", show: "object", *, keeps_number: bool
) -> "tuple[list[Copied], list[str]]":
    """Every study; the damaged ones, which are left out."""
    from ktrial.store.copying import copy_study
    from ktrial.store.errors import StudyDamaged

    copied, left_out = [], []
    for study in first.check_studies():

        def tell(done: int, name: str = study.name) -> None:
            show(f"{name}: {done} trials")  # type: ignore[operator]

        try:
            copied.append(copy_study(first, second, study.id, keeps_number=keeps_number, tell=tell))
        except StudyDamaged:
            left_out.append(f"study {study.id}, {study.name}")
    return copied, left_out


def _store_copying_lines(copied: "list[Copied]", left_out: list[str]) -> list[str]:
    """What was not copied, and why."""
    return [
        *(f"not copied: {one}: it is not what was stored" for one in left_out),
        *(
            f"not copied: {one.name}, {what}: it is not what was stored"
            for one in copied
            for what in one.damaged
        ),
        *(
            f"not copied: {one.name}, {what}: the other store has it, and says something else"
            for one in copied
            for what in one.differing
        ),
    ]


def _store_copying_table(copied: "list[Copied]") -> object:
    from rich.table import Table

    table = Table("number", "study", "copied", "there", "damaged", "differ", box=None, pad_edge=False)
    for one in copied:
        counts = (one.copied, one.there, len(one.damaged), len(one.differing))
        table.add_row(str(one.number), one.name, *map(str, counts))
    return table


@examples("ktrial store copy ktrial.db postgresql://me@db.example.org/ktrial")
def copy(
    source: From,
    target: Annotated[str, typer.Argument(metavar="TO", help="A new store, or a copy that was interrupted.")],
    json: Json = False,
) -> None:
    """Copy a store, from a file to a server or back: numbers, moments and digests stay as they are.

    Each trial is compared with its digest on the way. Interrupted, the same command goes on where it was.
    Exit code 1: something is damaged, and was not copied.
    """
    _copied(source, target, json=json, keeps_number=True)


app.command("copy", cls=KtrialCommand)(copy)


@examples("ktrial store merge colleague.db postgresql://me@db.example.org/ktrial")
def merge(
    source: From,
    target: Annotated[str, typer.Argument(metavar="INTO", help="The store that is added to.")],
    json: Json = False,
) -> None:
    """Add a store's studies to another one, under new numbers; of a study that both have, what is missing.

    Nothing in INTO is changed. Exit code 1: something is damaged, or both have it and say different things.
    """
    _copied(source, target, json=json, keeps_number=False)


app.command("merge", cls=KtrialCommand)(merge)


# `ktrial store files` and `collect`: where a store's large parts lie, and what is left over there.

NONE = "none"


_Above = Annotated[
    str | None, typer.Option("--above", metavar="8K", help="Smaller parts stay inside; else 8K, a page.")
]


_PlaceName = Annotated[
    str | None,
    typer.Argument(
        metavar="[PLACE|none]", help="A directory, or a URL of fsspec's. Without: where they are now."
    ),
]


_TakeOver = Annotated[
    bool, typer.Option("--take-over", help="The store was moved: its files are this one's from now on.")
]


def _forget(opened: "Store") -> None:
    from ktrial.store.file_maintenance import forget_file_place

    forget_file_place(opened)


def _line(opened: "Store", place: "FilePlace | None", parts: int, count: int, size: int) -> str:
    from ktrial.format.number_format import counted
    from ktrial.format.number_format import size as shown

    if place is None:
        return "all of it is inside; ktrial store files PLACE keeps large profiles and series in files"
    there = f"{counted(parts, 'part')} in {counted(count, 'file')}, {shown(size)}"
    return f"{opened.files.shown(place)}: parts above {shown(place.above)}; {there}"


def _name(opened: "Store", given: str | None, above: str | None, *, take_over: bool) -> None:
    from ktrial.cli.command_line import BadOption
    from ktrial.model.notation import size_bytes
    from ktrial.store import part_files
    from ktrial.store.file_maintenance import name_file_place
    from ktrial.store.part_files import ABOVE

    before = opened.transactions.read(part_files.read_place)
    if given is None and before is None:
        raise BadOption(option="PLACE", problem="this store has no files: where are they to be?")
    try:
        size = size_bytes(above, bare=True) if above else before.above if before else ABOVE
    except ValueError as error:
        raise BadOption(option="--above", problem=error) from None
    name_file_place(opened, given, size, take_over=take_over)


def _tell(opened: "Store", *, json: bool) -> None:
    from ktrial.cli.console import print_json
    from ktrial.store import part_files

    place = opened.transactions.read(part_files.read_place)
    outside = opened.transactions.read(part_files.parts_outside)
    if json:
        told = {"place": opened.files.shown(place), "above": place.above} if place else {"place": None}
        print_json(told | outside._asdict())
        return
    print(_line(opened, place, *outside))


@examples("ktrial store files ktrial.files", "ktrial store files s3://lab/ktrial --above 64K")
def files(
    place: _PlaceName = None,
    above: _Above = None,
    take_over: _TakeOver = False,
    store: StoreOption = None,
    json: Json = False,
) -> None:
    """Keep large profiles and series of trials in files, outside the store; or say where they are kept.

    Whoever opens the store finds the place in it. What is stored already stays where it is (ktrial store copy
    moves it). `none`: nothing more goes there.
    """
    from ktrial.store.store import open_store

    if place is None and not take_over and above is None:
        with open_store(store, read_only=True) as opened:
            _tell(opened, json=json)
        return
    with open_store(store) as opened:
        if place == NONE:
            _forget(opened)
        else:
            _name(opened, place, above, take_over=take_over)
        _tell(opened, json=json)


app.command("files", cls=KtrialCommand)(files)


@examples("ktrial store collect")
def collect(store: StoreOption = None, json: Json = False) -> None:
    """Take away files that no trial names any more: of trials that were removed, and of killed writes.

    Others may use the store meanwhile.
    """
    from ktrial.cli.console import messages, print_json
    from ktrial.format.number_format import counted, size
    from ktrial.store.file_maintenance import collect as collect_files
    from ktrial.store.store import open_store

    with open_store(store, existing=True) as opened, messages().status("reading what is there"):
        collected = collect_files(opened)
    if json:
        print_json(collected._asdict())
    else:
        print(f"{counted(collected.files, 'file')} taken away, {size(collected.size)}")


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

    No verdict is given from a damaged trial. Exit code 1: something is damaged (and still there).
    """
    from ktrial.cli.console import messages, output, print_json
    from ktrial.store.store import open_store

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
        "damaged": [
            {"trial": check.key, "what": list(check.damaged), "removed": removed}
            for check in checks
            if check.damaged
        ],
    }


def _table(checked: "list[tuple[StudyCheck, tuple[TrialCheck, ...]]]", missing: dict[int, str]) -> Any:
    from rich.table import Table

    table = Table("number", "study", "trials", "damaged", box=None, pad_edge=False)
    for study, checks in checked:
        counts = (
            len(checks),
            sum(bool(each.damaged) for each in checks) + len(study.damaged) + (study.id in missing),
        )
        table.add_row(str(study.id), study.name, *map(str, counts))
    return table


def _lines(checked: "list[tuple[StudyCheck, tuple[TrialCheck, ...]]]", missing: dict[int, str]) -> list[str]:
    """Each damaged trial, and each damaged part of a study."""
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
    return lines
