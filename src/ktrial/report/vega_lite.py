"""Vega-Lite specifications as plain data, and SVG made of them: small, named, the same every time.

Altair copies each part of a chart several times: with its import, a fifth of the CPU time of `ktrial report`.
Tests compare every chart with Vega-Lite's schema. `chart_drawing` draws most, and vl-convert the others.
"""

import re
from collections.abc import Sequence
from html import escape
from typing import Any, TypeAlias

from ktrial.format.sanitize import one_line
from ktrial.report import chart_drawing

Specification: TypeAlias = dict[str, Any]
"""A chart, or a part of one: https://vega.github.io/vega-lite/docs/spec.html."""
Rows: TypeAlias = Sequence[dict[str, Any]]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_TAG = re.compile(r"<[^<>]+>")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?e-\d+|-?\d+\.\d{3,}")

_NOISE = re.compile(
    r' (?:role|aria-[a-z]+|class|pointer-events|stroke-miterlimit|version|xmlns:xlink)="[^"]*"|'
    # What a page's style sheet says, or is so without being said.
    r' font-family="sans-serif"| opacity="1"| text-anchor="start"'
)

_EMPTY = re.compile(r'<path d=""[^>]*/>|<path d="M0,0h0v0h0Z"[^>]*/>|<g></g>')
_ID = re.compile(r'(\bid="|url\(#|href="#)')
_SIZE = re.compile(r'<svg [^>]*viewBox="([^"]+)"[^>]*>')


def quantitative(field: str, **more: Any) -> Specification:
    """The encoding of a field of numbers."""
    return {"field": field, "type": "quantitative", **more}


def as_it_is(field: str) -> Specification:
    """The encoding of a field that has the colour, shape or opacity itself."""
    return {"field": field, "type": "nominal", "scale": None}


def text_of(field: str) -> Specification:
    """The encoding of a field that has a text."""
    return {"field": field, "type": "nominal"}


def row_encoding(count: int) -> Specification:
    """The encoding of the field `row`: so many rows below each other, as high as they are in every layer.

    Without the domain each layer has the rows that it draws: Vega-Lite takes those without a number out of a
    layer, and what remains moves up.
    """
    scale = {"domain": list(range(count)), "paddingInner": 0, "paddingOuter": 0}
    return {"field": "row", "type": "ordinal", "axis": None, "scale": scale}


def layer(rows: Rows, mark: str, encoding: Specification, **style: Any) -> Specification:
    """One kind of mark for each of the rows."""
    return {"data": {"values": rows}, "mark": {"type": mark, **style}, "encoding": encoding}


def layered(layers: Sequence[Specification], **more: Any) -> Specification:
    """The whole chart without background, frame and ARIA noise, in the page's type."""
    config = {"aria": False, "background": "transparent", "font": "sans-serif", "view": {"stroke": None}}
    return {"$schema": _SCHEMA, "config": config, "layer": list(layers), **more}


def inline_svg(chart: Specification, name: str, title: str, description: str) -> str:
    """The chart as `<svg>`, its ids prefixed with `name`, with a title and a description for screen readers.

    No text in the chart may hold control characters (format.sanitize.one_line takes them out): vl-convert
    ends the whole process on one.
    """
    drawn = elements(chart, name, by_vega=not chart_drawing.is_drawn(chart))
    return _SIZE.sub(lambda root: _opening(root[1], name, title, description), drawn, count=1)


def elements(chart: Specification, name: str, *, by_vega: bool) -> str:
    """The chart without what says nothing. `by_vega`: vl-convert draws it, else `chart_drawing`."""
    if by_vega:
        drawn = _TAG.sub(lambda tag: _cleaned(tag[0], name), as_svg(chart))
    else:
        drawn = chart_drawing.drawing(chart)
    while (emptied := _EMPTY.sub("", drawn)) != drawn:
        drawn = emptied
    return drawn


def as_svg(chart: Specification) -> str:
    """The chart by vl-convert, which asks no network for anything."""
    import vl_convert

    return vl_convert.vegalite_to_svg(chart, allowed_base_urls=[])


def _cleaned(tag: str, name: str) -> str:
    short = _NUMBER.sub(lambda pixels: chart_drawing.number(float(pixels[0])), tag)
    return _ID.sub(rf"\g<1>{name}-", _NOISE.sub("", short))


def _opening(view_box: str, name: str, title: str, description: str) -> str:
    width, height = view_box.split()[2:]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view_box}" width="{width}" height="{height}" '
        f'role="img" aria-labelledby="{name}-title {name}-description">'
        f'<title id="{name}-title">{escape(one_line(title))}</title>'
        f'<desc id="{name}-description">{escape(one_line(description))}</desc>'
    )
