"""A kernel that another system is asked to build: plain data."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ktrial.model.kernel import Build


@dataclass(frozen=True)
class BuildOrder:
    """One build, worked out as far as it can be without compiling."""

    build: Build
    content: str
    """Key of what comes out: orders of one content ask for one kernel."""
    request: object
    """What else decides it; only who made the order reads it."""
    files: Mapping[str, Path]
    """SHA-256 of each file that the build reads → where the one who asks has it."""
