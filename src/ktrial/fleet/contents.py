"""Files that a worker was given, by the digest of their content: verified on arrival, and when they are used.

<cache>/fleet/files/<sha256>/content      what has this digest
<cache>/fleet/files/<sha256>/<name>       the same file under a name that somebody needs it to have
<cache>/fleet/kernels/<digest>/<name>     a kernel's parts, beside which its symbols are kept
<cache>/fleet/arriving/<sha256>.<pid>.…   not all of it has arrived
"""

import contextlib
import os
import pickle
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ktrial.experiment.jobs import Job
from ktrial.fault_points import fault_point
from ktrial.file_digests import digest_of_bytes, digest_of_file, has_digest
from ktrial.file_store import FileStore
from ktrial.fleet.errors import FleetError, TransferDamaged
from ktrial.installation import cache_directory
from ktrial.model.machine import Boot, CarriedFile

_CONTENT = "content"
_STALE_SECONDS = 3600.0
"""Since a part was written: who received the file has ended. (A shared cache has other hosts' processes.)"""


class Contents:
    """All files that were given. May be used from several threads and processes."""

    def __init__(self, directory: Path | None = None) -> None:
        """`directory`: another place than below the user's cache."""
        self._root = directory or cache_directory() / "fleet"
        self._remove_stale()

    def lacking(self, digests: Iterable[str]) -> tuple[str, ...]:
        """Those that are not here, or not whole: what is damaged is taken away."""
        return tuple(digest for digest in digests if not self._is_here(digest))

    def take(self, store: FileStore, digest: str) -> bool:
        """Copy the file from the fleet's place of files, and verify it. Whether it was there.

        Raises FleetError, TransferDamaged, FileStoreFailed.
        """
        arriving = self._root / "arriving" / f"{digest}.{os.getpid()}.{threading.get_ident()}"
        arriving.parent.mkdir(parents=True, exist_ok=True)
        try:
            with arriving.open("wb") as file:

                def write(_offset: int, data: bytes, _size: int) -> None:
                    try:
                        file.write(data)
                        file.flush()
                    except OSError as error:
                        problem = error.strerror or str(error)
                        raise FleetError(
                            f"Worker: {self._root} takes no more files: {problem}",
                            hint="free some space there, or start the worker with another --cache",
                        ) from None
                    fault_point("fleet: part of a file received")

                if not store.take(digest, write):
                    return False
            actual = digest_of_file(arriving, anew=True)
            if actual != digest:
                raise TransferDamaged(f"What arrived of {digest} is something else: {actual}.")
            content = self._root / "files" / digest / _CONTENT
            content.parent.mkdir(parents=True, exist_ok=True)
            arriving.replace(content)
        finally:
            with contextlib.suppress(OSError):
                arriving.unlink(missing_ok=True)
        return True

    def place(self, digest: str, name: str) -> Path:
        """Where the content is, under this name. Raises KeyError where it is not here."""
        content = self._content(digest)
        return _linked(content, content.with_name(name)) if name != _CONTENT else content

    def kernel_part(self, kernel: str, digest: str, name: str) -> Path:
        """Where the content is as a part of the kernel with that digest. Raises KeyError."""
        return _linked(self._content(digest), self._root / "kernels" / kernel / name)

    def read(self, digest: str) -> bytes:
        """All of the content. Raises KeyError."""
        return self._content(digest).read_bytes()

    def _content(self, digest: str) -> Path:
        if not self._is_here(digest):
            raise KeyError(digest)
        return self._root / "files" / digest / _CONTENT

    def _is_here(self, digest: str) -> bool:
        content = self._root / "files" / digest / _CONTENT
        with contextlib.suppress(OSError):
            if has_digest(content, digest):
                return True
            content.unlink(missing_ok=True)
        return False

    def _remove_stale(self) -> None:
        """Take away what workers that were killed had received in part."""
        now = time.time()
        with contextlib.suppress(OSError):
            for place in (self._root / "arriving").iterdir():
                with contextlib.suppress(OSError):
                    if now - place.stat().st_mtime > _STALE_SECONDS:
                        place.unlink()


