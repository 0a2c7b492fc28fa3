"""One name for one thing, and names that say what a thing is rather than how it was come by."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from tests.support.places import ROOT

MOST_CLASSES = 2
"""So many classes may have one name, a leading underscore left out."""
CLASS = re.compile(r"^class _?(\w+)", re.MULTILINE)
FOUND = re.compile(r"\bfound\b[^.\w(]")


def sources() -> dict[str, str]:
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in (ROOT / "src").rglob("*.py")
    }


def variables(text: str) -> Iterator[str]:
    """What functions call their variables and arguments."""
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id
                elif isinstance(node, ast.arg):
                    yield node.arg


def test_no_three_classes_have_one_name() -> None:
    files: dict[str, list[str]] = defaultdict(list)
    for path, text in sources().items():
        for name in CLASS.findall(text):
            files[name].append(path)
    assert len(files) > 500
    assert {name: paths for name, paths in files.items() if len(paths) > MOST_CLASSES} == {}


def test_variables_are_seen_wherever_they_are_named() -> None:
    text = (
        "class A:\n    x: int\ndef f(a):\n    for b in a:\n        c, d = b\n    return lambda e: (g := e)\n"
    )
    assert set(variables(text)) == {"a", "b", "c", "d", "e", "g"}


def test_no_variable_is_called_found() -> None:
    """It says that something was looked for, and not what."""
    named = [path for path, text in sources().items() if FOUND.search(text) and "found" in variables(text)]
    assert named == []
