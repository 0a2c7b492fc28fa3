"""What names a study may use here, for commands: extensions that are broken are told, and left out."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ktrial.cli.error_handling import tell
from ktrial.model.warnings import DataWarning
from ktrial.store.location import default_location
from ktrial.store.store import Store, open_store
from ktrial.store.study_rows import StoredStudy
from ktrial.studyfile.errors import PatchNotGiven, StudyError

if TYPE_CHECKING:
    from ktrial.studyfile.references import Registry

# What names a study may use here, for commands: extensions that are broken are told, and left out.


def tell_broken(warnings: Iterable[DataWarning]) -> None:
    """Tell which plugins are broken, and left out."""
    for warning in warnings:
        tell(warning.text, warning.advice, kind="warning")


def registry() -> "Registry":
    """Everything that is installed. Plugins that are broken are told, and left out."""
    from ktrial.experiment.resources import installed

    everything = installed()
    tell_broken(everything.warnings)
    return everything.registry


# What commands say that go on without the studies that are not what was stored.

DAMAGED = 1
"""The exit code where a study is not what was stored."""


def tell_left_out(studies: Iterable[str], what: str = "taken in") -> bool:
    """A warning for each (`study 2, quick`); whether there was one. `what` does not happen to it."""
    told = list(studies)
    for one in told:
        tell(
            f"{one}, is not what was stored, and is not {what}",
            "ktrial store verify names all that is damaged, and how to go on",
            kind="warning",
        )
    return bool(told)


# Finds a study in the store by what the user calls it.


class NothingStored(StudyError):
    """`where`: there is no study yet."""

    text = "{where}: there is no study yet."
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
    from ktrial.model.base import digest
    from ktrial.studyfile.reader import load

    try:
        study = load(path, registry())
    except PatchNotGiven:
        return store.find(path.stem)  # with whichever patch it was run last
    return store.newest(digest=digest(study)) or store.find(study.name)


# A study that a command is given: in the store, or in a bundle, which is read into a store for now.


def is_bundle(study: str | None) -> bool:
    """Whether a file is named that looks like a bundle."""
    if study is None or not Path(study).is_file():
        return False
    from ktrial.bundle.archive import looks_like_one

    return looks_like_one(Path(study))


@contextmanager
def open_named(
    location: str | None, study: str | None, signers: Path | None = None
) -> Iterator[tuple["Store", "StoredStudy"]]:
    """The study, and the store that has it. Raises what finding it, or reading a bundle, raises."""
    if study is not None and is_bundle(study):
        from ktrial.bundle.reading import open_filled

        with open_filled(Path(study), signers) as (_, store, stored):
            yield store, stored
        return
    if signers:
        from ktrial.cli.command_line import BadOption

        raise BadOption(option="--signers", problem="only a bundle is signed; name its file")

    with open_existing(location) as store:
        yield store, find(store, study)
