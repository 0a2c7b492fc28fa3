"""Outputs that take long to work out, kept by the digest of all that they rest on.

What this ktrial does rests on its files, and on the packages beside it. The directory may be deleted at any
time.
"""

import hashlib
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ktrial.installation import VERSION, cache_directory, package_directory

_MOST = 100
"""Outputs that are kept; those used longest ago go first."""
_PACKAGE = re.compile(r".*\.(dist|egg)-info")


def key_of(*rests_on: object) -> str:
    """The key of an output that rests on these, and on this ktrial. Raises OSError."""
    text = json.dumps([VERSION, _program(), rests_on])
    return hashlib.sha256(text.encode()).hexdigest()


def get(key: str) -> str | None:
    """What was kept; None where nothing was, or where it is damaged."""
    file = _file(key)
    try:
        digest, _, text = file.read_bytes().partition(b"\n")
    except OSError:
        return None
    if digest != hashlib.sha256(text).hexdigest().encode():
        return None
    with suppress(OSError):  # a cache of somebody else's
        os.utime(file)
    return text.decode()


def put(key: str, text: str) -> None:
    """Keep an output; where it cannot be kept, it is worked out again next time."""
    from importlib.metadata import entry_points

    if any(group.startswith("ktrial.") for group in entry_points().groups):
        return  # a plugin's code may change, and its version stay
    content = text.encode()
    with suppress(OSError):
        file = _file(key)
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f"{file.name}.{os.getpid()}.partial")
        partial.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
        partial.replace(file)
        _forget_the_oldest(file.parent)


@contextmanager
def warnings_heard() -> Iterator[list[str]]:
    """What is warned of meanwhile, and told as ever: an output is not kept that would hide it next time."""
    heard: list[str] = []
    show = warnings.showwarning

    def hear(message: Warning | str, *where: Any, **more: Any) -> None:
        heard.append(str(message))
        show(message, *where, **more)

    warnings.showwarning = hear
    try:
        yield heard
    finally:
        warnings.showwarning = show


def _forget_the_oldest(directory: Path) -> None:
    by_age = sorted(directory.iterdir(), key=lambda one: one.stat().st_mtime, reverse=True)
    for old in by_age[_MOST:]:
        old.unlink(missing_ok=True)


def _file(key: str) -> Path:
    return cache_directory() / "shown" / key


def _program() -> list[Any]:
    """The state of this ktrial's files, and what else is installed beside it."""
    files = sorted(_states(package_directory()))
    packages = sorted(
        entry.name
        for directory in sys.path
        if Path(directory).is_dir()
        for entry in os.scandir(directory or ".")
        if _PACKAGE.fullmatch(entry.name)
    )
    return [sys.version, files, packages]


def _states(directory: Path) -> Iterator[tuple[str, int, int]]:
    """Each file's path, size, and when it was changed: the time of which no program can choose."""
    for entry in os.scandir(directory):
        if entry.name == "__pycache__":
            continue
        if entry.is_dir():
            yield from _states(Path(entry.path))
        else:
            status = entry.stat()
            yield entry.path, status.st_size, status.st_ctime_ns
