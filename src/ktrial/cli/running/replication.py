"""Runs a bundle's study again: the stores, the progress, the page."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from ktrial.bundle.reading import Bundle, open_bundle
from ktrial.bundle.replicating import Replicated, ReplicationRequest, replicate, study_again
from ktrial.cli.command_line import BadOption
from ktrial.cli.console import say, write_page
from ktrial.cli.progress import progress
from ktrial.format.sanitize import one_line
from ktrial.model.base import digest
from ktrial.report.replication import replication_page
from ktrial.store.store import Store, open_store

_KEY = 16


def replicated(
    file: Path,
    signers: Path | None,
    *,
    only: tuple[str, ...],
    perturbations: int | None,
    host_files: bool,
    store: Path | None,
    jobs: int | None,
) -> Replicated:
    """The replication of the bundle in a file, with its progress on standard error."""
    asked = ReplicationRequest(only, perturbations, host_files)
    with open_bundle(file, signers) as bundle:
        study_again(bundle, asked)  # what is refused is refused before anything is made
        _introduce(bundle)
        with (
            tempfile.TemporaryDirectory(prefix="ktrial-bundle-") as directory,
            open_store(Path(directory) / "bundle.db") as first,
            _fresh(bundle, asked, store) as fresh,
            progress() as observer,
        ):
            return replicate(bundle, (first, fresh), asked, observer=observer, jobs=jobs)


def written(made: Replicated, path: Path) -> Path:
    """Write the page. Raises ReportNotWritten."""
    again = "the same command again: what is measured is kept"
    return write_page(path, replication_page(made.replication, made.before, made.now), again)


def _introduce(bundle: Bundle) -> None:
    contents = bundle.contents
    signed = f"signed by {bundle.signer}" if bundle.signer else "its signature was not asked for (--signers)"
    when = contents.ended.date().isoformat()
    say(f"{one_line(contents.study)}: {contents.trials} trials of {when}, ktrial {contents.ktrial}; {signed}")


@contextmanager
def _fresh(bundle: Bundle, asked: ReplicationRequest, named: Path | None) -> Iterator[Store]:
    """A store that has nothing, or the trials of this replication that an interruption left.

    One that is named stays; else it is deleted when all of it has been compared.
    """
    if named and named.exists():
        raise BadOption(option="--store", problem=f"{named} is there; a replication needs a store of its own")
    if named:
        with open_store(named) as store:
            yield store
        return
    key = digest([bundle.manifest_digest, asked.only, asked.perturbations])[:_KEY]
    place = Path(platformdirs.user_data_dir("ktrial")) / "replications" / f"{key}.db"
    with open_store(place) as store:
        yield store
    for left in place.parent.glob(f"{place.name}*"):
        left.unlink(missing_ok=True)
