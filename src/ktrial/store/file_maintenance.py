"""Names the place of a store's large parts, or another one after its files were moved, or none."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from sqlalchemy import Connection

from ktrial.fault_points import fault_point
from ktrial.file_store import FileStore
from ktrial.store import part_files
from ktrial.store.errors import FilesMissing, StoreError
from ktrial.store.part_files import FilePlace, location_for
from ktrial.store.store import Store

# Names the place of a store's large parts, or another one after its files were moved, or none.


def name(store: Store, given: str | None, above: int, *, take_over: bool = False) -> FilePlace:
    """Have parts of more than `above` bytes in this place from now on; None: where they are.

    `take_over`: its files are this store's, whoever's they were. Nothing is changed where it raises
    FilesMissing: what lies in files is not there; FilesAreAnothers, FilesAway, BadFileStore.
    """
    before = store.transactions.read(part_files.read_place)
    url = before.url if given is None and before else location_for(given or "", store.transactions.file)

    def written(connection: Connection) -> FilePlace:
        place = part_files.name_place(connection, url, above)
        absent = missing(store, place, part_files.named_files(connection))
        if absent:
            facts = {"files": store.files.shown(place), "missing": len(absent), "example": min(absent)}
            raise FilesMissing(store=store.name, **facts)
        store.files.adopt(place, before, take_over=take_over)
        return place

    return store.transactions.write(written)


def forget(store: Store) -> None:
    """Have no place any more. Raises FilesInUse where parts lie there."""
    try:
        store.transactions.write(part_files.forget_place)
    except part_files.PlaceInUse:
        raise StoreError(
            f"Store {store.name} has profiles or series in files: it needs their place.",
            hint="ktrial store copy makes a store that has all of it inside",
        ) from None


# Takes away files of a store's large parts that no part names any more: of trials that were removed or
# replaced, and of writes that were killed.

AT_ONCE = 50
"""Files in one transaction, for which other writers wait."""


class Collected(NamedTuple):
    """What was taken away."""

    files: int
    size: int
    """Bytes."""


def collect(store: Store) -> Collected:
    """Take away what nothing names. Others may write meanwhile.

    Raises FilesAreAnothers, where the store is a copy of the one whose files these are; FilesAway.
    """
    place = store.transactions.read(part_files.read_place)
    if place is None:
        return Collected(0, 0)
    store.files.check_own(place)
    with store.files.telling(place):
        files = store.files.open(place)
        removed = [Collected(files.remove_abandoned(), 0)]
        for there in files.digests():
            named = store.transactions.read(partial(part_files.named_files, among=there))
            for some in _some([digest for digest in there if digest not in named]):
                removed.append(store.transactions.write(partial(_remove, files=files, digests=some)))
    return Collected(sum(one.files for one in removed), sum(one.size for one in removed))


def missing(store: Store, place: FilePlace, named: set[str]) -> set[str]:
    """Those of the files that are not in the place. Raises FilesAway."""
    with store.files.telling(place):
        return named.difference(*store.files.open(place).digests()) if named else named


def _remove(connection: Connection, files: FileStore, digests: Sequence[str]) -> Collected:
    """Those of them that nothing names now. Who wrote one meanwhile, to name it next, writes it again."""
    part_files.count_collection(connection)
    unnamed = sorted(set(digests) - part_files.named_files(connection, digests))
    fault_point("store: files that nothing names are taken away")
    return Collected(len(unnamed), files.remove(unnamed))


def _some(digests: list[str]) -> Iterator[list[str]]:
    return (digests[first : first + AT_ONCE] for first in range(0, len(digests), AT_ONCE))
