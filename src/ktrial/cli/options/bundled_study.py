"""A study that a command is given: in the store, or in a bundle, which is read into a store for now."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.options.completion import study_names

if TYPE_CHECKING:
    from ktrial.store import Store, StoredStudy

StudyOrBundle = Annotated[
    str | None,
    typer.Argument(
        metavar="[STUDY]",
        help="A study's name, number or file, or a bundle's file; else the latest.",
        autocompletion=study_names,
    ),
]
Signers = Annotated[
    Path | None,
    typer.Option(
        "--signers",
        metavar="FILE",
        help="A bundle must be signed by one of these (ssh-keygen's allowed signers).",
    ),
]


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
        from ktrial.bundle.filled_store import open_filled

        with open_filled(Path(study), signers) as (_, store, stored):
            yield store, stored
        return
    if signers:
        from ktrial.cli.command_line import BadOption

        raise BadOption(option="--signers", problem="only a bundle is signed; name its file")
    from ktrial.cli.options.stored_study import find, open_existing

    with open_existing(location) as store:
        yield store, find(store, study)
