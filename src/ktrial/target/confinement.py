"""The program `confine` (crates/confine): it keeps programs on this system to places that they may write."""

from collections.abc import Iterable
from pathlib import Path

from ktrial.installation import package_directory


def confine_program() -> Path | None:
    """Where it is; None where this installation has been built without it."""
    program = package_directory() / "_guest" / "x86_64" / "confine"
    return program if program.is_file() else None


def words_of(program: str, writable: Iterable[str]) -> tuple[str, ...]:
    """The words before a command that is to write below these paths alone. `program`: where `confine` is."""
    return (program, *(word for path in writable for word in ("--write", path)), "--")
