"""Draws layers.svg from what the modules import, in the order of import-linter's layers in pyproject.toml.

    .venv/bin/python docs/architecture/draw_layers.py

On the left every layer with its rooms; on the right a mark where a module of the room in a row imports one of
the room in a column. No mark is left of the diagonal: nothing imports from above.
"""

import tomllib
from html import escape
from pathlib import Path
from typing import NamedTuple

import grimp

HERE = Path(__file__).parent
PICTURE = HERE / "layers.svg"

_PITCH = 26
_NAME_WIDTH = 190
_CELL = 26
_HEAD = 130
_STYLE = """
text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: #24292f }
.small { font-size: 11px; fill: #57606a }
.layer { fill: #f6f8fa; stroke: #d0d7de }
.used { fill: #54aeff }
.upward { fill: #cf222e }
"""


class Room(NamedTuple):
    """A package or module directly below `ktrial`."""

    name: str
    layer: int


class House(NamedTuple):
    """The rooms from top to bottom, and which room imports from which."""

    rooms: tuple[Room, ...]
    imports: set[tuple[str, str]]


def layers() -> list[list[str]]:
    """The rooms of each layer, from top to bottom, as import-linter holds them."""
    settings = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    return [[room.strip() for room in layer.split("|")] for layer in contract["layers"]]


def house() -> House:
    """What the source says."""
    graph = grimp.build_graph("ktrial", cache_dir=None)
    imports = {
        (_room(module), _room(imported))
        for module in graph.modules - {"ktrial"}
        for imported in graph.find_modules_directly_imported_by(module)
    }
    return House(tuple(Room(name, place) for place, layer in enumerate(layers()) for name in layer), imports)


def _room(module: str) -> str:
    """`kernels` of `ktrial.kernels.kernel_cache`."""
    return module.split(".")[1] if "." in module else ""


def drawing(drawn: House) -> str:
    """The picture, as SVG."""
    count = len(drawn.rooms)
    width, height = _NAME_WIDTH + _CELL * count + 20, _HEAD + _PITCH * count + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">',
        "<title>The layers of ktrial, and which room imports from which</title>",
        f"<style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *_layers(drawn.rooms),
        *_columns(drawn.rooms),
        *_cells(drawn),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _top(place: int) -> int:
    return _HEAD + _PITCH * place


def _layers(rooms: tuple[Room, ...]) -> list[str]:
    parts = []
    for layer in range(rooms[-1].layer + 1):
        places = [place for place, room in enumerate(rooms) if room.layer == layer]
        box = f'x="8" y="{_top(places[0]) + 2}" width="{_NAME_WIDTH - 16}" rx="5"'
        parts.append(f'<rect class="layer" {box} height="{_PITCH * len(places) - 4}"/>')
    for place, room in enumerate(rooms):
        base = _top(place) + 17
        parts.append(f'<text x="18" y="{base}">{escape(room.name)}</text>')
    return parts


def _columns(rooms: tuple[Room, ...]) -> list[str]:
    parts = []
    for place, room in enumerate(rooms):
        turned = f"translate({_NAME_WIDTH + _CELL * place + _CELL // 2 + 4} {_HEAD - 6}) rotate(-60)"
        parts.append(f'<text class="small" transform="{turned}">{escape(room.name)}</text>')
    return parts


def _cells(drawn: House) -> list[str]:
    """Right of the diagonal is what a room may import."""
    parts = []
    for row, room in enumerate(drawn.rooms):
        for column, other in enumerate(drawn.rooms):
            if row != column and (room.name, other.name) in drawn.imports:
                box = f'x="{_NAME_WIDTH + _CELL * column + 1}" y="{_top(row) + 1}"'
                kind = "used" if room.layer < other.layer else "upward"
                parts.append(f'<rect class="{kind}" {box} width="{_CELL - 2}" height="{_PITCH - 2}"/>')
    return parts


if __name__ == "__main__":
    PICTURE.write_text(drawing(house()), encoding="utf-8")
    print(f"{PICTURE}: {len(house().rooms)} rooms")
