"""Where kernels are kept, and what they are called: all that completing a kernel's name imports."""

import json

from ktrial.installation import cache_directory

__all__ = ["cache_directory", "stored_names"]


def stored_names() -> list[str]:
    """The names of all kernels in the cache, sorted; without those whose record cannot be read."""
    names = []
    for path in (cache_directory() / "kernels" / "names").glob("*.json"):
        try:
            names.append(str(json.loads(path.read_bytes())["name"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a shell cannot be told; `ktrial kernel list` tells it
    return sorted(names)
