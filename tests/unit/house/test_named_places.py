"""What documentation and comments name of ktrial's modules is there."""

import importlib
import re
from collections.abc import Iterator

import pytest
from tests.support.places import ROOT

MODULE = re.compile(r"(?<![\w./:-])ktrial(?:\.[a-zA-Z_]\w*)+")
PATH = re.compile(r"(?<![\w/])(src/ktrial/[\w./-]*\w)(?![\w*{<])")
PAGES = ("*.md", "docs/**/*.md", "tests/**/*.md", "crates/**/*.md", "src/**/*.py")
ROOMS = frozenset(path.name.removesuffix(".py") for path in (ROOT / "src/ktrial").iterdir())


def is_there(name: str) -> bool:
    """Whether a module, or what is in one, has that name. What does not begin with a room is no place."""
    room = name.split(".")[1]
    if room not in ROOMS:
        return True
    parts = name.split(".")
    for count in range(len(parts), 1, -1):
        try:
            place: object = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            fields = getattr(place, "model_fields", {}) | getattr(place, "__annotations__", {})
            if not hasattr(place, part):
                return part in fields
            place = getattr(place, part)
        return True
    return False


def missing_places(text: str) -> Iterator[str]:
    yield from (name for name in MODULE.findall(text) if not is_there(name))
    for path in PATH.findall(text):
        is_example = path.rsplit("/", 1)[1].split(".")[0].isupper()
        if not is_example and not [*ROOT.glob(path), *ROOT.glob(f"{path}*")]:
            yield path


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("see `ktrial.stats.verdict_rules`, and ktrial.target.Target", []),
        ("ktrial.db and ktrial.machines of entry points", []),
        ("`ktrial.stats.no_such_file.rule`", ["ktrial.stats.no_such_file.rule"]),
        ("src/ktrial/stats/verdict_rules.py, src/ktrial/cli", []),
        ("src/ktrial/stats/gone.py", ["src/ktrial/stats/gone.py"]),
        ("a file src/ktrial/stats/NAME.py", []),
    ],
)
def test_a_place_that_is_gone_is_seen(text: str, missing: list[str]) -> None:
    assert list(missing_places(text)) == missing


def test_every_place_that_is_named_is_there() -> None:
    pages = [path for pattern in PAGES for path in sorted(ROOT.glob(pattern)) if path.name != "CHANGELOG.md"]
    assert len(pages) > 300
    missing = {
        path.relative_to(ROOT).as_posix(): names
        for path in pages
        if (names := sorted(set(missing_places(path.read_text(encoding="utf-8")))))
    }
    assert missing == {}
