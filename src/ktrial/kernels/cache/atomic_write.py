"""Write so that after a crash there is either the whole or nothing."""

import os
import tempfile
from pathlib import Path


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
