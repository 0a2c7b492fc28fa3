"""Read the Kconfig files of a kernel's source with kconfiglib. Nothing of the source is run.

Kconfig asks the compiler what it can do, by shell commands (scripts/Kconfig.include). Here all of them are
taken to say yes: what matters is which options depend on which, not what this machine's compiler can do.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kconfiglib

from ktrial.kernels.build.errors import SourceUnusable
from ktrial.kernels.kconfig.evaluator import Rules
from ktrial.kernels.kconfig.menu_reader import MenuReader

_ENVIRONMENT = {"ARCH": "x86", "SRCARCH": "x86", "KERNELVERSION": "", "KCONFIG_FUNCTIONS": __name__}
_lock = threading.Lock()
"""kconfiglib takes its surroundings from the environment of the process."""


def rules_in(directory: Path) -> Rules:
    """What Kconfig asks for in the source in `directory`, for x86. Takes some two seconds for Linux.

    Raises SourceUnusable where kconfiglib cannot read it.
    """
    directory = directory.resolve()
    with _lock, _environment(directory):
        try:
            return Rules(MenuReader("Kconfig", warn=False))
        except (kconfiglib.KconfigError, OSError, RecursionError, UnicodeError) as error:
            raise SourceUnusable(
                name=directory,
                directory=directory,
                source=directory,
                problem=f"its Kconfig files cannot be read: {error}",
                advice="without them nobody can tell which options follow from others",
            ) from None


@contextmanager
def _environment(directory: Path) -> Iterator[None]:
    wanted = {**_ENVIRONMENT, "srctree": str(directory)}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _yes(kconfig: Any, name: str, command: str) -> str:
    return "y"


def _nothing(kconfig: Any, name: str, *arguments: str) -> str:
    return ""


functions = {"shell": (_yes, 1, 1), "error-if": (_nothing, 2, 2), "warning-if": (_nothing, 2, 2)}
"""kconfiglib's name for what takes the place of Kconfig's own macros."""
