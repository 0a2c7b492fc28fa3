"""Programs and headers of this system that ktrial needs: what each is for, and the package that has it.

Each room declares its own as `Tool`s. An error that is raised late, where one is missing, and the look at all
of them before the first step read the same declaration.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""depmod and mke2fs are there, which the PATH of an ordinary user may lack."""
_HEADERS = (*(Path("/usr/local/include"), Path("/usr/include")), Path("/usr/include/x86_64-linux-gnu"))
_HEADER_ENDING = ".h"


class Tool(NamedTuple):
    """A program, or a header (`libelf.h`)."""

    name: str
    package: str
    """Debian's package that has it."""
    purpose: str
    """What ktrial does with it, without a subject: `packs the guest's first file system`."""
    compiler: tuple[str, ...] = ("gcc",)
    """Of a header: who includes it, with options that change where headers are looked for."""
    search: str = ""
    """Where the program is looked for; empty: in PATH."""
    variable: str = ""
    """The variable of the environment that names this program in place of the usual one."""

    def path(self) -> str | None:
        """Where the program is; None where it is not installed. Directories of administrators count."""
        search = self.search or os.environ.get("PATH", os.defpath)
        return shutil.which(self.name, path=os.pathsep.join((search, *SBIN)))


@runtime_checkable
class NeedsTools(Protocol):
    """A machine, a workload or a monitor that runs programs of this system, or takes them into a guest."""

    @property
    def needed_tools(self) -> tuple[Tool, ...]:
        """All of them."""
        ...


def is_here(tool: Tool) -> bool:
    """Whether the program can be run, or the header can be included."""
    if not tool.name.endswith(_HEADER_ENDING):
        return tool.path() is not None
    if shutil.which(tool.compiler[0]) is None:
        # It is missing, too, and the header's package has to be in the same line.
        return any((directory / tool.name).is_file() for directory in _HEADERS)
    finished = subprocess.run(
        [*tool.compiler, "-E", "-x", "c", "-o", os.devnull, "-"],
        input=f"#include <{tool.name}>\n".encode(),
        capture_output=True,
        check=False,
    )
    return finished.returncode == 0


def missing_of(tools: Iterable[Tool]) -> list[Tool]:
    """Those that are not here, each once, in their order."""
    return [tool for tool in dict.fromkeys(tools) if not is_here(tool)]


def packages_of(tools: Iterable[Tool]) -> str:
    """The packages that have them, each once: what an error names as `package`."""
    return " ".join(dict.fromkeys(tool.package for tool in tools))
