"""No circle between files, imports inside functions counted; test_crates.py does this for Rust."""

from collections.abc import Iterable, Mapping

import grimp
import pytest


def circles(imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The strongly connected components of more than one file (Tarjan, SIAM J. Comput. 1(2), 1972)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []
    components: list[list[str]] = []

    def visit(file: str) -> None:
        order[file] = lowest[file] = len(order)
        open_.append(file)
        for other in imports.get(file, ()):
            if other not in order:
                visit(other)
            if other in open_:
                lowest[file] = min(lowest[file], lowest[other])
        if lowest[file] == order[file]:
            start = open_.index(file)
            components.append(sorted(open_[start:]))
            del open_[start:]

    for file in imports:
        if file not in order:
            visit(file)
    return sorted(component for component in components if len(component) > 1)


def python_imports() -> dict[str, set[str]]:
    """What a module loads, also inside functions; what it names for mypy alone loads nothing."""
    graph = grimp.build_graph(
        "ktrial", include_external_packages=False, exclude_type_checking_imports=True, cache_dir=None
    )
    return {name: graph.find_modules_directly_imported_by(name) for name in sorted(graph.modules)}


@pytest.mark.parametrize(
    ("imports", "wanted"),
    [
        ({"a": ["b"], "b": ["c"], "c": []}, []),
        ({"a": ["b"], "b": ["a"]}, [["a", "b"]]),
        ({"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": ["e"], "e": ["d"]}, [["a", "b", "c"], ["d", "e"]]),
    ],
)
def test_circles_are_found(imports: dict[str, list[str]], wanted: list[list[str]]) -> None:
    assert circles(imports) == wanted


def test_no_two_python_files_import_each_other() -> None:
    imports = python_imports()
    assert len(imports) > 400, "the graph is of the whole package"
    assert "ktrial.report" in imports["ktrial.cli.commands.report"], "imports inside functions count"
    assert circles(imports) == []
