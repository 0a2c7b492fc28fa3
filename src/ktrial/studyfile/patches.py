"""Patches that a study leaves to its user: the level `"?"` of a factor of kind `patch`; `--patch FILE`."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ktrial.studyfile.errors import PatchNotAwaited, PatchNotGiven

AWAITED = "?"
"""The level."""


def with_patches(data: Mapping[str, Any], patches: Sequence[str], where: Path) -> dict[str, Any]:
    """The study's data with each awaited patch in its place, as an absolute path.

    `patches`: files, or FACTOR=FILE; relative ones are below the working directory. Raises PatchNotGiven,
    PatchNotAwaited.
    """
    filled, awaiting = dict(data), _awaiting(data)
    for text in patches:
        name, file = _split(text, awaiting, where)
        filled = _filled(filled, name, shlex.quote(str(Path(file).expanduser().absolute())))
        awaiting.remove(name)
    if awaiting:
        option = "--patch FILE" if len(awaiting) == 1 and not patches else f"--patch {awaiting[0]}=FILE"
        raise PatchNotGiven(where=where, factor=awaiting[0], option=option)
    return filled


def _awaiting(data: Mapping[str, Any]) -> list[str]:
    """Factors with a patch to be named. What else is wrong with the data is found out later."""
    factors = data.get("factors")
    tables = factors.items() if isinstance(factors, dict) else ()
    return [name for name, table in tables if _is_patch(table) and AWAITED in _levels(table)]


def _is_patch(table: object) -> bool:
    return isinstance(table, dict) and table.get("kind") == "patch"


def _levels(table: Mapping[str, Any]) -> list[Any]:
    levels = table.get("levels")
    return levels if isinstance(levels, list) else []


def _split(text: str, awaiting: list[str], where: Path) -> tuple[str, str]:
    """The factor, and the file."""
    name, equals, file = text.partition("=")
    if equals and file and name in awaiting:
        return name, file
    if len(awaiting) == 1:
        return awaiting[0], text
    if not awaiting:
        raise PatchNotAwaited(where=where, patch=text, problem="no level of it is a patch to be named")
    names = ", ".join(awaiting)
    raise PatchNotAwaited(where=where, patch=text, problem=f"for which factor? {names}: --patch FACTOR=FILE")


def _filled(data: Mapping[str, Any], factor: str, level: str) -> dict[str, Any]:
    """With the factor's level in place of the one that is awaited, wherever it is named."""
    table = dict(data["factors"][factor])
    table["levels"] = [_or(written, level) for written in table["levels"]]
    if "baseline" in table:
        table["baseline"] = _or(table["baseline"], level)
    filled = {**data, "factors": {**data["factors"], factor: table}}
    if isinstance(rows := data.get("treatments"), list):
        filled["treatments"] = [
            {**row, factor: _or(row[factor], level)} if isinstance(row, dict) and factor in row else row
            for row in rows
        ]
    return filled


def _or(written: object, level: str) -> object:
    return level if written == AWAITED else written
