"""Debian's package format."""

import subprocess
from pathlib import Path

from ktrial.kernels.errors import KernelError
from ktrial.kernels.files import check_output
from ktrial.kernels.packages.apt import require_tool
from ktrial.system_tools import Tool

DPKG_DEB = Tool("dpkg-deb", "dpkg", "unpacks distribution kernels")


def unpack(name: str, file: Path, root: Path) -> None:
    """Unpack a package below `root`. Raises ToolMissing, ToolFailed."""
    require_tool(name, DPKG_DEB)
    finished = subprocess.run(
        ["dpkg-deb", "-x", str(file), str(root)],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if finished.returncode:
        output = finished.stderr.strip()
        check_output(output, root)
        advice = "the package may be damaged: try again"
        raise KernelError(f"dpkg-deb failed (exit {finished.returncode}): {output}", hint=str(advice))
