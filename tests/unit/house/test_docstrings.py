"""Who opens a file reads first what it holds; errors that its docstrings name are there."""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from tests.support.places import ROOT

RAISED = re.compile(r"\bRaises? ((?:[A-Z]\w+|[a-z]+\.[A-Z]\w+|`[^`]*`|\([^()]*\)|,|or|and|\s)+)")
"""A list of names, with what is said of each in brackets."""


@cache
def sources() -> dict[Path, ast.Module]:
    return {
        path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "src").rglob("*.py"))
    }


def test_each_module_of_the_source_begins_with_what_it_holds() -> None:
    assert sources()
    silent = [path for path, tree in sources().items() if tree.body and not ast.get_docstring(tree)]
    assert silent == []


def classes(trees: Iterable[ast.Module]) -> set[str]:
    """All that a module of ours defines or imports, and what Python has."""
    names = set(dir(builtins))
    for node in chain.from_iterable(map(ast.walk, trees)):
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
    return names


def named_errors(docstring: str) -> list[str]:
    lists = (
        re.sub(r"\([^()]*\)|`[^`]*`|[a-z]+\.[A-Z]\w+", "", match[1]) for match in RAISED.finditer(docstring)
    )
    return [name for text in lists for name in re.findall(r"\b[A-Z][a-z]\w*", text)]


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


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
    missing = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path, tree in sources().items()
        for line, text in docstrings(tree)
        for name in named_errors(text)
        if name not in there
    ]
    assert not missing
