"""The cache: one directory for each content, named by its digest, and names that lead to them.

    <root>/by-digest/<sha256>/      kernel.json, vmlinuz, vmlinux, config, System.map, lib/modules/<release>/,
                                    manifest.json with the digests of these, and in names/ one empty file for
                                    each name's record that may lead here, called by the record's digest
    <root>/names/<name>.json        which content a name stands for, where it came from, when it was added
    <root>/work/<random>/           being put together; its lock file tells whether its maker still lives
    <root>/locks/                   one for each name while it is added, one for the directory itself
    <root>/providers/<prefix>/      what a provider keeps, such as apt's lists

A content appears by one rename of a directory that was written and synced before, so that whatever is below
by-digest is whole. Locks are the kernel's (flock): they go with their process, also after SIGKILL.
"""

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, unquote

from filelock import FileLock
from pydantic import ValidationError

from ktrial.kernels.cache.atomic_write import sync_directory, write_atomically
from ktrial.kernels.cache.entry import (
    EntryRecord,
    NameRecord,
    build_entry,
    digest_of_record,
    is_of_release,
    kernel_of,
)
from ktrial.kernels.cache.location import cache_directory
from ktrial.kernels.cache.locks import held, held_if_free
from ktrial.kernels.cache.manifest import ENTRY_FILE, IMAGE, replace_damaged
from ktrial.kernels.errors import CacheDamaged, ImageError, KernelNotFound
from ktrial.kernels.progress import Progress, silent
from ktrial.kernels.providers.protocol import Parts
from ktrial.model.kernel import Kernel
from ktrial.model.notation import nearest

BY_DIGEST = "by-digest"
"""The directory of all contents, below the cache's root."""
_NAMES = "names"
"""The directory of the names' records, and that of a content's witness of those that may lead to it."""
_SHORTEST_DIGEST = 6
_LONGEST_FILE_NAME = 180


