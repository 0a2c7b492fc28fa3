"""Checks how a study names a kernel; whether the kernel can be had is found out when the study runs."""

import os
from pathlib import Path

from ktrial.kernels.errors import BadKernelName
from ktrial.studyfile.diagnostics import shown
from ktrial.studyfile.registry import Registry


def kernel_problem(name: str, known: Registry) -> str:
    """What is wrong with the kernel's name; empty where nothing is."""
    try:
        known.kernel_name(name)
    except BadKernelName as error:
        return f"found {shown(name)}: {error.facts['problem']}; allowed: {error.facts['allowed']}"
    return ""


def absolute_kernel(name: str, directory: Path) -> str:
    """The name with a relative path made absolute; `directory` is where relative files are looked for."""
    provider, _, rest = name.partition(":")
    if provider != "path":
        return name
    return f"path:{os.path.normpath(directory / Path(rest).expanduser())}"
