"""A store that has what is in a bundle, for as long as it is looked at."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ktrial.bundle.reading import Bundle, open_bundle
from ktrial.store import Store, StoredStudy, open_store


@contextmanager
def open_filled(file: Path, signers: Path | None = None) -> Iterator[tuple[Bundle, Store, StoredStudy]]:
    """The bundle, and a store that has its study, until the block ends. Raises what `open_bundle` raises."""
    with (
        open_bundle(file, signers) as bundle,
        tempfile.TemporaryDirectory(prefix="ktrial-bundle-") as directory,
        open_store(Path(directory) / "bundle.db") as store,
    ):
        number = bundle.fill(store)
        store.name = str(file)
        yield bundle, store, store.find(number)
