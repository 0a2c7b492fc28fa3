"""What a name with an underscore stands for may change any day: no test rests on it."""

import ast
import re
from collections.abc import Iterator

import pytest
from tests.support.places import ROOT

PRIVATE = re.compile(r"_[a-zA-Z]\w*$")
LIKELY = re.compile(r"""[\w)\]]\._[a-zA-Z]|import .*\b_[a-zA-Z]|["']_[a-zA-Z]""")
"""A file without any of these need not be parsed."""
OF_OTHERS = frozenset({"_exit", "_replace", "_repr_html_", "_pytest", "_custom_shell_complete"})
"""Of Python, IPython, pytest and Click, who have no other name for it."""
BY_TEXT = frozenset({"setattr", "getattr", "delattr", "patch", "object"})
"""Calls that name attributes in text."""


def is_private(name: str) -> bool:
    return bool(PRIVATE.match(name)) and name not in OF_OTHERS


def is_its_own(value: ast.expr) -> bool:
    """`self`, `cls` and `super()` are the class's own."""
    if isinstance(value, ast.Call):
        value = value.func
    return isinstance(value, ast.Name) and value.id in {"self", "cls", "super"}


def named_in_text(call: ast.Call) -> Iterator[str]:
    """What `setattr(machine, "_limit", 1)` and `setattr("ktrial.room.file._limit", 1)` name."""
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if called in BY_TEXT:
        for argument in call.args[:2]:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield from argument.value.split(".")


def private_names(text: str) -> list[str]:
    """Those of others that a file of tests uses."""
    names: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            names += [*(node.module or "").split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [part for alias in node.names for part in alias.name.split(".")]
        elif isinstance(node, ast.Attribute) and not is_its_own(node.value):
            names.append(node.attr)
        elif isinstance(node, ast.Call):
            names += named_in_text(node)
    return sorted(filter(is_private, names))


@pytest.mark.parametrize(
    "text",
    [
        "from ktrial.room.file import _limit",
        "from ktrial._room import limit",
        "import ktrial._room.limit",
        "file._limit()",
        "machine().place._limit = 1",
        "patch.setattr(file, '_limit', 1)",
        "patch.setattr('ktrial.room.file._limit', 1)",
        "getattr(file, '_limit')",
    ],
)
def test_a_private_name_is_seen_however_it_is_used(text: str) -> None:
    assert LIKELY.search(text)
    assert len(private_names(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "self._limit = super()._limit + cls._limit",
        "os._exit(0)",
        "row._replace(cost=1)",
        "file.__name__",
        "from _pytest.mark import Mark",
        "_limit = 1",
        "assert text == '_limit'",
    ],
)
def test_its_own_names_and_those_of_python_are_a_test_s_to_use(text: str) -> None:
    assert private_names(text) == []


def test_no_test_touches_a_private_name() -> None:
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in (ROOT / "tests").rglob("*.py")
    }
    assert len(texts) > 300
    likely = {path: text for path, text in texts.items() if LIKELY.search(text)}
    assert likely
    assert {path: names for path, text in likely.items() if (names := private_names(text))} == {}
