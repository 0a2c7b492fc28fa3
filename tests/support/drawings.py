"""A drawn SVG, read back: where its texts, symbols, lines and boxes are, in the drawing's own pixels.

It knows the shapes that charts are drawn with, and no chart: it tells what is there, not what was meant.
"""

import base64
import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple, TypeAlias
from xml.etree.ElementTree import Element

import html5lib

from ktrial.model.fidelity import Change, FidelityPair, FidelityResult
from ktrial.report.charts import BETTER, RULE, WORSE
from ktrial.report.fidelity import agreement

# A drawn SVG, read back: where its texts, symbols, lines and boxes are, in the drawing's own pixels.
#
# It knows the shapes that charts are drawn with, and no chart: it tells what is there, not what was meant.

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
    """What a number says: `163,150`, `−3.25`, `+2,550 %`, `50k`, `1.5M`, `∞`; `31 ms` in seconds."""
    plain = text.replace("\u00a0", "").replace(",", "").replace("\u2212", "-").replace("+", "").strip()
    if plain.strip("-") == "∞":
        return float(plain.replace("∞", "inf"))
    if time := re.fullmatch(r"(-?[\d.]+)(ns|µs|ms|s)", plain):
        return float(time[1]) * {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}[time[2]]
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


# Scatter plots of fidelity, read back from their SVG and compared with the pairs that they show.

_TICK = 5.0


_INTERVAL = 0.7
"""The width of an interval's line."""


_NEAR = 0.006
"""Of a decade: a pixel and a half of the smallest of these charts."""


def assert_scatters_are_true(page: str, fidelity: FidelityResult) -> None:
    """Every pair of every count stands where its two changes are, with both intervals, in its colour."""
    drawn = drawings_in(page)["scatter"]
    counts = [one.count for one in fidelity.all if one.pairs]
    assert len(drawn) == len(counts)
    for element, count in zip(drawn, counts, strict=True):
        _assert_scatter(drawing(element), [one for one in fidelity.pairs if count in one.exact], count)


def _assert_scatter(chart: Drawing, pairs: Sequence[FidelityPair], count: str) -> None:
    counted, time = _axes(chart)
    intervals = [line for line in chart.lines if line.width == _INTERVAL]
    _assert_names_are_apart([text for text in chart.texts if text.text.endswith(", fork")])
    assert len(chart.symbols) == len(pairs)
    assert len(intervals) == 2 * len(pairs)
    for place, (pair, symbol) in enumerate(zip(pairs, chart.symbols, strict=True)):
        assert abs(counted(symbol.x) - math.log10(pair.exact[count].ratio)) < _NEAR, pair
        assert abs(time(symbol.y) - math.log10(pair.time.ratio)) < _NEAR, pair
        assert symbol.fill == {True: BETTER, False: WORSE, None: RULE}[agreement(pair, count)]
        across, upwards = intervals[place], intervals[len(pairs) + place]
        assert (across.y, upwards.x) == (symbol.y, symbol.x)
        _assert_ends(counted(across.x), counted(across.to_x), pair.exact[count])
        _assert_ends(time(upwards.y), time(upwards.to_y), pair.time)


def _assert_names_are_apart(names: Sequence[Text]) -> None:
    assert names, "pairs of another sign are named"
    for one, other in combinations(names, 2):
        first, second = sorted((one, other), key=lambda text: text.x)
        beside = second.x - first.x > 5 * len(first.text)
        assert beside or abs(one.y - other.y) > 10, (one, other)


def _assert_ends(one: float, other: float, change: Change) -> None:
    low, high = sorted((one, other))
    assert abs(low - math.log10(change.low)) < _NEAR, change
    assert abs(high - math.log10(change.high)) < _NEAR, change


def _axes(chart: Drawing) -> tuple[Axis, Axis]:
    """Of what was counted, by the numbers below their ticks; of real time, by those beside theirs."""
    ticks = [line for line in chart.lines if math.hypot(line.to_x - line.x, line.to_y - line.y) == _TICK]
    numbers = [text for text in chart.texts if text.text.replace(".", "").isdigit()]
    foot = max(text.y for text in numbers)
    below = sorted((text.x, text.text) for text in numbers if text.y == foot)
    beside = sorted((text.y, text.text) for text in numbers if text.y != foot)
    across = sorted(line.x for line in ticks if _is_upright(line))
    upwards = sorted(line.y for line in ticks if not _is_upright(line))
    return (
        axis({at: figure(text) for at, (_, text) in zip(across, below, strict=True)}, as_=math.log10),
        axis({at: figure(text) for at, (_, text) in zip(upwards, beside, strict=True)}, as_=math.log10),
    )


def _is_upright(line: Line) -> bool:
    return line.x == line.to_x


# The one script of a page, and what its content policy says about it.

_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


_ANY = re.compile(r"<script(?! type=\"application/json\")[^>]*>")


def assert_only_its_own_script_runs(page: str) -> None:
    """There is one script, inside the page, and by its digest the only one that may run; data are none."""
    (script,) = _SCRIPT.findall(page)
    assert _ANY.findall(page) == ["<script>"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")


def without_its_script(page: str) -> str:
    """The rest of the page, whose texts come from studies and guests."""
    return _SCRIPT.sub("", page, count=1) if page.count("<script>") == 1 else page
