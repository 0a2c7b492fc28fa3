"""Names the place of a store's large parts, or another one after its files were moved, or none; and takes
away files that no part names any more: of trials that were removed or replaced, and of writes that were
killed."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from sqlalchemy import Connection

from ktrial.fault_points import fault_point
from ktrial.file_store import FileStore
from ktrial.store.errors import StoreError
from ktrial.store.part_files import (
    FilePlace,
    PlaceInUse,
    count_collection,
    forget_place,
    location_for,
    name_place,
    named_files,
    read_place,
)
from ktrial.store.store import Store

AT_ONCE = 50
"""Files in one transaction, for which other writers wait."""


def name_file_place(store: Store, location: str | None, above: int, *, take_over: bool = False) -> FilePlace:
    """Have parts of more than `above` bytes in this place from now on; None: where they are.

    `take_over`: its files are this store's, whoever's they were. Nothing is changed where it raises
    StoreError: what lies in files is not there, the files are another store's, or cannot be reached;
    BadFileStore.
    """
    before = store.transactions.read(read_place)
    url = before.url if location is None and before else location_for(location or "", store.transactions.file)

    def written(connection: Connection) -> FilePlace:
        place = name_place(connection, url, above)
        names = named_files(connection)
        with store.files.telling(place):
            missing = names.difference(*store.files.open(place).digests()) if names else names
        if missing:
            raise StoreError(
                f"Store {store.name}: {len(missing)} of the files that it names are not in "
                f"{store.files.shown(place)}, among them {min(missing)}.",
                hint="bring them there first, with their directory; ktrial store files says where they are "
                "now",
            )
        store.files.adopt(place, before, take_over=take_over)
        return place

    return store.transactions.write(written)


def forget_file_place(store: Store) -> None:
    """Have no place any more. Raises StoreError where parts lie there."""
    try:
        store.transactions.write(forget_place)
    except PlaceInUse:
        raise StoreError(
            f"Store {store.name} has profiles or series in files: it needs their place.",
            hint="ktrial store copy makes a store that has all of it inside",
        ) from None


class Collected(NamedTuple):
    """What was taken away."""

    files: int
    size: int
    """Bytes."""


def collect(store: Store) -> Collected:
    """Take away what nothing names. Others may write meanwhile.

    Raises StoreError, also where the store is a copy of the one whose files these are.
    """
    place = store.transactions.read(read_place)
    if place is None:
        return Collected(0, 0)
    store.files.check_own(place)
    with store.files.telling(place):
        files = store.files.open(place)
        collected = [Collected(files.remove_abandoned(), 0)]
        for stored in files.digests():
            named = store.transactions.read(partial(named_files, among=stored))
            unnamed = [digest for digest in stored if digest not in named]
            for first in range(0, len(unnamed), AT_ONCE):
                some = unnamed[first : first + AT_ONCE]
                collected.append(store.transactions.write(partial(_remove, files=files, digests=some)))
    return Collected(sum(part.files for part in collected), sum(part.size for part in collected))


def _remove(connection: Connection, files: FileStore, digests: Sequence[str]) -> Collected:
    """Those of them that nothing names now. Who wrote one meanwhile, to name it next, writes it again."""
    count_collection(connection)
    unnamed = sorted(set(digests) - named_files(connection, digests))
    fault_point("store: files that nothing names are taken away")
    return Collected(len(unnamed), files.remove(unnamed))
