"""A drawn SVG, read back: where its texts, symbols, lines and boxes are, in the drawing's own pixels.

It knows the shapes that charts are drawn with, and no chart: it tells what is there, not what was meant.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple, TypeAlias
from xml.etree.ElementTree import Element

import html5lib

_SVG = "{http://www.w3.org/2000/svg}"
_MOVED = re.compile(r"translate\(([-\d.e]+)(?:[ ,]+([-\d.e]+))?\)")
_BOX = re.compile(r"M([-\d.]+),([-\d.]+)h([-\d.]+)v([-\d.]+)h-[-\d.]+Z")
_POINT = re.compile(r"([-\d.]+),([-\d.]+)")

Axis: TypeAlias = Callable[[float], float]
"""Pixels → value."""


class Text(NamedTuple):
    """One text, with its anchor's place."""

    x: float
    y: float
    text: str


class Symbol(NamedTuple):
    """A mark at a place."""

    x: float
    y: float
    fill: str
    stroke: str
    title: str = ""


class Line(NamedTuple):
    """From one point to another."""

    x: float
    y: float
    to_x: float
    to_y: float
    stroke: str
    width: float


class Box(NamedTuple):
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    fill: str


class Drawing(NamedTuple):
    """All that is visible in one SVG element."""

    texts: list[Text]
    symbols: list[Symbol]
    lines: list[Line]
    boxes: list[Box]
    paths: list[tuple[str, list[tuple[float, float]]]]
    """The class of every other path, and its points."""


def drawings_in(page: str) -> dict[str, list[Element]]:
    """The SVG elements of a page or a fragment, by the id of what names them, up to its last `-`."""
    named: dict[str, list[Element]] = {}
    for element in html5lib.parse(page).iter(f"{_SVG}svg"):
        name = (element.get("aria-labelledby") or element.get("aria-label") or "").split(" ")[0]
        named.setdefault(re.sub(r"-(\d+-)?title$|-\d+$", "", name), []).append(element)
    return named


def drawing(element: Element) -> Drawing:
    """What it shows."""
    whole = Drawing([], [], [], [], [])
    for child in element:
        _read(child, 0.0, 0.0, whole, {})
    return whole


def axis(texts: Mapping[float, float], *, as_: Callable[[float], float] = float) -> Axis:
    """What a place between the marks of an axis stands for. `texts`: pixels → the number beside it.

    `as_`: what is linear on the axis: math.log for a logarithmic one, whose numbers come back so.
    """
    marks = sorted((at, as_(value)) for at, value in texts.items())
    assert len(marks) >= 2, f"an axis needs two numbers to be read by: {texts}"
    (first, low), (last, high) = marks[0], marks[-1]
    for (a, of_a), (b, of_b) in pairwise(marks):
        assert (of_b - of_a) * (high - low) > 0, f"an axis goes one way: {texts}"
        assert abs((b - a) - (of_b - of_a) * (last - first) / (high - low)) < 1, f"uneven axis: {texts}"
    return lambda at: low + (at - first) * (high - low) / (last - first)


def figure(text: str) -> float:
    """What a number on a page says: `163,150`, `−3.25`, `+2,550 %`, `50k`, `1.5M`, `∞`."""
    plain = text.replace("\u00a0", "").replace(",", "").replace("\u2212", "-").replace("+", "").strip()
    if plain.strip("-") == "∞":
        return float(plain.replace("∞", "inf"))
    scale = {"%": 0.01, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "m": 1e-3, "µ": 1e-6, "n": 1e-9}
    if plain[-1:] in scale:
        return float(plain[:-1]) * scale[plain[-1]]
    return float(plain)


def _read(element: Element, x: float, y: float, into: Drawing, above: Mapping[str, str]) -> None:
    moved = _MOVED.search(element.get("transform") or "")
    if moved:
        x, y = x + float(moved[1]), y + float(moved[2] or 0)
    own = {**above, **{key: element.get(key, "") for key in ("class", "opacity") if element.get(key)}}
    title = element.find(f"{_SVG}title")
    if title is not None:
        own["title"] = title.text or ""
    _shape(element, x, y, into, own)
    for child in element:
        _read(child, x, y, into, own)


def _shape(element: Element, x: float, y: float, into: Drawing, own: Mapping[str, str]) -> None:
    tag = element.tag.removeprefix(_SVG)
    number = _numbers(element)
    stroke, fill = element.get("stroke", ""), element.get("fill", "")
    if tag == "text" and "".join(element.itertext()):
        at = (x + number("x"), y + number("y"))
        into.texts.append(Text(*at, "".join(element.itertext())))
    elif tag == "line":
        start = (x + number("x1"), y + number("y1"))
        end = (x + number("x2"), y + number("y2"))
        into.lines.append(Line(*start, *end, stroke, number("stroke-width", 1.0)))
    elif tag == "circle":
        into.symbols.append(Symbol(x + number("cx"), y + number("cy"), fill, stroke, own.get("title", "")))
    elif tag == "path":
        _path(element, (x, y), into, own)


def _path(element: Element, at: tuple[float, float], into: Drawing, own: Mapping[str, str]) -> None:
    d, fill, stroke = element.get("d", ""), element.get("fill", ""), element.get("stroke", "")
    box = _BOX.fullmatch(d)
    moved = bool(element.get("transform"))
    if box and fill and not moved:
        left, top, width, height = map(float, box.groups())
        into.boxes.append(Box(at[0] + left, at[1] + top, width, height, fill))
    elif moved:
        into.symbols.append(Symbol(*at, fill, stroke, own.get("title", "")))
    elif not box:
        into.paths.append((own.get("class", ""), list(_points(d))))


def _points(d: str) -> Iterator[tuple[float, float]]:
    """Of a path of straight lines, by `M`, `L`, `H` and `V`, all absolute."""
    x = y = 0.0
    for letter, rest in re.findall(r"([MLHV])([^A-Za-z]*)", d):
        for values in re.findall(r"[-\d.]+(?:,[-\d.]+)?", rest):
            numbers = [float(one) for one in values.split(",")]
            if letter in "ML":
                x, y = numbers
            elif letter == "H":
                x = numbers[0]
            else:
                y = numbers[0]
            yield x, y


def _numbers(element: Element) -> Callable[..., float]:
    def number(key: str, default: float = 0.0) -> float:
        return float((element.get(key) or str(default)).removesuffix("px"))

    return number
