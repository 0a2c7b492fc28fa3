"""The part of Vega-Lite that most charts are made of, drawn here, to the last byte as vl-convert draws it.

vl-convert starts a JavaScript engine: 0.9 s of CPU time, and 40 ms for each chart, a quarter of `ktrial
report` where it has a hundred charts. What is drawn here: layers of bars, rectangles, rules, points and texts
in a view of a given size, and an axis at the bottom whose values are given. Tests compare it with vl-convert.

The formulas are those of d3-scale, d3-format and d3-shape (https://d3js.org), and of vega-scenegraph's marks.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any, NamedTuple, TypeAlias

Specification: TypeAlias = Mapping[str, Any]

_MARKS = {
    "bar": {"height", "yOffset", "color", "opacity"},
    "rect": {"color", "opacity"},
    "rule": {"color", "strokeWidth", "strokeDash", "yOffset"},
    "point": {"filled", "size", "color", "stroke", "strokeWidth", "opacity", "yOffset"},
    "text": {"align", "baseline", "color", "dx", "dy", "fontSize", "fontWeight"},
}
"""Mark → what its style may say."""
_CHANNELS = {"x", "x2", "y", "y2", "color", "fill", "stroke", "shape", "opacity", "text"}
_VIEW = {"$schema", "config", "layer", "width", "height", "autosize", "padding", "resolve"}
_AXIS = {
    "values", "format", "labelExpr", "grid", "domainColor", "tickColor", "tickSize", "title", "labelPadding",
    "labelFlush", "labelColor", "labelFontSize",
}  # fmt: skip
_FORMATS = (".3~s", ",.4~r")
_LABEL_EXPRESSION = re.compile(r"datum\.value \? datum\.label \+ '([^'\\]*)' : '0'")
_BASELINES = {"top": 0.79, "middle": 0.30}
"""Where text stands below its point, in parts of its size: vega-scenegraph, `offset` of text."""


def is_drawn(chart: Specification) -> bool:
    """Whether `drawing` draws all that the chart has."""
    return (
        chart.keys() <= _VIEW
        and chart.get("autosize") == {"type": "none"}
        and all(_is_layer_drawn(part) for part in chart["layer"])
        and len(list(_axes(chart))) <= 1
    )


def _is_layer_drawn(part: Specification) -> bool:
    mark, encoding = part["mark"], part["encoding"]
    filters = part.get("transform", [{"filter": "isValid(datum.value)"}])
    return (
        part.keys() <= {"data", "mark", "encoding", "transform"}
        and filters == [{"filter": "isValid(datum.value)"}]
        and mark["type"] in _MARKS
        and mark.keys() - {"type"} <= _MARKS[mark["type"]]
        and encoding.keys() <= _CHANNELS
        and all(_is_placed(channel, encoding[channel]) for channel in ("x", "y") if channel in encoding)
    )


def _is_placed(channel: str, place: Specification) -> bool:
    """Whether the place is in pixels, or on a scale that is known and has no axis but one that is."""
    if "value" in place:
        return True
    axis, scale = place.get("axis", {}), place.get("scale") or {}
    if "domain" not in scale or scale.get("type", "linear") not in {"linear", "log"}:
        return False
    if axis is None:
        return True
    drawn = channel == "x" and axis.keys() == _AXIS and axis["format"] in _FORMATS
    drawn = drawn and axis["grid"] is False and axis["title"] is None and axis["labelFlush"] is True
    return drawn and _LABEL_EXPRESSION.fullmatch(axis["labelExpr"]) is not None


def _axes(chart: Specification) -> Iterator[Specification]:
    """The axes that differ; the layers of a chart share theirs."""
    known: list[tuple[Any, Any]] = []
    for part in chart["layer"]:
        place = part["encoding"].get("x", {})
        if place.get("axis") and (place["axis"], place["scale"]) not in known:
            known.append((place["axis"], place["scale"]))
            yield place


def drawing(chart: Specification) -> str:
    """The chart as `<svg>`, without attributes that say what is so without them; `is_drawn` has to hold."""
    padding, width, height = chart["padding"], chart["width"], chart["height"]
    whole_width = width + padding["left"] + padding["right"]
    whole_height = height + padding["top"] + padding["bottom"]
    view = _View(width, height)
    axes = "".join(_axis(place, view) for place in _axes(chart))
    layers = "".join(map(view.layer, chart["layer"]))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole_width}" height="{whole_height}" '
        f'viewBox="0 0 {whole_width} {whole_height}">'
        f'<g fill="none" transform="translate({padding["left"]},{padding["top"]})"><g>'
        f'<g transform="translate(0,0)"><path d="M0,0h{width}v{height}h-{width}Z"/>'
        f"<g>{axes}{layers}</g></g></g></g></svg>"
    )


# Scales: from a value to pixels.

Scale: TypeAlias = Callable[[float], float]


def _scale(place: Specification, pixels: int, *, upwards: bool = False) -> Scale:
    """d3-scale's linear, log and band scales, over so many pixels; of a band the middle."""
    scale = place["scale"]
    if place["type"] == "ordinal":
        step = pixels / len(scale["domain"])
        return lambda row: (scale["domain"].index(row) + 0.5) * step
    change: Callable[[float], float] = math.log if scale.get("type") == "log" else float
    first, last = map(change, scale["domain"])
    start, end = (pixels, 0) if upwards is not bool(scale.get("reverse")) else (0, pixels)

    def placed(value: float) -> float:
        part = (change(value) - first) / (last - first)
        return start * (1 - part) + end * part

    return placed


