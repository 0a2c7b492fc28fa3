"""One name for one thing, and names that say what a thing is rather than how it was come by."""

import re
from collections import defaultdict
from collections.abc import Iterator
from types import CodeType

from tests.support.places import ROOT

MOST_CLASSES = 2
"""So many classes may have one name, a leading underscore left out."""
CLASS = re.compile(r"^class _?(\w+)", re.MULTILINE)
FOUND = re.compile(r"\bfound\b[^.\w(]")


def sources(*tops: str) -> dict[str, str]:
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for top in tops
        for path in (ROOT / top).rglob("*.py")
    }


def variables(text: str) -> Iterator[str]:
    """What functions call their variables, arguments and inner functions, as the compiler lists them."""
    waiting = [compile(text, "", "exec", dont_inherit=True)]
    while waiting:
        code = waiting.pop()
        yield from code.co_varnames + code.co_cellvars
        waiting += [inner for inner in code.co_consts if isinstance(inner, CodeType)]


def test_no_three_classes_have_one_name() -> None:
    files: dict[str, list[str]] = defaultdict(list)
    for path, text in sources("src").items():
        for name in CLASS.findall(text):
            files[name].append(path)
    assert len(files) > 500
    assert {name: paths for name, paths in files.items() if len(paths) > MOST_CLASSES} == {}


def test_variables_are_seen_wherever_they_are_named() -> None:
    text = (
        "class A:\n    x: int\ndef f(a):\n    for b in a:\n        c, d = b\n"
        "        def h(): return c\n    return lambda e: (g := e)\n"
    )
    seen = set(variables(text))
    assert seen >= {"a", "b", "c", "d", "e", "g", "h"}
    assert not seen & {"A", "f", "x"}


def test_no_variable_is_called_found() -> None:
    """It says that something was looked for, and not what."""
    texts = sources("src", "tests", "docs", "bench")
    assert [path for path, text in texts.items() if FOUND.search(text) and "found" in variables(text)] == []
