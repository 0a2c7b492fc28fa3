"""Snapshots in the cache: a directory each, named by a digest of all that can change a result.

<key>/ram         the guest's RAM, sparse; restored guests map it privately, so that it is never changed
<key>/state       all else: CPU and devices, as QEMU's migration stream
<key>/kallsyms    the symbols of its kernel and modules, once they were asked for
<key>/about.json  sizes and digests of the two, what the key was made from, the guest's `ready`
<key>.lock        held while the snapshot is made or removed
<key>.new         being made; renamed to <key> when it is complete
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import ValidationError

from ktrial.file_digests import digest_of_bytes, remembered, sealed, unsealed
from ktrial.installation import cache_directory
from ktrial.machines.errors import HostProblem, HostUsageProblem, MachineError
from ktrial.machines.qemu.jail import sealed_copy
from ktrial.model.base import Model, digest
from ktrial.model.notation import size_bytes

ABOUT, RAM, STATE, NOTE = "about.json", "ram", "state", "kallsyms"
_NEW = ".new"
"""Ends the name of a directory in which a snapshot is being made; who holds the lock of its name makes it."""
_WAIT = 0.2
_USUAL_BYTES = 100 << 20
KEPT_IN_MEMORY = 1 << 30
"""Bytes of snapshots' RAM that one machine keeps in memory for QEMUs that may not open the cache."""


def key(facts: dict[str, str]) -> str:
    """The snapshot's name: the same facts, the same name."""
    return digest(facts)


class About(Model):
    """What stands beside a snapshot."""

    key: str
    facts: dict[str, str]
    """What the key was made from."""
    ram_size: int
    ram_digest: str
    state_size: int
    state_digest: str
    created: float
    """Seconds since 1970."""


class RamInMemory:
    """A snapshot's RAM in a file without a name that nobody can change. It is closed with its last user."""

    def __init__(self, source: int) -> None:
        self.descriptor = sealed_copy("ktrial-snapshot", partial(copy_data, source))
        self.size = os.fstat(self.descriptor).st_blocks * 512
        """Bytes of memory that it takes."""
        weakref.finalize(self, os.close, self.descriptor)


@dataclass(frozen=True)
class OpenSnapshot:
    """A snapshot that is there and whole. Its files are open: usable even while another removes it."""

    about: About
    ram: int
    state: bytes
    in_memory: Callable[["OpenSnapshot"], RamInMemory] = lambda snapshot: RamInMemory(snapshot.ram)
    """Gives its RAM in memory, where whoever opens it for writing cannot change it."""


@dataclass(frozen=True)
class SnapshotContents:
    """What a new snapshot is made from: RAM as an open file, and the rest."""

    ram: int
    state: bytes


