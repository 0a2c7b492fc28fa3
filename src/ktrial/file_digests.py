"""SHA-256 of files, remembered for as long as a file does not change and this system is not started anew.

What is remembered stands below KTRIAL_CACHE in digests/, one small file for each file that was read: its
size, inode, modification and change time, and the boot of this system during which all of it was read. The
change time also moves where a program puts the modification time back. What no time tells, such as a bit that
the disk has lost, is found when the file is read in full again: once in each boot of this system.
"""

import contextlib
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from ktrial.installation import cache_directory

_WORTH_REMEMBERING = 1 << 20
"""Bytes; a smaller file is read sooner than what is remembered of it is looked up."""
_SETTLED_NS = 2_000_000_000
"""A file that changed so lately can change again without a new time: file systems stamp in steps."""
_NOTE = re.compile(rb"(.+) ([0-9a-f]{64})")
_SEAL = b"# sha256 of what follows: "
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def digest_of_bytes(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def digest_of_file(path: Path, *, anew: bool = False) -> str:
    """SHA-256 of a file's content in hexadecimal. `anew`: read all of it, whatever is remembered.

    Raises OSError.
    """
    status = path.stat()
    if anew:
        return remembered(path, status, lambda: _read(path), anew=True)
    return _of_this_process(path, *_identity(status))


def has_digest(path: Path, digest: str) -> bool:
    """Whether the file has this digest. What is remembered may say yes, but never no: then it is read.

    Raises OSError.
    """
    return digest_of_file(path) == digest or digest_of_file(path, anew=True) == digest


def remembered(path: Path, status: os.stat_result, read: Callable[[], str], *, anew: bool = False) -> str:
    """The digest that `read` makes of the file at `path`, which has this status.

    A large file is read once in each boot of this system, and when it has changed. `anew`: read it now.
    Raises what `read` raises.
    """
    if status.st_size < _WORTH_REMEMBERING or not this_boot():
        return read()
    note = cache_directory() / "digests" / digest_of_bytes(os.fsencode(path.absolute()))[:32]
    state = " ".join([this_boot(), *map(str, _identity(status))])
    if not anew and (digest_noted := _noted(note, state)):
        return digest_noted
    begun = time.time_ns()
    digest = read()
    if begun - status.st_ctime_ns > _SETTLED_NS:
        _keep(note, f"{state} {digest}")
    return digest


def sealed(content: bytes) -> bytes:
    """The content behind a line with its digest: a file that tells by itself whether it is whole."""
    return _SEAL + digest_of_bytes(content).encode() + b"\n" + content


def unsealed(data: bytes) -> bytes | None:
    """The content that `sealed` was given; None where it is not the same any more."""
    line, _, content = data.partition(b"\n")
    return content if line == _SEAL + digest_of_bytes(content).encode() else None


@lru_cache(maxsize=4096)
def _of_this_process(path: Path, *_state: int) -> str:
    return remembered(path, path.stat(), lambda: _read(path))


def _noted(note: Path, state: str) -> str:
    """The digest in the note, where that is of a file in this state; else empty."""
    try:
        text = note.read_bytes()
    except OSError:
        return ""
    match = _NOTE.fullmatch(text)
    return match[2].decode() if match and match[1] == state.encode() else ""


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@lru_cache
def this_boot() -> str:
    """What the kernel drew when this system was started; empty where it does not tell."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _keep(note: Path, text: str) -> None:
    """Write it down for later processes. Without it they read the file again: nothing depends on it."""
    with contextlib.suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=note.parent, prefix=".")
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
        Path(name).replace(note)
