"""How much room on the cache's disk a build takes, told before anything is fetched or compiled."""

from pathlib import Path

from ktrial.kernels.build.build_trees import kept_trees
from ktrial.kernels.build.builds import ROOM_WITHOUT_MODULES
from ktrial.kernels.build.source_debian import UNPACKED_BYTES, package_tools
from ktrial.kernels.build.sources import DEBIAN_PREFIX, GIT_PREFIX
from ktrial.model.kernel import Build

_GB = 10**9
_USUAL, _USUAL_OF_GIT = 2 * _GB, 4 * _GB
"""A tree with its objects; of a commit also its files, which a source directory has already."""


def usual_room(wanted: Build) -> int:
    """Bytes that building it usually takes; none where a build tree is there, which serves again."""
    if kept_trees():
        return 0
    built = _USUAL_OF_GIT if wanted.source.startswith(GIT_PREFIX) else _USUAL
    return built + _unpacked(wanted.source)


def least_room(wanted: Build) -> int:
    """Bytes without which it fails for certain."""
    return 0 if kept_trees() else ROOM_WITHOUT_MODULES + _unpacked(wanted.source)


def _unpacked(source: str) -> int:
    """Of a source that has to be unpacked first."""
    if source.startswith(DEBIAN_PREFIX):
        return UNPACKED_BYTES if package_tools(source.removeprefix(DEBIAN_PREFIX)) else 0
    return UNPACKED_BYTES if Path(source).is_file() else 0