class SnapshotCache:
    """All snapshots below one directory."""

    def __init__(self, directory: Path, limit: int, machine: str) -> None:
        self.directory = directory
        self._limit = limit
        self._machine = machine
        self._verified: dict[str, tuple[int, ...]] = {}
        self._in_memory: dict[str, RamInMemory] = {}
        """By the digest of their content, that which was used longest ago first."""
        self._copying = threading.Lock()

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[OpenSnapshot | None]:
        """The snapshot, or None where it is not there or not whole; a warning tells which part is damaged.

        All of it is read once in each boot of this system, and when a file's time has changed.
        """
        with contextlib.ExitStack() as resources:
            yield self._open(name, resources)

    def _copied(self, snapshot: OpenSnapshot) -> RamInMemory:
        """A copy is made once, and kept as long as all of them take no more than KEPT_IN_MEMORY."""
        with self._copying:
            name = snapshot.about.ram_digest
            kept = self._in_memory.pop(name, None) or RamInMemory(snapshot.ram)
            self._in_memory[name] = kept
            while len(self._in_memory) > 1 and sum(c.size for c in self._in_memory.values()) > KEPT_IN_MEMORY:
                self._in_memory.pop(next(iter(self._in_memory)))
        return kept

    def note(self, name: str) -> bytes | None:
        """What was kept beside the snapshot; None where nothing was, or what there is is not whole."""
        try:
            return unsealed((self.directory / name / NOTE).read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._cannot_write(error, _USUAL_BYTES) from None

    def keep_note(self, name: str, content: bytes) -> None:
        """Keep this beside the snapshot, as long as that is there; nowhere where it is not."""
        place = self.directory / name
        if not place.is_dir():
            return
        new = place / f"{NOTE}.{os.getpid()}"
        try:
            new.write_bytes(sealed(content))
            new.replace(place / NOTE)
        except FileNotFoundError:
            return  # the snapshot was removed meanwhile
        except OSError as error:
            raise self._cannot_write(error, len(content)) from None

    def make(
        self,
        facts: dict[str, str],
        contents: Callable[[], contextlib.AbstractContextManager[SnapshotContents]],
        check: Callable[[], None],
    ) -> None:
        """Make a snapshot, unless another process makes it meanwhile: then `check` is called now and then.

        Raises MachineError, and what `contents` and `check` raise; nothing half-made
        stays.
        """
        name = key(facts)
        with self._locked(name, check):
            with self.open(name) as present:
                if present:
                    return
            with contents() as snapshot:
                self._write(name, facts, snapshot)
        self._prune(keep=name)

    def remove(self, name: str) -> None:
        """Remove a snapshot, whole or damaged."""
        place = self.directory / name
        # First that which makes it one: who looks at it now finds it incomplete, and makes it anew.
        (place / ABOUT).unlink(missing_ok=True)
        shutil.rmtree(place, ignore_errors=True)
        self._verified.pop(name, None)

    def _open(self, name: str, resources: contextlib.ExitStack) -> OpenSnapshot | None:
        place = self.directory / name
        try:
            about = About.model_validate_json((place / ABOUT).read_bytes())
            ram = os.open(place / RAM, os.O_RDWR)
            resources.callback(os.close, ram)
            state = (place / STATE).read_bytes()
            os.utime(place / ABOUT)
        except FileNotFoundError:
            return None
        except ValidationError:
            self._tell_damage(name, ABOUT)
            return None
        except OSError as error:
            problem = f"the snapshot in {place} cannot be read: {error.strerror}"
            raise MachineError(machine=self._machine, problem=problem) from None
        damaged = self._damaged(name, about, ram, state)
        if damaged:
            self._tell_damage(name, damaged)
            return None
        return OpenSnapshot(about, ram, state, self._copied)

    def _damaged(self, name: str, about: About, ram: int, state: bytes) -> str:
        """The file of the snapshot that is not what it was; empty where all are."""
        status = os.fstat(ram)
        seen = _seen(status)
        if about.key != name or key(about.facts) != name:
            return ABOUT
        if digest_of_bytes(state) != about.state_digest or len(state) != about.state_size:
            return STATE
        if self._verified.get(name) != seen:
            read = partial(digest_of_sparse, ram)
            digests = (
                remembered(self.directory / name / RAM, status, read, anew=reread) for reread in (False, True)
            )
            if status.st_size != about.ram_size or about.ram_digest not in digests:
                return RAM
        self._verified[name] = seen
        return ""

    def _tell_damage(self, name: str, file: str) -> None:
        text = f"the snapshot in {self.directory / name} is damaged ({file}): it is not used, but made again"
        warnings.warn(text, stacklevel=2)

    def _write(self, name: str, facts: dict[str, str], contents: SnapshotContents) -> None:
        new = self.directory / f"{name}{_NEW}"
        try:
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            self._fill(new, name, facts, contents)
            self.remove(name)
            new.rename(self.directory / name)
            # It was hashed as it was written.
            self._verified[name] = _seen((self.directory / name / RAM).stat())
        except OSError as error:
            needed = os.fstat(contents.ram).st_blocks * 512 + len(contents.state)
            raise self._cannot_write(error, needed) from None
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def _fill(self, new: Path, name: str, facts: dict[str, str], contents: SnapshotContents) -> None:
        with (new / RAM).open("w+b") as file:
            ram_digest = copy_sparse(contents.ram, file.fileno())
        (new / STATE).write_bytes(contents.state)
        about = About(
            key=name,
            facts=facts,
            ram_size=os.fstat(contents.ram).st_size,
            ram_digest=ram_digest,
            state_size=len(contents.state),
            state_digest=digest_of_bytes(contents.state),
            created=time.time(),
        )
        (new / ABOUT).write_text(json.dumps(about.model_dump(mode="json"), indent=1))

    def _cannot_write(self, error: OSError, needed: int) -> MachineError:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            mib = (needed >> 20) + 1
            return HostProblem(
                f"Machine {self._machine} cannot write the snapshot below {self.directory}: "
                f"{error.strerror}.",
                hint=f"free about {mib} MiB there, or put the cache elsewhere: KTRIAL_CACHE=/some/directory",
            )
        problem = f"the snapshot cache {self.directory} cannot be written: {error.strerror}"
        return MachineError(machine=self._machine, problem=problem)

    @contextlib.contextmanager
    def _locked(self, name: str, check: Callable[[], None]) -> Iterator[None]:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.directory / f"{name}.lock")
            while not lock.is_locked:
                check()
                with contextlib.suppress(Timeout):  # another process makes it: wait, as long as we may
                    lock.acquire(timeout=_WAIT)
        except OSError as error:
            raise self._cannot_write(error, _USUAL_BYTES) from None
        try:
            yield
        finally:
            lock.release()

    def _prune(self, keep: str) -> None:
        """Remove what was left half-made, and the snapshots used longest ago, until all fit the limit."""
        for left in self.directory.glob(f"*{_NEW}"):
            self._with_lock(left.stem, partial(shutil.rmtree, left, ignore_errors=True))
        # What is still half-made is another process's work.
        complete = [place for place in self.directory.iterdir() if place.is_dir() and place.suffix != _NEW]
        sizes = {place: _bytes_below(place) for place in complete}
        total = sum(sizes.values())
        for place in sorted(sizes, key=_last_use):
            if total > self._limit and place.name != keep:
                self._with_lock(place.name, partial(self.remove, place.name))
                total -= sizes[place]

    def _with_lock(self, name: str, action: Callable[[], None]) -> None:
        """Do it now, or not at all where another process holds the lock: it is that one's to keep."""
        with contextlib.suppress(Timeout), FileLock(self.directory / f"{name}.lock", timeout=0):
            action()


