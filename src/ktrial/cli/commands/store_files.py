"""`ktrial store files` and `collect`: where a store's large parts lie, and what is left over there."""

from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json, StoreOption

if TYPE_CHECKING:
    from ktrial.store import Store
    from ktrial.store.file_place import FilePlace

NONE = "none"
_PlaceName = Annotated[
    str | None,
    typer.Argument(
        metavar="[PLACE|none]", help="A directory, or a URL of fsspec's. Without: where they are now."
    ),
]
_Above = Annotated[
    str | None, typer.Option("--above", metavar="8K", help="Smaller parts stay inside; else 8K, a page.")
]
_TakeOver = Annotated[
    bool, typer.Option("--take-over", help="The store was moved: its files are this one's from now on.")
]


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
    from ktrial.store import open_store

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


@examples("ktrial store collect")
def collect(store: StoreOption = None, json: Json = False) -> None:
    """Take away files that no trial names any more: of trials that were removed, and of killed writes.

    Others may use the store meanwhile.
    """
    from ktrial.cli.console import messages, print_json
    from ktrial.format.number_format import counted, size
    from ktrial.store import open_store
    from ktrial.store.collecting import collect as collect_files

    with open_store(store, existing=True) as opened, messages().status("reading what is there"):
        collected = collect_files(opened)
    if json:
        print_json(collected._asdict())
    else:
        print(f"{counted(collected.files, 'file')} taken away, {size(collected.size)}")


def _name(opened: "Store", given: str | None, above: str | None, *, take_over: bool) -> None:
    from ktrial.cli.command_line import BadOption
    from ktrial.model.quantities import size_bytes
    from ktrial.store import file_place
    from ktrial.store.file_place import ABOVE
    from ktrial.store.placing import name

    before = opened.transactions.read(file_place.read)
    if given is None and before is None:
        raise BadOption(option="PLACE", problem="this store has no files: where are they to be?")
    try:
        size = size_bytes(above, bare=True) if above else before.above if before else ABOVE
    except ValueError as error:
        raise BadOption(option="--above", problem=error) from None
    name(opened, given, size, take_over=take_over)


def _forget(opened: "Store") -> None:
    from ktrial.store import placing

    placing.forget(opened)


def _tell(opened: "Store", *, json: bool) -> None:
    from ktrial.cli.console import print_json
    from ktrial.store import file_place

    place = opened.transactions.read(file_place.read)
    outside = opened.transactions.read(file_place.outside)
    if json:
        told = {"place": opened.files.shown(place), "above": place.above} if place else {"place": None}
        print_json(told | outside._asdict())
        return
    print(_line(opened, place, *outside))


def _line(opened: "Store", place: "FilePlace | None", parts: int, count: int, size: int) -> str:
    from ktrial.format.number_format import counted
    from ktrial.format.number_format import size as shown

    if place is None:
        return "all of it is inside; ktrial store files PLACE keeps large profiles and series in files"
    there = f"{counted(parts, 'part')} in {counted(count, 'file')}, {shown(size)}"
    return f"{opened.files.shown(place)}: parts above {shown(place.above)}; {there}"
