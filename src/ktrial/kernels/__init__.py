"""Kernels: obtained by name (`kernel_registry`), built from source (`build`), kept in a cache, and read.

What is here costs nothing to load: what a long step tells about itself, and what a shell completes.
"""

import json
from pathlib import Path
from typing import Protocol

from ktrial.installation import cache_directory


class Progress(Protocol):
    """Called with what a step does, and how far it is."""

    def __call__(self, step: str, finished: int = 0, total: int = 0, /) -> None:
        """`finished` and `total` are bytes; `total` is 0 where it is not known beforehand."""
        ...


def silent(_step: str, _finished: int = 0, _total: int = 0, /) -> None:
    """Tell nobody."""


FUNCTION_FILES = "function-files.json"
"""In a kernel's directory: which file each function comes from, as worked out from its symbols."""


def stored_names() -> list[str]:
    """The names of all kernels in the cache, sorted; without those whose record cannot be read."""
    names = []
    for path in (cache_directory() / "kernels" / "names").glob("*.json"):
        try:
            names.append(str(json.loads(path.read_bytes())["name"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a shell cannot be told; `ktrial kernel list` tells it
    return sorted(names)


def kernels_state() -> list[tuple[str, int, int]]:
    """The state of all kernels in the cache and of what is known of them: other than before, it is another.

    Without `FUNCTION_FILES`, which follow from the others.
    """
    root = cache_directory() / "kernels"
    entries = (path for path in root.glob("by-digest/*/*") if path.name != FUNCTION_FILES)
    files = sorted([*root.glob("names/*"), *entries, *root.glob("by-digest/*/values/*")])
    return [_state(path) for path in files]


def _state(path: Path) -> tuple[str, int, int]:
    """Path, size, and the time of the last change, which no program can choose."""
    try:
        status = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), status.st_size, status.st_ctime_ns