class _DrawnRow(NamedTuple):
    """One row of a layer's data, and where its mark is, in pixels."""

    data: Mapping[str, Any]
    x: float
    x2: float
    y: float
    y2: float


class _View:
    """What has the width and the height of a chart's plot."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height

    def layer(self, part: Specification) -> str:
        """A layer's marks, in a group."""
        mark, encoding = part["mark"], part["encoding"]
        draw = _DRAWN[mark["type"]]
        marks = "".join(draw(row, mark, encoding) for row in self._rows(part))
        return f"<g>{marks}</g>" if marks else "<g/>"

    def _rows(self, part: Specification) -> Iterator[_DrawnRow]:
        encoding, rows = part["encoding"], part["data"]["values"]
        if "transform" in part:
            rows = [row for row in rows if _is_number(row["value"])]
        places = [self._places(encoding, axis) for axis in ("x", "y")]
        if part["mark"]["type"] == "bar":
            places[0] = places[0]._replace(second_value=places[0].scale(0.0))
        for row in rows:
            if all(_is_number(row[place.field]) for place in places if place.field):
                (x, x2), (y, y2) = (place.ends(row) for place in places)
                yield _DrawnRow(row, x, x2, y, y2)

    def _places(self, encoding: Specification, axis: str) -> "_Ends":
        pixels = self.width if axis == "x" else self.height
        first, second = encoding[axis], encoding.get(f"{axis}2", {})
        if "value" in first:
            return _Ends("", "", float, first["value"], second.get("value"))
        scale = _scale(first, pixels, upwards=axis == "y")
        return _Ends(first["field"], second.get("field", ""), scale, 0.0, second.get("value"))


class _Ends(NamedTuple):
    """Where a layer's marks are along one axis."""

    field: str
    """Empty: all are at `value`."""
    second: str
    scale: Scale
    value: float
    second_value: float | None

    def ends(self, row: Mapping[str, Any]) -> tuple[float, float]:
        """Where the row's mark begins and ends."""
        start = self.scale(row[self.field]) if self.field else self.value
        if self.second:
            return start, self.scale(row[self.second])
        return start, start if self.second_value is None else self.second_value


def _is_number(value: Any) -> bool:
    return value is not None and math.isfinite(value)


# Marks.


