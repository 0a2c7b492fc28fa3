"""The stores and studies that a command line names: stored, in bundles, in files, or described by options.

Each function imports what it needs: commands, which import this, start without it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrial.cli.command_line import BadOption
from ktrial.cli.error_handling import tell, tell_warnings
from ktrial.store.location import default_location
from ktrial.studyfile.errors import PatchNotGiven, StudyError

if TYPE_CHECKING:
    from ktrial.model.study import Study
    from ktrial.store.store import Store
    from ktrial.store.study_rows import StoredStudy
    from ktrial.studyfile.references import Registry

DAMAGED = 1
"""The exit code where a study is not what was stored."""


class NothingStored(StudyError):
    """A store has no study yet."""

    exit_code = 1


def registry() -> "Registry":
    """What names a study may use here. Extensions that are broken are told, and left out."""
    from ktrial.experiment import resources

    everything = resources.installed()
    tell_warnings(everything.warnings)
    return everything.registry


def study_of_options(data: Mapping[str, Any], name: str, options: Mapping[str, str]) -> "Study":
    """The study that a command's options describe, in a study file's shape; None: the option was not given.

    `options`: key of a study file → the option that stands for it, for messages. Raises StudyError.
    """
    from ktrial.studyfile.diagnostics import StudySource
    from ktrial.studyfile.reader import study_from

    source = StudySource("command line", options=options)
    return study_from(without_none(data), source, name, Path.cwd(), registry())


def without_none(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table, and those in it, with the values that are there."""
    return {
        key: without_none(value) if isinstance(value, Mapping) else value
        for key, value in table.items()
        if value is not None
    }


def study_at(path: Path) -> "Study":
    """The study in the file. Raises StudyError."""
    from ktrial.studyfile.reader import load

    return load(path, registry())


def open_store(location: str | Path | None, **how: bool) -> "Store":
    """The store at the location, else the default one, made where it is not there. Raises StoreError.

    `how`: as `ktrial.store.store.open_store` has it.
    """
    from ktrial.store import store

    return store.open_store(location or default_location(), **how)


def open_existing(location: str | None) -> "Store":
    """The store that a command reads. One that is named has to be there: a mistyped name makes none.

    Raises NoStoreThere, and what open_store raises.
    """
    return open_store(location, existing=location is not None)


def stored_names(location: str | None) -> Collection[str]:
    """The names of the studies in a store; none where there is no store."""
    location = location or default_location()
    if "://" not in location and not Path(location).exists():
        return ()
    with open_store(location) as opened:
        return opened.names()


def find(store: "Store", name: str | None) -> "StoredStudy":
    """The study with this name, number or file; the one run last where none is named.

    Raises NothingStored, StudyNotStored, and what reading a file raises.
    """
    newest = store.newest()
    if newest is None:
        raise NothingStored(f"{store.name}: there is no study yet", hint="run one: ktrial run STUDY.toml")
    if name is None:
        return newest
    if not name.endswith(".toml"):
        return _find(store, name, name)
    from ktrial.model.base import digest

    try:
        study = study_at(Path(name))
    except PatchNotGiven:
        return _find(store, Path(name).stem, name)  # with whichever patch it was run last
    return store.newest(digest=digest(study)) or _find(store, study.name, name)


def _find(store: "Store", name: str, file: str) -> "StoredStudy":
    """The stored study of this name. Raises StudyNotStored, which says how one is run that has a file."""
    from ktrial.store.errors import StudyNotStored
    from ktrial.studyfile import toml_files

    try:
        return store.find(name)
    except StudyNotStored:
        if file == name and Path(name).exists():
            hint = f"the file {name} is neither a study's (NAME.toml) nor a bundle"
            raise StudyNotStored(store.name, name, hint=hint) from None
        if file == name and name not in toml_files.names():
            raise
        raise StudyNotStored(store.name, name, hint=f"it was not run yet: ktrial run {file}") from None


def is_bundle(study: str | None) -> bool:
    """Whether a file is named that looks like a bundle."""
    if study is None or not Path(study).is_file():
        return False
    from ktrial.bundle.archive import looks_like_one

    return looks_like_one(Path(study))


@contextmanager
def open_named(
    location: str | None, study: str | None, signers: Path | None = None
) -> "Iterator[tuple[Store, StoredStudy]]":
    """The study, and the store that has it; a bundle is read into a store for now.

    Raises what finding it, or reading a bundle, raises.
    """
    if study is not None and is_bundle(study):
        from ktrial.bundle.reading import open_filled

        with open_filled(Path(study), signers) as (_, store, stored):
            yield store, stored
        return
    if signers:
        raise BadOption("--signers", "only a bundle is signed; name its file")
    with open_existing(location) as store:
        yield store, find(store, study)


def tell_left_out(studies: Iterable[str], action: str = "taken in") -> bool:
    """A warning for each damaged study (`study 2, quick`), which is not `taken in`; whether there was one."""
    names = list(studies)
    for name in names:
        tell(
            f"{name}, is damaged, and is not {action}",
            "ktrial store verify names all that is damaged, and how to go on",
            kind="warning",
        )
    return bool(names)
