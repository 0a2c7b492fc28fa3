"""Checks how a study names a kernel; whether the kernel can be had is found out when the study runs."""

import os
from collections.abc import Collection
from pathlib import Path

from ktrial.runner.study_file.mistakes import shown, unknown

_EXAMPLES = "kernels are named debian:6.12, debian:6.12:generic, path:/boot/vmlinuz or host"


def kernel_problem(name: str, providers: Collection[str]) -> str:
    """What is wrong with the kernel's name; empty where nothing is."""
    provider, colon, rest = name.partition(":")
    if provider not in providers:
        return f"{unknown('kernel provider', provider, sorted(providers))}; {_EXAMPLES}"
    if provider != "host" and not rest.strip():
        return f"found {shown(name)}: the version or path is missing; {_EXAMPLES}"
    if provider == "host" and colon:
        return f"found {shown(name)}: nothing may follow host"
    return ""


def absolute_kernel(name: str, directory: Path) -> str:
    """The name with a relative path made absolute; `directory` is where relative files are looked for."""
    provider, _, rest = name.partition(":")
    if provider != "path":
        return name
    return f"path:{os.path.normpath(directory / Path(rest).expanduser())}"
