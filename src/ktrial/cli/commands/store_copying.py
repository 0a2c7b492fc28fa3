"""`ktrial store copy` and `ktrial store merge`: studies from one store into another."""

from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json

if TYPE_CHECKING:
    from ktrial.store import Store
    from ktrial.store.copying import Copied

NOT_ALL = 1
"""The exit code where something was not copied."""
From = Annotated[str, typer.Argument(metavar="FROM", help="A store: a file or a URL.")]


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


def _copied(source: str, target: str, *, json: bool, keeps_number: bool) -> None:
    from ktrial.cli.command_line import BadOption
    from ktrial.cli.console import messages, output, print_json
    from ktrial.store import open_store
    from ktrial.store.copying import check_is_copy

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
        output().print(_table(copied))
        for line in _lines(copied, left_out):
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


def _table(copied: "list[Copied]") -> object:
    from rich.table import Table

    table = Table("number", "study", "copied", "there", "damaged", "differ", box=None, pad_edge=False)
    for one in copied:
        counts = (one.copied, one.there, len(one.damaged), len(one.differing))
        table.add_row(str(one.number), one.name, *map(str, counts))
    return table


def _lines(copied: "list[Copied]", left_out: list[str]) -> list[str]:
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
