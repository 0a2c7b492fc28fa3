"""A guest's RAM in a file: copied without its zeros, and hashed the same however its holes lie."""

import hashlib
import os
from collections.abc import Callable, Iterator

_BLOCK = 65536
_ZEROS = bytes(_BLOCK)


def copy(source: int, target: int) -> str:
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


def digest(source: int) -> str:
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


def _next_data(source: int, at: int, end: int) -> int:
    if at >= end:
        return end
    try:
        return os.lseek(source, at, os.SEEK_DATA)
    except OSError:
        # ENXIO: only a hole is left. A file system without SEEK_DATA calls the whole file data instead.
        return end
