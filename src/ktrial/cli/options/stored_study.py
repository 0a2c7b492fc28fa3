"""Finds a study in the store by what the user calls it."""

from pathlib import Path

from ktrial.store import Store, StoredStudy, default_location, open_store
from ktrial.studyfile.errors import PatchNotGiven, StudyError


class NothingStored(StudyError):
    """{where}: there is no study yet."""

    hint = "run one: ktrial run STUDY.toml"
    exit_code = 1


def open_existing(location: str | None) -> Store:
    """The store that a command reads. One that is named has to be there: a mistyped name makes none.

    Raises NoStoreThere, and what open_store raises.
    """
    return open_store(location or default_location(), existing=location is not None)


def find(store: Store, wanted: str | None) -> StoredStudy:
    """The study with this name, number or file; the one run last where nothing is given.

    Raises NothingStored, StudyNotStored, and what reading a file raises.
    """
    newest = store.newest()
    if newest is None:
        raise NothingStored(where=store.name)
    if wanted is None:
        return newest
    if wanted.endswith(".toml"):
        return _of_file(store, Path(wanted))
    return store.find(wanted)


def _of_file(store: Store, path: Path) -> StoredStudy:
    """What the file's study, as it is now, has measured; else the newest of its name."""
    from ktrial.cli.installed import registry
    from ktrial.model.base import digest
    from ktrial.studyfile import load

    try:
        study = load(path, registry())
    except PatchNotGiven:
        return store.find(path.stem)  # with whichever patch it was run last
    return store.newest(digest=digest(study)) or store.find(study.name)
