"""Turn what the file system refuses into errors that say which directory, and how much room it wants."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ktrial.errors import CacheFull, CacheUnusable

_FULL = {errno.ENOSPC, errno.EDQUOT}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}


def require_space(directory: Path, needed: int) -> None:
    """Raise CacheFull unless `needed` bytes are free for us where `directory` is."""
    if free_bytes(directory) < needed:
        raise cache_full(directory, needed)


def cache_full(directory: Path, needed: int) -> CacheFull:
    """Build the error, with what is free now."""
    wanted = shown(needed) if needed else "more"
    return CacheFull(name=directory, directory=directory, needed=wanted, free=shown(free_bytes(directory)))


@contextmanager
def file_system_errors(directory: Path, needed: int = 0) -> Iterator[None]:
    """Raise CacheFull or CacheUnusable for what the operating system says about `directory`."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise cache_full(directory, needed) from error
        inside = error.filename is not None and Path(os.fsdecode(error.filename)).is_relative_to(directory)
        if error.errno in _REFUSED and (inside or _is_parent(directory, error.filename)):
            problem = f"{os.fsdecode(error.filename)}: {error.strerror}"
            raise CacheUnusable(name=directory, directory=directory, problem=problem) from error
        raise


def free_bytes(directory: Path) -> int:
    """Bytes free for this user on the file system that `directory` is on, or would be on."""
    while not directory.exists():
        directory = directory.parent
    return shutil.disk_usage(directory).free


def shown(size: int) -> str:
    """Write bytes for people: `51.3 MB`."""
    value = float(size)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def _is_parent(directory: Path, filename: object) -> bool:
    return isinstance(filename, str | bytes) and directory.is_relative_to(os.fsdecode(filename))