def _linked(content: Path, place: Path) -> Path:
    """The content under another name: one file, so that it need not be read again."""
    try:
        if place.samefile(content):
            return place
    except FileNotFoundError:
        place.parent.mkdir(parents=True, exist_ok=True)
    new = place.with_name(f".{place.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        os.link(content, new)
        new.replace(place)
    except OSError as error:
        raise FleetError(f"Fleet worker: {place}: {error.strerror}") from None
    finally:
        new.unlink(missing_ok=True)
    return place


# What a treatment's trials do, packed for another system: jobs, and the digests of files that they need.

_KERNEL_PARTS = ("image", "vmlinux", "config")
"""What a machine boots, and reads of it. Modules that a boot loads are named one by one."""


@dataclass(frozen=True)
class Package:
    """The jobs of a treatment, and all files of the client's that they name."""

    digest: str
    data: bytes
    """The pickled jobs, with the digest of each file by its path."""
    files: dict[str, Path]
    """Digest → where the client has it."""
    boots: tuple[Boot, ...]
    """The systems that the jobs boot, each once, in the order that `unpacked` keeps."""

    @property
    def digests(self) -> tuple[str, ...]:
        """Of everything that a worker needs: the package itself, and the files."""
        return (self.digest, *self.files)


def packed(jobs: Sequence[Job]) -> Package:
    """Pack them. Raises OSError where a file cannot be read."""
    import cloudpickle  # Dask brings it

    boots = tuple(dict.fromkeys(job.boot for job in jobs))
    carried = (file.host for job in jobs for file in job.carried.files if _has_content(file))
    paths = dict.fromkeys((*(path for boot in boots for path in _paths(boot)), *carried))
    digests = {path: digest_of_file(path) for path in paths}
    data = cloudpickle.dumps((tuple(jobs), digests))
    files = {digest: path for path, digest in digests.items()}
    return Package(digest_of_bytes(data), data, files, boots)


def _paths(boot: Boot) -> Iterator[Path]:
    parts = (getattr(boot.kernel, name) for name in _KERNEL_PARTS)
    yield from (part for part in parts if part and part.is_file())
    yield from boot.modules
    yield from (file.host for file in boot.files if _has_content(file))


def _has_content(file: CarriedFile) -> bool:
    return not (file.directory or file.link)


def unpacked(data: bytes, contents: Contents) -> tuple[Job, ...]:
    """The jobs, with the places where this worker has the files. Raises KeyError where one is not here."""
    jobs, digests = pickle.loads(data)
    boots = {boot: _placed(boot, digests, contents) for boot in dict.fromkeys(job.boot for job in jobs)}
    return tuple(
        replace(
            job,
            boot=boots[job.boot],
            carried=job.carried.model_copy(
                update={"files": _placed_files(job.carried.files, digests, contents)}
            ),
        )
        for job in jobs
    )


def _placed_files(
    files: tuple[CarriedFile, ...], digests: dict[Path, str], contents: Contents
) -> tuple[CarriedFile, ...]:
    return tuple(
        file.model_copy(update={"host": contents.place(digests[file.host], file.host.name)})
        if _has_content(file)
        else file
        for file in files
    )


def _placed(boot: Boot, digests: dict[Path, str], contents: Contents) -> Boot:
    """A kernel's part that the client did not have is not here either; of its modules only those loaded."""

    def here(path: Path) -> Path:
        return contents.place(digests[path], path.name)

    parts = {
        name: contents.kernel_part(boot.kernel.digest, digests[path], path.name)
        for name in _KERNEL_PARTS
        if (path := getattr(boot.kernel, name)) in digests
    }
    return boot.model_copy(
        update={
            "kernel": boot.kernel.model_copy(update=parts | {"modules": None}),
            "modules": tuple(here(path) for path in boot.modules),
            "files": _placed_files(boot.files, digests, contents),
        }
    )