def _bar(row: _DrawnRow, mark: Specification, encoding: Specification) -> str:
    """From the scale's zero to the value, as high as the mark says."""
    top = row.y + mark["yOffset"] - mark["height"] / 2
    return _box(row._replace(y=top, y2=top + mark["height"]), mark, encoding)


def _box(row: _DrawnRow, mark: Specification, encoding: Specification) -> str:
    left, top = number(min(row.x, row.x2)), number(min(row.y, row.y2))
    width, height = number(abs(row.x2 - row.x)), number(abs(row.y2 - row.y))
    path = f"M{left},{top}h{width}v{height}h{number(min(row.x, row.x2) - max(row.x, row.x2))}Z"
    opacity = _styled("opacity", row, mark, encoding)
    shown = f' opacity="{number(opacity)}"' if opacity != 1 else ""
    return f'<path d="{path}" fill="{_styled("color", row, mark, encoding)}"{shown}/>'


def _rule(row: _DrawnRow, mark: Specification, encoding: Specification) -> str:
    down = mark.get("yOffset", 0)
    thick = f' stroke-width="{number(mark["strokeWidth"])}"' if "strokeWidth" in mark else ""
    dashes = (
        f' stroke-dasharray="{",".join(map(number, mark["strokeDash"]))}"' if "strokeDash" in mark else ""
    )
    return (
        f'<line transform="translate({number(row.x)},{number(row.y + down)})" x2="{number(row.x2 - row.x)}" '
        f'y2="{number(row.y2 - row.y)}" stroke="{_styled("color", row, mark, encoding)}"{thick}{dashes}/>'
    )


def _point(row: _DrawnRow, mark: Specification, encoding: Specification) -> str:
    shape = _SHAPES[_styled("shape", row, mark, encoding) or "circle"](mark["size"])
    filled = _styled("fill" if "fill" in encoding else "color", row, mark, encoding)
    place = f"translate({number(row.x)},{number(row.y + mark.get('yOffset', 0))})"
    return (
        f'<path transform="{place}" d="{shape}" fill="{filled}" '
        f'stroke="{_styled("stroke", row, mark, encoding)}" stroke-width="{number(mark["strokeWidth"])}"/>'
    )


def _text(row: _DrawnRow, mark: Specification, encoding: Specification) -> str:
    size = mark["fontSize"]
    down = mark.get("dy", 0) + _rounded(_BASELINES[mark.get("baseline", "middle")] * size)
    place = f"translate({number(row.x + mark.get('dx', 0))},{number(row.y + down)})"
    weight = f' font-weight="{mark["fontWeight"]}"' if "fontWeight" in mark else ""
    return _words(
        str(row.data[encoding["text"]["field"]]),
        mark.get("align", "center"),
        f'transform="{place}" font-size="{size}px"{weight} fill="{_styled("color", row, mark, encoding)}"',
    )


def _words(text: str, align: str, attributes: str) -> str:
    anchor = {"left": "", "center": 'text-anchor="middle" ', "right": 'text-anchor="end" '}[align]
    trimmed = escape(text.strip(), quote=False)
    return f"<text {anchor}{attributes}" + (f">{trimmed}</text>" if trimmed else "/>")


def _styled(name: str, row: _DrawnRow, mark: Specification, encoding: Specification) -> Any:
    """What the row itself has, else what all marks of the layer have."""
    if name in encoding:
        return row.data[encoding[name]["field"]]
    return mark.get(name, 1 if name == "opacity" else None)


_DRAWN = {"bar": _bar, "rect": _box, "rule": _rule, "point": _point, "text": _text}


# Shapes of points, of an area in square pixels: vega-scenegraph, `symbols`.


def _circle(size: float) -> str:
    r = number(math.sqrt(size) / 2)
    return f"M{r},0A{r},{r},0,1,1,-{r},0A{r},{r},0,1,1,{r},0"


def _square(size: float) -> str:
    side, half = number(math.sqrt(size)), number(-math.sqrt(size) / 2)
    return f"M{half},{half}h{side}v{side}h-{side}Z"