class Cache:
    """The kernels below one directory. Safe for several processes at once."""

    def __init__(self, directory: Path | None = None) -> None:
        self.root = (directory or cache_directory()) / "kernels"

    def names(self) -> tuple[NameRecord, ...]:
        """Every name that was added, sorted. Raises CacheDamaged."""
        files = sorted((self.root / _NAMES).glob("*.json"))
        return tuple(sorted((self._read_name(path)[0] for path in files), key=lambda record: record.name))

    def record(self, name: str) -> NameRecord:
        """Return the record of a name, or of the content whose digest starts so. Raises KernelNotFound."""
        path = self._name_file(name)
        if path.exists():
            return self._read_name(path)[0]
        known = [record for record, _ in self._readable()]
        by_digest = [record for record in known if record.digest.startswith(name)]
        if len(name) >= _SHORTEST_DIGEST and len({record.digest for record in by_digest}) == 1:
            return by_digest[0]
        similar = nearest(name, [record.name for record in known])
        raise KernelNotFound(name=name, similar=similar, hint=_where_from(name))

    def kernel(self, name: str) -> Kernel:
        """Return the kernel of a name or digest. Raises KernelNotFound, CacheDamaged."""
        record = self.record(name)
        directory = self.entry_directory(record.digest)
        try:
            return kernel_of(record, self.entry(record), directory)
        except ImageError as error:
            raise CacheDamaged(name=record.name, path=directory, problem=error.message) from error

    def entry(self, record: NameRecord) -> EntryRecord:
        """Return what is written down about the content of a name. Raises CacheDamaged."""
        path = self.entry_directory(record.digest) / ENTRY_FILE
        if not _is_whole(path.parent):
            raise CacheDamaged(name=record.name, path=path.parent, problem="parts of it are missing")
        try:
            return EntryRecord.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise CacheDamaged(name=record.name, path=path, problem=_first_line(error)) from error

    def entry_directory(self, digest: str) -> Path:
        """Return where a content is kept."""
        return self.root / BY_DIGEST / digest

    @contextmanager
    def adding(self, name: str, progress: Progress) -> Iterator[None]:
        """Hold the name: a second process that adds it waits here, and then finds it."""
        for part in (BY_DIGEST, _NAMES, "work", "locks", "providers"):
            (self.root / part).mkdir(parents=True, exist_ok=True)
        lock = self.root / "locks" / self._name_file(name).with_suffix(".lock").name
        with held(lock, progress, "waiting for another ktrial that adds the same kernel"):
            self._sweep()
            yield

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """Yield an empty directory on the cache's file system; it goes away whatever happens."""
        directory = self.root / "work" / uuid.uuid4().hex
        # Locked before it exists: no other process's sweep may take it for left over.
        with held(_work_lock(directory), silent, ""):
            directory.mkdir()
            try:
                yield directory
            finally:
                shutil.rmtree(directory, ignore_errors=True)
                _work_lock(directory).unlink(missing_ok=True)

    def store(self, name: str, parts: Parts, workspace: Path, progress: Progress) -> Kernel:
        """Put the parts together, and make them appear under `name`. Raises what reading an image raises."""
        made = workspace / "entry"
        entry = build_entry(name, parts, made, workspace, progress)
        record = NameRecord(
            name=name,
            digest=entry.digest,
            flavour=parts.flavour,
            origin=parts.origin,
            added=datetime.now(UTC).replace(microsecond=0),
        )
        home = self.entry_directory(entry.digest)
        with self._locked():
            if home.exists() and not _is_whole(home):
                home.rename(workspace / "damaged")
            if home.exists():
                replace_damaged(home, made, name, parts.origin.source)
            else:
                made.rename(home)
                sync_directory(home.parent)
            text = record.model_dump_json(indent=2)
            self._admit(home, text, workspace)
            write_atomically(self._name_file(name), text)
        return kernel_of(record, entry, home)

    def remove(self, name: str) -> tuple[str, int]:
        """Take a name (or a digest's name) away, and its content unless another name shares it.

        Returns the name and the bytes freed (0: shared). Raises KernelNotFound.
        """
        # A record that cannot be read is taken away all the same.
        full_name = name if self._name_file(name).exists() else self.record(name).name
        with self._locked():
            self._name_file(full_name).unlink(missing_ok=True)
        return full_name, self._sweep()

    def _admit(self, home: Path, text: str, workspace: Path) -> None:
        """Note beside the content that the record `text` may lead to it."""
        if not (home / _NAMES).exists():
            # What an older ktrial added has no such notes: records that lead here already go on doing so.
            (workspace / _NAMES).mkdir()
            for known, known_text in self._readable():
                if known.digest == home.name:
                    (workspace / _NAMES / digest_of_record(known_text)).touch()
            (workspace / _NAMES).rename(home / _NAMES)
        (home / _NAMES / digest_of_record(text)).touch()
        sync_directory(home / _NAMES)

    def _readable(self) -> Iterator[tuple[NameRecord, bytes]]:
        """Every record, and its text; a damaged one keeps no other kernel from being had, and is left out."""
        for path in sorted((self.root / _NAMES).glob("*.json")):
            with suppress(CacheDamaged):
                yield self._read_name(path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with FileLock(self.root / "locks" / "directory.lock"):
            yield

    def _sweep(self) -> int:
        """Delete what dead processes left in work/, and contents without a name; return these bytes."""
        freed = 0
        with self._locked():
            for directory in self._nameless():
                freed += disk_usage(directory)
                directory.rename(self.root / "work" / uuid.uuid4().hex)
        for directory in (self.root / "work").iterdir():
            if directory.is_dir():
                with held_if_free(_work_lock(directory)) as free:
                    if free:
                        shutil.rmtree(directory, ignore_errors=True)
                        _work_lock(directory).unlink(missing_ok=True)
        return freed

    def _nameless(self) -> list[Path]:
        """Contents that no name leads to; none while a name cannot be read, for it might be its."""
        try:
            named = {record.digest for record in self.names()}
        except CacheDamaged:
            return []
        return [path for path in (self.root / BY_DIGEST).iterdir() if path.name not in named]

    def _name_file(self, name: str) -> Path:
        plain = quote(name, safe=":+")
        if len(plain) > _LONGEST_FILE_NAME:
            plain = f"{plain[:100]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        return self.root / _NAMES / f"{plain}.json"

    def _read_name(self, path: Path) -> tuple[NameRecord, bytes]:
        """The record in a file, which leads to what was added under this very name, and the file's text.

        Raises CacheDamaged.
        """
        try:
            text = path.read_bytes()
            record = NameRecord.model_validate_json(text)
        except (OSError, ValidationError) as error:
            raise CacheDamaged(name=unquote(path.stem), path=path, problem=_first_line(error)) from error
        if path != self._name_file(record.name):
            problem = f"it is the record of {record.name}"
            raise CacheDamaged(name=unquote(path.stem), path=path, problem=problem)
        if problem := self._leads_astray(record, text):
            raise CacheDamaged(name=record.name, path=path, problem=problem)
        return record, text

    def _leads_astray(self, record: NameRecord, text: bytes) -> str:
        """Why what the record leads to is not what was added under its name; empty where nothing is known."""
        home = self.entry_directory(record.digest)
        notes = home / _NAMES
        if (notes / digest_of_record(text)).exists() or not home.exists():
            return ""
        try:
            release = EntryRecord.model_validate_json((home / ENTRY_FILE).read_bytes()).release
        except (OSError, ValidationError):
            release = ""
        if not notes.exists() and (not release or is_of_release(record.origin, release)):
            return ""
        kernel = f"Linux {release}, " if release else ""
        return f"it leads to {kernel}{record.digest[:12]}, which was not added under this name"


def disk_usage(directory: Path) -> int:
    """Bytes of all files below `directory`; a file that goes away meanwhile has none."""
    # os.walk passes over directories that vanish, as those of a make that runs do; Path.rglob raises.
    return sum(_size(Path(home) / name) for home, _, names in os.walk(directory) for name in names)


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0


def _where_from(name: str) -> str:
    """How a kernel of that name may be had."""
    if name.startswith("build:"):
        return "ktrial kernel list shows what was built; ktrial kernel build SOURCE builds another"
    if ":" not in name:
        return "ktrial kernel list shows what there is, with the digests; names are like debian:6.12"
    return f"add it: ktrial kernel add {name}"


def _work_lock(directory: Path) -> Path:
    return directory.with_name(directory.name + ".lock")


def _is_whole(directory: Path) -> bool:
    return (directory / ENTRY_FILE).exists() and (directory / IMAGE).exists()


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
