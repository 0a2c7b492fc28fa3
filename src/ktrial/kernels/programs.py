"""Run this system's programs for a kernel's parts: told where they are missing, fail, or fill the disk."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ktrial.kernels.errors import KernelError, ToolMissing
from ktrial.kernels.files import check_output
from ktrial.system_tools import Tool


def require_tool(tool: Tool) -> None:
    """Raise ToolMissing unless the program can be run."""
    if shutil.which(tool.name) is None:
        raise ToolMissing(tool=tool.name, purpose=tool.purpose, package=tool.package)


def run(tool: Tool, command: Sequence[str | Path], directory: Path, hint: str, needed: int = 0) -> str:
    """What the command prints, which runs `tool` and writes below `directory`.

    `needed`: bytes that it may write. Raises ToolMissing, NoSpace; KernelError with what it says, and `hint`.
    """
    require_tool(tool)
    finished = subprocess.run(
        command,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if finished.returncode:
        output = finished.stderr.strip()
        check_output(output, directory, needed)
        raise KernelError(f"{tool.name} failed (exit {finished.returncode}): {output}", hint=hint)
    return finished.stdout
