"""Who opens a file reads first what it holds."""

import ast

from tests.support.places import ROOT


def test_each_module_of_the_source_begins_with_what_it_holds() -> None:
    modules = [path for path in (ROOT / "src").rglob("*.py") if path.read_text(encoding="utf-8").strip()]
    assert modules
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in modules
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []
