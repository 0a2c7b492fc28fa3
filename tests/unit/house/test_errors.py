"""An error that is raised says something: a message of its own, or its class's text with all its facts."""

import ast
import importlib
import re
import string
from collections.abc import Iterator
from pathlib import Path

from tests.support.places import ROOT

from ktrial.errors import KtrialError


def all_errors() -> dict[str, type[KtrialError]]:
    for path in sorted((ROOT / "src/ktrial").rglob("*.py")):
        if path.name != "__main__.py":
            importlib.import_module(".".join(path.relative_to(ROOT / "src").with_suffix("").parts))

    def descendants(kind: type[KtrialError]) -> Iterator[type[KtrialError]]:
        for child in kind.__subclasses__():
            yield child
            yield from descendants(child)

    return {kind.__name__: kind for kind in descendants(KtrialError)}


def fields(template: str) -> set[str]:
    return {name.partition(".")[0] for _, name, _, _ in string.Formatter().parse(template) if name}


def silent_calls(file: Path, errors: dict[str, type[KtrialError]]) -> Iterator[str]:
    text = file.read_text(encoding="utf-8")
    if errors.keys().isdisjoint(re.findall(r"\b(\w+)\(", text)):
        return
    for node in ast.walk(ast.parse(text)):
        name = getattr(getattr(node, "func", None), "id", "") if isinstance(node, ast.Call) else ""
        if not isinstance(node, ast.Call) or name not in errors:
            continue
        kind = errors[name]
        if node.args:
            continue
        facts = {str(keyword.arg) for keyword in node.keywords}
        needed = fields(kind.text) | (set() if "hint" in facts else fields(kind.hint))
        is_spread = None in {keyword.arg for keyword in node.keywords}
        is_lost = bool(facts - {"hint"}) and not needed
        if not is_spread and (not kind.text or needed - facts or is_lost):
            yield f"{file.relative_to(ROOT)}:{node.lineno}: {name}, of {sorted(needed)}, has {sorted(facts)}"


def test_what_is_raised_says_something() -> None:
    errors = all_errors()
    assert len(errors) > 100
    # The arguments of others are mypy's to check.
    errors = {name: kind for name, kind in errors.items() if kind.__init__ is KtrialError.__init__}
    files = [path for top in ("src", "tests", "bench", "docs") for path in sorted((ROOT / top).rglob("*.py"))]
    assert [line for file in files for line in silent_calls(file, errors)] == []
