"""The JSON in what a program printed: one object, with notes for people around it."""

import json
import re
from typing import Any

from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty

_OBJECT = re.compile(r"^\{", re.MULTILINE)


def has_keys(text: str, *keys: str) -> bool:
    """Whether there is an object in it, and these keys somewhere."""
    return bool(_OBJECT.search(text)) and all(f'"{key}"' in text for key in keys)


def json_objects(text: str, format: str) -> list[dict[str, Any]]:
    """Every object that begins a line, in their order. Raises OutputDamaged."""
    decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse)
    objects, at = [], 0
    while begins := _OBJECT.search(text, at):
        try:
            value, at = decoder.raw_decode(text, begins.start())
        except json.JSONDecodeError as error:
            where = f"line {error.lineno}, column {error.colno}"
            raise OutputDamaged(
                format=format, where=where, problem=f"this is not JSON: {error.msg}"
            ) from error
        except (ValueError, RecursionError) as error:
            problem = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise OutputDamaged(format=format, where="somewhere in it", problem=problem) from error
        objects.append(value)
    return objects


def json_report(text: str, format: str) -> dict[str, Any]:
    """The only object in it. Raises OutputDamaged, OutputEmpty."""
    objects = json_objects(text, format)
    if not objects:
        raise OutputEmpty(format=format, problem="there is no JSON object in it")
    if len(objects) > 1:
        problem = f"there are {len(objects)} reports in it: which of them counts, nobody can tell"
        raise OutputDamaged(format=format, where="the whole", problem=problem)
    return objects[0]


def objects_of(value: object, format: str, where: str) -> list[dict[str, Any]]:
    """A list of objects. Raises OutputDamaged."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise OutputDamaged(format=format, where=where, problem="a list of objects was expected")
    return value


def object_of(value: object, format: str, where: str) -> dict[str, Any]:
    """An object. Raises OutputDamaged."""
    if not isinstance(value, dict):
        raise OutputDamaged(format=format, where=where, problem="an object ({…}) was expected")
    return value


def text_of(value: object) -> str:
    """A string; empty where it is none."""
    return value if isinstance(value, str) else ""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys say one thing each."""
    read = dict(pairs)
    if len(read) < len(pairs):
        for key, value in pairs:
            if read[key] != value:
                raise ValueError(f"the key {key!r} is there twice, with different values")
    return read


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number that can be compared")
