"""Who opens a file reads first what it holds; errors that its docstrings name are there."""

import builtins
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from tests.support.places import ROOT

RAISED = re.compile(r"\bRaises? ((?:[A-Z]\w+|[a-z]+\.[A-Z]\w+|`[^`]*`|\([^()]*\)|,|or|and|\s)+)")
"""A list of names, with what is said of each in brackets."""
DEFINED = re.compile(r"^\s*class (\w+)", re.MULTILINE)
IMPORTED = re.compile(r"^\s*(?:from \S+ )?import (\([^)]*\)|.*)", re.MULTILINE)


@cache
def sources() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))}


def test_each_module_of_the_source_begins_with_what_it_holds() -> None:
    assert len(sources()) > 100
    silent = [path for path, text in sources().items() if text.strip() and not text.startswith('"""')]
    assert silent == []


def classes(texts: Iterable[str]) -> set[str]:
    """All that a module of ours defines or imports, and what Python has."""
    names = set(dir(builtins))
    for text in texts:
        names.update(DEFINED.findall(text))
        names.update(name for line in IMPORTED.findall(text) for name in re.findall(r"\w+", line))
    return names


def named_errors(text: str) -> list[str]:
    lists = (re.sub(r"\([^()]*\)|`[^`]*`|[a-z]+\.[A-Z]\w+", "", match[1]) for match in RAISED.finditer(text))
    return [name for names in lists for name in re.findall(r"\b[A-Z][a-z]\w*", names)]


@pytest.mark.parametrize(
    ("docstring", "names"),
    [
        ("Read it. Raises StoreError.", ["StoreError"]),
        ("Raise KernelError where (as\nthe cache is) it is none, OSError.", ["KernelError"]),
        (
            "Raises StudyError (the file), KernelError,\n    MachineError; Interrupted.",
            ["StudyError", "KernelError", "MachineError"],
        ),
        ("Raises typer.BadParameter, `Missing` or KnobError.", ["KnobError"]),
        ("It raises nothing.", []),
    ],
)
def test_errors_are_seen_in_a_docstring(docstring: str, names: list[str]) -> None:
    assert named_errors(docstring) == names


def test_every_error_that_a_docstring_names_is_there() -> None:
    there = classes(sources().values())
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path, text in sources().items()
        for name in named_errors(text)
        if name not in there
    }
    assert not missing
