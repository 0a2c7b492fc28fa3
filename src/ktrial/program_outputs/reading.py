"""How what programs print is read: numbers, JSON, reports for people."""

import json
import math
import re
from typing import Any

from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty

SMALLEST, LARGEST = 1e-30, 1e30
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_LONGEST = 40
_LONGEST_QUOTE = 60
_OBJECT = re.compile(r"^\{", re.MULTILINE)


# --- Numbers.


def number(text: str) -> float | None:
    """A decimal number between 1e-30 and 1e30 (or 0, or below it); None where the text is none."""
    stripped = text.strip()
    if len(stripped) > _LONGEST or not _NUMBER.fullmatch(stripped):
        return None
    return _sensible(float(stripped))


def finite(value: object) -> float | None:
    """A number out of JSON, in the same range; None where it is something else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        converted = float(value)
    except OverflowError:  # JSON's integers have no limit
        return None
    return _sensible(converted)


def measured(value: object, format: str, where: str) -> float:
    """A number out of JSON or of text that was measured: 0 or more. Raises OutputDamaged."""
    read = number(value) if isinstance(value, str) else finite(value)
    if read is None or read < 0:
        problem = f"{_quoted(value)} where a number from 0 was expected"
        if isinstance(value, str) and re.search(r"\d,\d", value):
            problem += "; numbers with commas are read from no output: run it with LC_ALL=C"
        raise OutputDamaged(format=format, where=where, problem=problem)
    return read


def _sensible(value: float) -> float | None:
    """The value, unless it is one that no machine measures, and that no square has room for."""
    if not math.isfinite(value) or (value and not SMALLEST <= abs(value) <= LARGEST):
        return None
    return value


def _quoted(value: object) -> str:
    text = repr(value) if not isinstance(value, list | dict) else f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"


# --- JSON: objects, with notes for people around them.


def has_keys(text: str, *keys: str) -> bool:
    """Whether there is an object in it, and these keys somewhere."""
    return bool(_OBJECT.search(text)) and all(f'"{key}"' in text for key in keys)


def json_objects(text: str, format: str) -> list[dict[str, Any]]:
    """Every object that begins a line, in their order. Raises OutputDamaged."""
    decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=float)
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
        problem = f"the second of {len(objects)} reports begins: it is not clear which of them counts"
        raise OutputDamaged(format=format, where=f"line {_line_of_the_second(text)}", problem=problem)
    return objects[0]


def _line_of_the_second(text: str) -> int:
    """Where the second object begins, of a text that has two."""
    first = _OBJECT.search(text)
    _, end = json.JSONDecoder().raw_decode(text, first.start() if first else 0)
    second = _OBJECT.search(text, end)
    return text.count("\n", 0, second.start() if second else end) + 1


def objects_of(value: object, format: str, where: str) -> list[dict[str, Any]]:
    """A list of objects. Raises OutputDamaged."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise OutputDamaged(format=format, where=where, problem="a list of objects was expected")
    return value


def object_of(value: object, format: str, where: str) -> dict[str, Any]:
    """An object. Raises OutputDamaged."""
    if not isinstance(value, dict):
        raise OutputDamaged(format=format, where=where, problem="an object ({…}) was expected")
    return value


def conditions_of(document: dict[str, Any], places: dict[str, str]) -> dict[str, str]:
    """What stands at each place (`sysinfo.release`), by the name of the condition; not what is missing."""
    conditions = {}
    for name, place in places.items():
        value: Any = document
        for key in place.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str | int | float) and str(value).strip():
            conditions[name] = str(value)
    return conditions


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


# --- Reports for people: each number is there once, or it is not read.


def only(pattern: str, text: str, format: str) -> str | None:
    """What the pattern's group finds; None where nothing matches. Raises OutputDamaged: it matches twice."""
    matches = re.findall(pattern, text, re.MULTILINE)
    if len(matches) > 1:
        problem = f"it is there {len(matches)} times: it is not clear which of them counts"
        raise OutputDamaged(format=format, where=_words(pattern), problem=problem)
    return str(matches[0]) if matches else None


def the_only(pattern: str, text: str, format: str) -> str:
    """The same; something has to match. Raises OutputDamaged."""
    value = only(pattern, text, format)
    if value is None:
        raise OutputDamaged(format=format, where=_words(pattern), problem="it is not there")
    return value


def _words(pattern: str) -> str:
    """The pattern's text, for people: without what is the pattern's own."""
    words = " ".join(re.sub(r"\(\?:|\\[sSdbw][*+?]?|[\^$()*+?\\|]|\[.*?\]", " ", pattern).split())
    return words.strip(" :.") or pattern