def _diamond(size: float) -> str:
    r = number(math.sqrt(size) / 2)
    return f"M-{r},0L0,-{r}L{r},0L0,{r}Z"


def _cross(size: float) -> str:
    r, s = number(math.sqrt(size) / 2), number(math.sqrt(size) / 2 / 2.5)
    return (
        f"M-{r},-{s}L-{r},{s}L-{s},{s}L-{s},{r}L{s},{r}L{s},{s}"
        f"L{r},{s}L{r},-{s}L{s},-{s}L{s},-{r}L-{s},-{r}L-{s},-{s}Z"
    )


def _triangle(size: float, direction: int) -> str:
    r = math.sqrt(size) / 2
    h = math.sqrt(3) / 2 * r * direction
    return f"M{number(h)},0L{number(-h)},{number(-r)}L{number(-h)},{number(r)}Z"


_SHAPES: dict[str, Callable[[float], str]] = {
    "circle": _circle,
    "square": _square,
    "diamond": _diamond,
    "cross": _cross,
    "triangle-left": lambda size: _triangle(size, -1),
    "triangle-right": lambda size: _triangle(size, 1),
}


# The axis at the bottom, and the numbers on it.


def _axis(place: Specification, view: _View) -> str:
    axis, scale = place["axis"], _scale(place, view.width)
    ticks, labels = [], []
    suffix = (_LABEL_EXPRESSION.fullmatch(axis["labelExpr"]) or [""] * 2)[1]
    down = axis["tickSize"] + axis["labelPadding"] + _rounded(_BASELINES["top"] * axis["labelFontSize"])
    for value in axis["values"]:
        at = scale(value)
        ticks.append(
            f'<line transform="translate({_rounded(at)},0)" x2="0" y2="{axis["tickSize"]}" '
            f'stroke="{axis["tickColor"]}" stroke-width="1"/>'
        )
        text = label(value, axis["format"]) + suffix if value else "0"
        attributes = (
            f'transform="translate({number(at)},{down})" font-size="{axis["labelFontSize"]}px" '
            f'fill="{axis["labelColor"]}"'
        )
        labels.append(_words(text, _flush(at, view.width), attributes))
    return (
        f'<g><g transform="translate(0.5,{view.height + 0.5})"><g><g>{"".join(ticks)}</g>'
        f'<g>{"".join(labels)}</g><g><line transform="translate(0,0)" x2="{view.width}" y2="0" '
        f'stroke="{axis["domainColor"]}" stroke-width="1"/></g></g></g></g>'
    )


def _flush(at: float, width: int) -> str:
    """A label within a pixel of an end of the axis begins or ends there."""
    left, right = abs(at), abs(at - width)
    if left < right and left <= 1:
        return "left"
    return "right" if right <= 1 else "center"


def label(value: float, style: str) -> str:
    """A number as d3-format writes it in the style `.3~s` (`12.5M`) or `,.4~r` (`1,250`)."""
    digits = 3 if style == ".3~s" else 4
    sign = "−" if value < 0 else ""
    mantissa, _, power = f"{abs(value):.{digits - 1}e}".partition("e")
    exponent = int(power)
    if style == ".3~s":
        thousands = max(-8, min(8, exponent // 3))
        scaled = float(mantissa) * 10.0 ** (exponent - 3 * thousands)
        text = f"{scaled:.{max(0, digits - 1 - (exponent - 3 * thousands))}f}"
        return sign + _trimmed(text) + "yzafpnµm kMGTPEZY"[thousands + 8].strip()
    return sign + _trimmed(f"{float(f'{mantissa}e{power}'):,.{max(0, digits - 1 - exponent)}f}")


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _rounded(value: float) -> int:
    """JavaScript's Math.round: halves go up."""
    return math.floor(value + 0.5)


def number(value: float) -> str:
    """Pixels, to a hundredth."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
