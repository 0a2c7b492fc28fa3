"""Names the place of a store's large parts, or another one after its files were moved, or none."""

from sqlalchemy import Connection

from ktrial.store import collecting, file_place
from ktrial.store.errors import FilesInUse, FilesMissing
from ktrial.store.file_place import FilePlace
from ktrial.store.part_files import location_for
from ktrial.store.store import Store


def name(store: Store, given: str | None, above: int, *, take_over: bool = False) -> FilePlace:
    """Have parts of more than `above` bytes in this place from now on; None: where they are.

    `take_over`: its files are this store's, whoever's they were. Nothing is changed where it raises
    FilesMissing: what lies in files is not there; FilesAreAnothers, FilesAway, BadFileStore.
    """
    before = store.transactions.read(file_place.read)
    url = before.url if given is None and before else location_for(given or "", store.transactions.file)

    def written(connection: Connection) -> FilePlace:
        place = file_place.name(connection, url, above)
        absent = collecting.missing(store, place, file_place.named(connection))
        if absent:
            facts = {"files": store.files.shown(place), "missing": len(absent), "example": min(absent)}
            raise FilesMissing(store=store.name, **facts)
        store.files.adopt(place, before, take_over=take_over)
        return place

    return store.transactions.write(written)


def forget(store: Store) -> None:
    """Have no place any more. Raises FilesInUse where parts lie there."""
    try:
        store.transactions.write(file_place.forget)
    except file_place.PlaceInUse:
        raise FilesInUse(store=store.name) from None
