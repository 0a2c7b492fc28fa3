"""The options of modelled caches: `--caches`, and their shapes as SIZE:WAYS[:LINE]."""

import re
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import BadOption

if TYPE_CHECKING:
    from ktrial.machines.exact.plugin import CacheShape, CacheShapes

_LARGEST = 1 << 30
_LINES = (8, 4096)

Caches = Annotated[
    bool, typer.Option("--caches", help="Model caches, too: misses by function. Several times slower.")
]
FirstCode = Annotated[
    str | None, typer.Option("--l1i", metavar="32K:8:64", help="Instruction cache: size:ways:line.")
]
FirstData = Annotated[
    str | None, typer.Option("--l1d", metavar="32K:8:64", help="Data cache: size:ways:line.")
]
LastLevel = Annotated[
    str | None, typer.Option("--llc", metavar="8M:16:64", help="Last-level cache: size:ways:line.")
]


def shapes(caches: bool, l1i: str | None, l1d: str | None, llc: str | None) -> "CacheShapes | None":
    """The caches that were asked for: a shape asks for all of them. Raises BadOption."""
    from ktrial.machines.exact.plugin import CacheShapes

    given = {"l1i": l1i, "l1d": l1d, "llc": llc}
    read = {name: _shape(f"--{name}", text) for name, text in given.items() if text is not None}
    return CacheShapes(**read) if caches or read else None


def _shape(option: str, text: str) -> "CacheShape":
    from ktrial.machines.exact.plugin import CacheShape
    from ktrial.model.quantities import size_bytes

    match = re.fullmatch(r"([^:]+):(\d{1,4})(?::(\d{1,4}))?", text)
    problem = f"'{text}' is not SIZE:WAYS or SIZE:WAYS:LINE, like 32K:8:64"
    if not match:
        raise BadOption(option=option, problem=problem)
    try:
        size = size_bytes(match[1], bare=True)
    except ValueError as error:
        raise BadOption(option=option, problem=f"{problem}: {error}") from None
    ways, line = int(match[2]), int(match[3] or 64)
    if not _LINES[0] <= line <= _LINES[1] or line & (line - 1):
        problem = f"a line of {line} bytes: it has {_LINES[0]} to {_LINES[1]}, a power of two"
        raise BadOption(option=option, problem=problem)
    sets, rest = divmod(size, ways * line) if ways else (0, 0)
    if not sets or rest or sets & (sets - 1) or size > _LARGEST:
        problem = (
            f"{text}: size / (ways × line) must be a power of two, and the size at most 1G; "
            f"48K:12:64 has 64 sets"
        )
        raise BadOption(option=option, problem=problem)
    return CacheShape(size, ways, line)
