"""Takes away files of a store's large parts that no part names any more: of trials that were removed or
replaced, and of writes that were killed."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from sqlalchemy import Connection

from ktrial.fault_points import fault_point
from ktrial.file_store import FileStore
from ktrial.store import file_place
from ktrial.store.file_place import FilePlace
from ktrial.store.store import Store

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
    place = store.transactions.read(file_place.read)
    if place is None:
        return Collected(0, 0)
    store.files.check_own(place)
    with store.files.telling(place):
        files = store.files.open(place)
        removed = [Collected(files.remove_abandoned(), 0)]
        for there in files.digests():
            named = store.transactions.read(partial(file_place.named, among=there))
            for some in _some([digest for digest in there if digest not in named]):
                removed.append(store.transactions.write(partial(_remove, files=files, digests=some)))
    return Collected(sum(one.files for one in removed), sum(one.size for one in removed))


def missing(store: Store, place: FilePlace, named: set[str]) -> set[str]:
    """Those of the files that are not in the place. Raises FilesAway."""
    with store.files.telling(place):
        return named.difference(*store.files.open(place).digests()) if named else named


def _remove(connection: Connection, files: FileStore, digests: Sequence[str]) -> Collected:
    """Those of them that nothing names now. Who wrote one meanwhile, to name it next, writes it again."""
    file_place.count_collection(connection)
    unnamed = sorted(set(digests) - file_place.named(connection, digests))
    fault_point("store: files that nothing names are taken away")
    return Collected(len(unnamed), files.remove(unnamed))


def _some(digests: list[str]) -> Iterator[list[str]]:
    return (digests[first : first + AT_ONCE] for first in range(0, len(digests), AT_ONCE))