def _seen(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _last_use(place: Path) -> float:
    try:
        return (place / ABOUT).stat().st_mtime
    except OSError:
        return 0.0


def _bytes_below(place: Path) -> int:
    total = 0
    for name in (RAM, STATE, ABOUT, NOTE):
        with contextlib.suppress(OSError):  # removed meanwhile by another process
            total += (place / name).stat().st_blocks * 512
    return total


LIMIT = "KTRIAL_SNAPSHOT_LIMIT"
DEFAULT_LIMIT = 10 << 30


def snapshots_directory() -> Path:
    """`snapshots` below KTRIAL_CACHE, which is the user's cache directory where it is not set."""
    return cache_directory() / "snapshots"


def snapshots_limit() -> int:
    """Bytes that all snapshots together may take, from KTRIAL_SNAPSHOT_LIMIT. Raises HostUsageProblem."""
    text = os.environ.get(LIMIT, "").strip()
    if not text:
        return DEFAULT_LIMIT
    try:
        return size_bytes(text, bare=True)
    except ValueError:
        allowed = "allowed is a size in bytes, or with K, M, G or T: 10G"
        raise HostUsageProblem(f"The environment variable {LIMIT} is {text!r}: {allowed}.") from None


# A guest's RAM in a file: copied without its zeros, and hashed the same however its holes lie.

_BLOCK = 65536
_ZEROS = bytes(_BLOCK)


def copy_sparse(source: int, target: int) -> str:
    """Copy all that is not zero to the empty file `target`, of the same length; the content's digest.

    Raises OSError (ENOSPC).
    """
    os.ftruncate(target, os.fstat(source).st_size)
    hashed = hashlib.sha256()
    for at, block in _blocks(source):
        written = 0
        while written < len(block):
            written += os.pwrite(target, block[written:], at + written)
        _add(hashed.update, at, block)
    return hashed.hexdigest()


def digest_of_sparse(source: int) -> str:
    """The digest that `copy` gave, over the places and contents of all blocks that are not zero."""
    hashed = hashlib.sha256()
    for at, block in _blocks(source):
        _add(hashed.update, at, block)
    return hashed.hexdigest()


def _add(update: Callable[[bytes], None], at: int, block: bytes) -> None:
    update(at.to_bytes(8, "little"))
    update(block)


def _blocks(source: int) -> Iterator[tuple[int, bytes]]:
    end = os.fstat(source).st_size
    at = 0
    while (at := _next_data(source, at, end)) < end:
        at -= at % _BLOCK
        block = os.pread(source, _BLOCK, at)
        if block != _ZEROS[: len(block)]:
            yield at, block
        at += _BLOCK


def copy_data(source: int, target: int) -> None:
    """Copy all that is no hole to the empty file `target`, of the same length. Raises OSError."""
    end = os.fstat(source).st_size
    os.ftruncate(target, end)
    at = 0
    while (at := _next_data(source, at, end)) < end:
        hole = os.lseek(source, at, os.SEEK_HOLE)
        os.lseek(target, at, os.SEEK_SET)
        while at < hole:
            at += os.sendfile(target, source, at, hole - at)


def _next_data(source: int, at: int, end: int) -> int:
    if at >= end:
        return end
    try:
        return os.lseek(source, at, os.SEEK_DATA)
    except OSError:
        # ENXIO: only a hole is left. A file system without SEEK_DATA calls the whole file data instead.
        return end
