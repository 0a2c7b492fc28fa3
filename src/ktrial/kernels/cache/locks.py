"""Locks between processes: the kernel's (flock), so that they go with their process, also after SIGKILL."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ktrial.kernels.progress import Progress


@contextmanager
def held(path: Path, progress: Progress, waiting: str) -> Iterator[None]:
    """Hold the lock file; tell `waiting` where another process has it."""
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress(waiting)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def held_if_free(path: Path) -> Iterator[bool]:
    """Hold the lock file and yield True; where another process has it, yield False at once."""
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()
