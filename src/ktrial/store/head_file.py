"""The head of a store's log, kept in a small file beside the store.

A database proves by its log that it is what was stored, up to the newest entry that it has. That entries
came after it, only something outside can say: an older copy of a store is whole. The file is written after
each commit, so a kill between the two leaves it behind the log, never ahead: it names an entry that the log
has, and nothing is wrong.

It is read with Python's own library, by commands that have to start at once.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import platformdirs

from ktrial.store.errors import LogDamaged, OlderCopy

SUFFIX = ".head"
_LINE = re.compile(r"(\d{20}) ([0-9a-f]{64}) ([0-9a-f]{8})\n")
_LINE_BYTES = 95
_READINGS = 5
"""Another process may write the line just now: its last word tells whether all of it was read."""
_NEWEST = "SELECT number, head FROM log_entries ORDER BY number DESC LIMIT 1"


class Head(NamedTuple):
    """An entry of a log, and what stands for all that was logged until then."""

    number: int
    digest: str


ReadRow = Callable[[str], tuple[object, ...] | None]
"""Runs a statement of SQL and returns its first row."""


def check_log(read_row: ReadRow, kept: "Head | None", name: str, place: Path) -> Head:
    """The newest entry of the log.

    `kept` was read before the transaction began that `read_row` reads in: others write meanwhile. Raises
    LogDamaged where the log has no entry, OlderCopy where it lacks `kept`.
    """
    newest = read_row(_NEWEST)
    if newest is None or not isinstance(newest[0], int) or not isinstance(newest[1], str):
        raise LogDamaged(name, "it has no entry" if newest is None else "its newest entry cannot be read")
    if kept is not None and kept != newest:
        row = read_row(f"SELECT head FROM log_entries WHERE number = {kept.number:d}")
        if row is None or row[0] != kept.digest:
            raise OlderCopy(name, newest[0], kept.number, place)
    return Head(newest[0], newest[1])


class HeadFile:
    """The file of one store's head. May be used from several threads and processes.

    What cannot be written there is left: the store itself is whole without.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._lock = Lock()

    def read(self) -> Head | None:
        """None where there is none, or none that can be read."""
        for _ in range(_READINGS):
            try:
                text = self.path.read_text(encoding="ascii", errors="replace")
            except OSError:
                return None
            if head := _parsed(text):
                return head
            if not text:
                return None
            time.sleep(0.001)
        return None

    def is_there(self) -> bool:
        """Whether there is a file, be it one that cannot be read."""
        return self.path.exists()

    def hold(self, store: Path | None) -> None:
        """Open it for writing, and let others see that somebody has the store open (`is_held`).

        `store`: who may use this file may use that one, too.
        """
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_new = not self.path.exists()
            self._descriptor = self._opened()
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)
            if is_new and store:
                status = store.stat()
                os.fchmod(self._descriptor, status.st_mode & 0o666)
                if os.geteuid() == 0:
                    os.fchown(self._descriptor, status.st_uid, status.st_gid)

    def _opened(self) -> int:
        flags = os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | flags, 0o600)
        except PermissionError:  # another user's: it stays behind, and the log goes on
            return os.open(self.path, os.O_RDONLY | flags)

    def is_held(self) -> bool:
        """Whether a process on this host has the store open for writing, or that cannot be told."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False

    def keep(self, head: Head) -> None:
        """Write the head, unless a later one is there."""
        with self._lock, contextlib.suppress(OSError):
            if self._descriptor is not None:
                kept = _parsed(os.pread(self._descriptor, _LINE_BYTES + 1, 0).decode("ascii", "replace"))
                if kept is None or kept.number < head.number:
                    _write(self._descriptor, head)

    def replace(self, head: Head) -> None:
        """Write the head, whichever is there."""
        with self._lock, contextlib.suppress(OSError):
            if self._descriptor is not None:
                _write(self._descriptor, head)

    def forget(self) -> None:
        """Take the file away: its store is no more."""
        with contextlib.suppress(OSError):
            self.path.unlink()

    def close(self) -> None:
        """Nobody has the store open any more."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _parsed(text: str) -> Head | None:
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    head = Head(int(match[1]), match[2])
    return head if _line(head) == text else None


def _line(head: Head) -> str:
    text = f"{head.number:020} {head.digest}"
    return f"{text} {hashlib.sha256(text.encode()).hexdigest()[:8]}\n"


def _write(descriptor: int, head: Head) -> None:
    """In place, as its length never changes: a loss of power leaves the old line or the new one."""
    os.pwrite(descriptor, _line(head).encode(), 0)
    os.ftruncate(descriptor, _LINE_BYTES)


def head_file_of(file: Path | None, name: str) -> HeadFile:
    """The one beside SQLite's file; of a store on a server, by its name, in the user's state directory."""
    if file is not None:
        real = os.path.realpath(file)
        return HeadFile(Path(f"{real}{SUFFIX}"))
    directory = Path(platformdirs.user_state_dir("ktrial")) / "heads"
    return HeadFile(directory / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}{SUFFIX}")
