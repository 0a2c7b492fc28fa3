"""Files of TOML: their text, and what it holds, or the place where it holds nothing."""

import re
import tomllib
from pathlib import Path
from typing import Any

from ktrial.installation import package_directory
from ktrial.model.notation import nearest
from ktrial.studyfile.errors import StudySyntaxError, StudyUnreadable
from ktrial.text_lines import lines_of

# Files of TOML: their text, and what it holds, or the place where it holds nothing.

_LARGEST_FILE = 1024 * 1024


def text_of(path: Path) -> str:
    """The text of a study's or a workload's file. Raises StudyUnreadable."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise StudyUnreadable(path, f"{error.strerror}{_similar(path)}") from error
    except ValueError as error:  # a NUL in the name
        raise StudyUnreadable(repr(str(path)), error) from error
    if len(content) > _LARGEST_FILE:
        raise StudyUnreadable(path, "it is larger than 1 MiB: is it a study file?")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise StudyUnreadable(f"{path}:{line}", "it is not UTF-8 text") from error


_YAML_LINE = re.compile(r"\s*(- |[\w.-]+:(\s|$))")


_TWICE = re.compile(r"Cannot declare \((.*)\) twice")


_PARTS = re.compile(r"'([^']*)'")
"""How tomllib names a table: ('kernels', 'mine')."""


def parsed(text: str, path: Path) -> dict[str, Any]:
    """The text as TOML. Raises StudySyntaxError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # Python 3.14 has attributes for the position; until then it is in the message only.
        match = re.fullmatch(
            r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error), re.DOTALL
        )
        problem, line, column = match.groups() if match else (str(error), None, None)
        problem = _TWICE.sub(
            lambda statement: f"the table [{'.'.join(_PARTS.findall(statement[1]))}] is here twice", problem
        )
        if not line:
            problem += " at the end of the file: is a bracket or a quote left open?"
            line, column = text.count("\n") + 1, 1
        place, sentence = f"{path}:{line}:{column}", problem[:1].lower() + problem[1:]
        if _is_yaml(text, int(line)):
            raise StudySyntaxError(
                f"{place}: this looks like YAML; a study is TOML: {sentence}",
                hint='what is question: … in YAML is question = "…" here, a list is workloads = ["fork", '
                '"pipe"], '
                "and a table begins with [factors.kernel]; ktrial help studies has a whole study",
            ) from error
        raise StudySyntaxError(f"{place}: this is not TOML: {sentence}") from error
    except RecursionError as error:
        raise StudySyntaxError(f"{path}: this is not TOML: it is nested too deeply") from error
    except ValueError as error:  # a decimal number of more digits than Python converts
        sentence = str(error)[:1].lower() + str(error)[1:]
        raise StudySyntaxError(f"{path}: this is not TOML: {sentence}") from error


def _similar(path: Path) -> str:
    """What was probably meant: a study that comes with ktrial, or a file beside the one that is not there."""
    if path.exists():
        return ""
    beside = sorted(path.parent.glob("*.toml")) if path.parent.is_dir() else []
    shipped = names() if path.parent == Path() else ()
    return nearest(str(path), [*shipped, *map(str, beside)], 2)


def _is_yaml(text: str, line: int) -> bool:
    """Whether the line that is no TOML would be YAML: `name: value`, `- name`."""
    lines = lines_of(text)
    return line <= len(lines) and bool(_YAML_LINE.match(lines[line - 1]))


# The studies that come with ktrial: `studies/`, inside of the package in a wheel, above it in a checkout.


def directory() -> Path:
    """Where they are."""
    package = package_directory()
    in_wheel = package / "studies"
    return in_wheel if in_wheel.is_dir() else package.parents[1] / "studies"


def names() -> dict[str, str]:
    """Name → question, by name."""
    files = sorted(directory().glob("*.toml"))
    return {file.stem: tomllib.loads(file.read_text(encoding="utf-8")).get("question", "") for file in files}


def file_of(path: Path) -> Path:
    """The file itself where it is there; else what comes with ktrial: a study by its plain name, and any file
    as the documentation names it, `studies/papers/nqueens.csv`.
    """
    if path.parts[:1] == ("studies",) and ".." not in path.parts and not path.exists():
        shipped = directory().joinpath(*path.parts[1:])
        return shipped if shipped.is_file() else path
    if path.parent != Path() or path.suffix or path.exists():
        return path
    shipped = directory() / f"{path}.toml"
    return shipped if shipped.is_file() else path
