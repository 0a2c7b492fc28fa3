"""At which line a refusal is about: readers name a key or a benchmark, people look for a line."""

import re
from collections.abc import Iterable, Sequence

from ktrial.text_lines import lines_of

_LINE = re.compile(r"\bline [0-9]")
_MISSING = re.compile(r"is not there|are not there|missing")
_ITS = re.compile(r"\bits (\w+)")
_QUOTED = re.compile(r"'([^']+)'")
_BARE = re.compile(r"-?[0-9][0-9.]*(?:e[-+]?[0-9]+)?|NaN|None")
_TWICE = re.compile(r"there (?:twice|[2-9] times)|no JSON|[2-9] reports")
_WORD = re.compile(r"[\w./%-]+")
_SHORTEST = 3
"""Letters of a word that is looked for."""


def line_of(text: str, where: str, problem: str) -> int | None:
    """The line (from 1) that has what is wrong; None where nothing of it is there, or a line is named.

    `where` goes from the outside in (`BM_fork, real_time`). From the line on that has its first part, a line
    is looked for with its last part and the wrong value, then with either. Of what is there twice it is the
    second one.
    """
    lines = list(lines_of(text))
    if (
        _LINE.search(f"{where}: {problem}")
        or _MISSING.search(problem)
        or len([line for line in lines if line.strip()]) < 2
    ):
        return None
    quoted = _QUOTED.search(where)
    parts = [quoted[1]] if quoted else [part.strip(" []:+") for part in where.split(", ")]
    value, its = _value(problem), _ITS.search(problem)
    begins = _first(range(len(lines)), lines, [parts[0]])
    below = range(begins or 0, len(lines))
    inner = parts[-1] if len(parts) > 1 else its[1] if its else ""
    candidates = ([inner, value], [parts[0], value], [value], [inner], _words(parts[-1]))
    matches = (_first(below, lines, texts, second=bool(_TWICE.search(problem))) for texts in candidates)
    at = next((match for match in matches if match is not None), begins)
    return None if at is None else at + 1


def names_line(where: str) -> bool:
    """Whether a reader has said the line itself."""
    return _LINE.search(where) is not None


def extent(text: str, problem: str) -> str:
    """The line that a problem quotes, else all of the text: `line 9`, `lines 1 to 14`."""
    lines = list(lines_of(text))
    last = max((at for at, line in enumerate(lines, start=1) if line.strip()), default=1)
    parts = problem.split(": ")
    quotes = [": ".join(parts[at:]).strip(" .'\"") for at in range(1, len(parts))]
    for quote in (each for each in quotes if len(each) > _SHORTEST):
        if (at := _first(range(len(lines)), lines, [quote])) is not None:
            return f"line {at + 1}"
    return f"lines 1 to {last}" if last > 1 else "line 1"


def _value(problem: str) -> str:
    """What the problem quotes, or the number that it begins with."""
    quoted = _QUOTED.search(problem)
    bare = _BARE.match(problem)
    return quoted[1] if quoted else bare[0].replace("None", "") if bare else ""


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text) if len(word) >= _SHORTEST]


def _first(at: Iterable[int], lines: Sequence[str], texts: Sequence[str], second: bool = False) -> int | None:
    """The first of the lines that has all texts; None where none has, or nothing is looked for."""
    if not all(texts) or not texts:
        return None
    matches = [line for line in at if all(text in lines[line] for text in texts)]
    return matches[1] if second and len(matches) > 1 else matches[0] if matches else None
