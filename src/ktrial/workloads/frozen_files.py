"""Files of this host as they were when a study started, kept in the cache: whatever is installed meanwhile.

Each file is copied once, under the SHA-256 of its content; on a file system that can, the copy shares its
blocks. Whoever freezes files holds the directory's lock as long as it lives. Who comes when nobody does takes
away what was used longest ago, beyond LIMIT.
"""

import fcntl
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path

from ktrial.file_digests import digest_of_file, has_digest
from ktrial.installation import cache_directory
from ktrial.model.base import digest
from ktrial.model.machine import NO_FILES, CarriedFile, FileSet
from ktrial.workloads.errors import WorkloadError

LIMIT = 4 << 30
"""Bytes that the files may take while nobody uses them."""
_ATTEMPTS = 3
"""To copy a file that is being written."""
_PIECE = 1 << 20
_MOST_NAMED = 3


class FrozenFiles:
    """Sets of files, each taken from this host when it is first asked for. May be asked from several threads.

    `directory`: where they are kept, instead of `carried` below KTRIAL_CACHE.
    """

    def __init__(self, directory: Path | None = None, limit: int = LIMIT) -> None:
        self._given, self._limit = directory, limit
        self._known: dict[Hashable, FileSet] = {}
        self._lock = threading.Lock()
        self._in_use: int | None = None

    def of(self, who: str, key: Hashable, collect: Callable[[], tuple[CarriedFile, ...]]) -> FileSet:
        """The files that `collect` gives, as they were when it was called first for this key.

        `who` has them, for messages. Raises WorkloadError, and what `collect` raises.
        """
        with self._lock:
            if key not in self._known:
                collected = collect()
                self._known[key] = self._frozen(who, collected) if collected else NO_FILES
            return self._known[key]

    def _frozen(self, who: str, files: tuple[CarriedFile, ...]) -> FileSet:
        try:
            self._begin_use()
            contents = {file.host: self._keep(who, file.host) for file in files if _has_content(file)}
            kept = tuple(
                file.model_copy(update={"host": self._place(contents[file.host])})
                if _has_content(file)
                else file
                for file in files
            )
            manifest = {file.guest: _entry(file, contents.get(file.host, "")) for file in files}
            name = digest(sorted(manifest.items()))
            self._write_manifest(name, manifest)
        except OSError as error:
            problem = f"{error.filename or self._directory}: {error.strerror}"
            raise WorkloadError(
                f"{_named(who)}: its files cannot be kept in the cache: {problem}.",
                hint="KTRIAL_CACHE=/some/directory puts the cache where there is room",
            ) from None
        return FileSet(files=kept, digest=name)

    def end(self) -> None:
        """Others may take the files away; at the latest at this process's end they may."""
        with self._lock:
            self._known.clear()
            if self._in_use is not None:
                os.close(self._in_use)
                self._in_use = None

    def differing(self, before: str, after: str) -> str:
        """Which files of two sets differ, in words; empty where one of the sets is not known here any more.

        Both by their digests.
        """
        try:
            old, new = (json.loads(self._manifest(name).read_text()) for name in (before, after))
        except (OSError, ValueError):
            return ""
        names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        return f"{', '.join(names[:_MOST_NAMED])}{more}"

    @property
    def _directory(self) -> Path:
        return self._given or cache_directory() / "carried"

    def _place(self, content: str) -> Path:
        return self._directory / content[:2] / content

    def _manifest(self, name: str) -> Path:
        return self._directory / "sets" / f"{name}.json"

    def _begin_use(self) -> None:
        """Hold the lock until this process ends; where nobody else holds it, first take away what is old."""
        if self._in_use is not None:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._prune()
        except BlockingIOError:
            pass
        fcntl.flock(lock, fcntl.LOCK_SH)
        self._in_use = lock

    def _prune(self) -> None:
        kept = [(path, path.stat()) for path in self._directory.glob("*/*") if path.is_file()]
        total = sum(status.st_blocks * 512 for _, status in kept)
        for path, status in sorted(kept, key=lambda entry: entry[1].st_mtime):
            if total <= self._limit:
                return
            path.unlink(missing_ok=True)
            total -= status.st_blocks * 512

    def _keep(self, who: str, host: Path) -> str:
        """Copy the file, unless its content is there; the content's digest."""
        for attempt in range(_ATTEMPTS):
            content = digest_of_file(host, anew=attempt > 0)
            place = self._place(content)
            if place.is_file() and has_digest(place, content):
                os.utime(place)
                return content
            place.parent.mkdir(parents=True, exist_ok=True)
            if _copied(host, place, content):
                return content
        raise WorkloadError(
            f"{_named(who)}: {host} cannot be carried into the guest: it is being written.",
            hint="start again when whatever writes it has ended",
        )

    def _write_manifest(self, name: str, manifest: Mapping[str, object]) -> None:
        place = self._manifest(name)
        if place.is_file():
            os.utime(place)
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        _write(place, json.dumps(manifest, separators=(",", ":")).encode())


def _has_content(file: CarriedFile) -> bool:
    return not (file.directory or file.link)


def _entry(file: CarriedFile, content: str) -> tuple[int, str]:
    """Its mode, and what it holds."""
    if file.link:
        return 0o777, f"-> {file.link}"
    return file.mode, content


def _named(who: str) -> str:
    return who[:1].upper() + who[1:]


def _copied(source: Path, place: Path, content: str) -> bool:
    """Copy the file to the place; False where it has another content by now."""
    descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=".")
    new = Path(name)
    try:
        with source.open("rb") as file, os.fdopen(descriptor, "wb") as out:
            left = os.fstat(file.fileno()).st_size
            while left > 0 and (copied := _copy_range(file.fileno(), out.fileno(), left)):
                left -= copied
        with new.open("rb") as out:
            if hashlib.file_digest(out, "sha256").hexdigest() != content:
                return False
        new.chmod(0o444)
        new.replace(place)
        return True
    finally:
        new.unlink(missing_ok=True)


def _copy_range(source: int, target: int, most: int) -> int:
    """As many bytes as are copied at once, from where both files stand."""
    try:
        return os.copy_file_range(source, target, most)
    except OSError:  # between file systems, before Linux 5.19
        data = os.read(source, _PIECE)
        os.write(target, data)
        return len(data)


def _write(place: Path, data: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=".")
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    Path(name).replace(place)
