"""Write so that after a crash there is either the whole or nothing."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ktrial.kernels.errors import CacheFull, CacheUnusable

UNPACKING_BYTES = 160 << 20
"""Memory for a dictionary of LZMA, of which a few bytes of a header may ask 4 GB. Kernels ask for at most
128 MiB (scripts/xz_wrap.sh)."""


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file beside `path`, sync it, and put it in place by a rename."""
    data = content.encode() if isinstance(content, str) else content
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_tree(directory: Path) -> None:
    """Bring every file and directory below `directory` to the disk."""
    for parent, _, files in os.walk(directory):
        for name in files:
            _sync(Path(parent, name), os.O_RDONLY | os.O_NOFOLLOW)
        sync_directory(Path(parent))


def sync_directory(directory: Path) -> None:
    """Bring a directory's own entries to the disk; part of a cache may be a link to a directory elsewhere."""
    _sync(directory, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Turn what the file system refuses into errors that say which directory, and how much room it wants.

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Error numbers of a full disk, and of a full quota."""
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}


class NoSpace(OSError):
    """A full disk, noticed before or by another program; `needed` bytes are wanted (0: not known)."""

    def __init__(self, directory: Path, needed: int = 0) -> None:
        super().__init__(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory))
        self.needed = needed


def require_space(directory: Path, needed: int) -> None:
    """Raise NoSpace unless `needed` bytes are free for us where `directory` is, or would be."""
    if free_bytes(directory) < needed:
        raise NoSpace(directory, needed)


def check_output(output: str, directory: Path, needed: int = 0) -> None:
    """Raise NoSpace where another program's messages say that the disk is full."""
    if (
        "No space left on device" in output
        or "Disk quota exceeded" in output
        or "enough free space" in output
    ):
        raise NoSpace(directory, needed)


@contextmanager
def file_system_errors(directory: Path) -> Iterator[None]:
    """Raise CacheFull or CacheUnusable for what the operating system says about `directory`."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            needed = shown(error.needed) if isinstance(error, NoSpace) and error.needed else "more"
            free = shown(free_bytes(directory))
            raise CacheFull(directory=directory, needed=needed, free=free) from error
        is_refused = error.errno in _REFUSED and _concerns(directory, error.filename)
        if is_refused or _cannot_be_made(directory, error):
            problem = f"{os.fsdecode(error.filename)}: {error.strerror}"
            raise CacheUnusable(directory=directory, problem=problem) from error
        raise


def _cannot_be_made(directory: Path, error: OSError) -> bool:
    """Whether the directory itself, or one on the way to it, cannot be made at all: below /proc, say."""
    is_absent = error.errno == errno.ENOENT and isinstance(error.filename, str)
    return is_absent and directory.is_relative_to(error.filename)


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


def _concerns(directory: Path, filename: object) -> bool:
    """Whether the error is about something in `directory`, or on the way to it."""
    if not isinstance(filename, str | bytes):
        return False
    path = Path(os.fsdecode(filename))
    return path.is_relative_to(directory) or directory.is_relative_to(path)
