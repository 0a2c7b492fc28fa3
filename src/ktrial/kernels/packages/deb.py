"""Debian's package format."""

from pathlib import Path

from ktrial.kernels import programs
from ktrial.system_tools import Tool

DPKG_DEB = Tool("dpkg-deb", "dpkg", "unpacks distribution kernels")


def unpack(file: Path, root: Path) -> None:
    """Unpack a package below `root`. Raises ToolMissing, KernelError, NoSpace."""
    hint = "the package may be damaged: try again"
    programs.run(DPKG_DEB, ["dpkg-deb", "-x", file, root], root, hint)
