"""JSON that somebody else wrote."""

import json

from ktrial.importers.errors import MeasurementsDamaged
from ktrial.importers.protocol import SourceFile


def is_json_object(file: SourceFile) -> bool:
    """Whether it begins like one."""
    return file.text.lstrip()[:1] == "{"


def json_object(file: SourceFile, format: str) -> dict[str, object]:
    """The object in the file. Raises MeasurementsDamaged."""
    try:
        found = json.loads(file.text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _damaged(file, format, where, f"this is not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        problem = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _damaged(file, format, "somewhere in it", problem) from error
    if not isinstance(found, dict):
        raise _damaged(file, format, "line 1", "an object ({…}) was expected")
    return found


def objects(file: SourceFile, format: str, where: str, found: object) -> list[dict[str, object]]:
    """A list of objects. Raises MeasurementsDamaged."""
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise _damaged(file, format, where, "a list of objects was expected")
    return found


def text_of(found: object) -> str:
    """A string; empty where it is none."""
    return found if isinstance(found, str) else ""


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number that can be compared")


def _damaged(file: SourceFile, format: str, where: str, problem: str) -> MeasurementsDamaged:
    return MeasurementsDamaged(file=file.path, format=format, where=where, problem=problem)
