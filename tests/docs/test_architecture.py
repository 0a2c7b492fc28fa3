"""docs/architecture says of the layers what the source says."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.support.places import ROOT

DIRECTORY = ROOT / "docs" / "architecture"


@pytest.fixture
def draw_layers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(DIRECTORY)
    monkeypatch.delitem(sys.modules, "draw_layers", raising=False)
    import draw_layers

    return draw_layers


def test_the_picture_is_drawn_from_the_imports(draw_layers: ModuleType) -> None:
    drawn = draw_layers.drawing(draw_layers.house())
    committed = (DIRECTORY / "layers.svg").read_text(encoding="utf-8")
    assert drawn == committed, "draw it anew: .venv/bin/python docs/architecture/draw_layers.py"


def test_an_import_from_above_would_be_seen(draw_layers: ModuleType) -> None:
    house = draw_layers.house()
    assert 'class="upward"' not in draw_layers.drawing(house)
    house.imports.add(("model", "cli"))
    assert 'class="upward"' in draw_layers.drawing(house)


def test_every_room_is_described(draw_layers: ModuleType) -> None:
    package = ROOT / "src" / "ktrial"
    rooms = {room.name for room in draw_layers.house().rooms}
    assert rooms == {name for name in map(room_of, package.iterdir()) if name}
    rows = [
        line.split("|")[1] for line in (DIRECTORY / "README.md").read_text().splitlines() if line[:3] == "| `"
    ]
    described = {name.strip(" `") for row in rows for name in row.split(",")}
    assert rooms <= described, rooms - described
    crates = {crate.name for crate in (ROOT / "crates").iterdir() if (crate / "Cargo.toml").is_file()}
    assert {f"crates/{name}" for name in crates} <= described


def test_what_a_room_is_said_to_hold_is_there() -> None:
    gone = []
    for line in (DIRECTORY / "README.md").read_text().splitlines():
        if row := re.match(r"\| `(\w+)` \| (.*)", line):
            room = ROOT / "src" / "ktrial" / row[1]
            places = re.findall(r"`([a-z_]+/?)`", row[2]) if room.is_dir() else []
            gone += [
                f"{row[1]}: {name}"
                for name in places
                if not (room / (name if name.endswith("/") else f"{name}.py")).exists()
            ]
    assert gone == []


def room_of(path: Path) -> str:
    """Of a package or a module; empty where the path is neither."""
    if path.suffix == ".py" or (path / "__init__.py").is_file():
        return "" if path.stem == "__init__" else path.stem
    return ""
