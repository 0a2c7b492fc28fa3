"""Kernels: obtained by name (`kernel_registry`), built from source (`build`), kept in a cache, and read.

What is here costs nothing to load: what a long step tells about itself, and what a shell completes.
"""

import json
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
