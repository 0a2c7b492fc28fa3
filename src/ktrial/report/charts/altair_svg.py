"""From an Altair chart to an SVG element that sits in a page: small, named, the same every time."""

import re
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

from ktrial.format.sanitize import one_line

if TYPE_CHECKING:
    import altair

Drawing: TypeAlias = "altair.LayerChart | altair.FacetChart"
_TAG = re.compile(r"<[^<>]+>")
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_NOISE = re.compile(
    r' (?:role|aria-[a-z]+|class|pointer-events|stroke-miterlimit|version|xmlns:xlink)="[^"]*"|'
    # What a page's style sheet says, or is so without being said.
    r' font-family="sans-serif"| opacity="1"| text-anchor="start"'
)
_EMPTY = re.compile(r'<path d=""[^>]*/>|<path d="M0,0h0v0h0Z"[^>]*/>|<g></g>')
_ID = re.compile(r'(\bid="|url\(#|href="#)')
_SIZE = re.compile(r'<svg [^>]*viewBox="([^"]+)"[^>]*>')


def rows(altair: Any, count: int) -> Any:
    """The encoding of the field `row`: so many rows below each other, as high as they are in every layer.

    Without the domain each layer has the rows that it draws: Vega-Lite takes those without a number out of a
    layer, and what remains moves up.
    """
    scale = altair.Scale(domain=list(range(count)), paddingInner=0, paddingOuter=0)
    return altair.Y("row:O", axis=None, scale=scale)


def inline(draw: Callable[[], "Drawing"], name: str, title: str, description: str) -> str:
    """The chart as `<svg>`, its ids prefixed with `name`, with a title and a description for screen readers.

    No text in the chart may hold control characters (format.sanitize.one_line takes them out): vl-convert
    ends the whole process on one.
    """
    drawn = _TAG.sub(lambda tag: _cleaned(tag[0], name), as_svg(draw))
    while (emptied := _EMPTY.sub("", drawn)) != drawn:
        drawn = emptied
    return _SIZE.sub(lambda root: _opening(root[1], name, title, description), drawn, count=1)


def as_svg(draw: Callable[[], "Drawing"]) -> str:
    """The chart by vl-convert, without the comparisons of each of its parts with Vega-Lite's schema.

    These take more than half of the time; tests make them for every chart (`to_dict(validate=True)`).
    """
    from altair.utils import schemapi
    from altair.utils.mimebundle import spec_to_mimebundle

    with schemapi.debug_mode(False):
        spec = draw().to_dict(validate=False, context={"pre_transform": False})
    bundle = spec_to_mimebundle(spec, format="svg", mode="vega-lite")
    return str(bundle["image/svg+xml"])


def _cleaned(tag: str, name: str) -> str:
    short = _NUMBER.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), tag)
    return _ID.sub(rf"\g<1>{name}-", _NOISE.sub("", short))


def _opening(view_box: str, name: str, title: str, description: str) -> str:
    width, height = view_box.split()[2:]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view_box}" width="{width}" height="{height}" '
        f'role="img" aria-labelledby="{name}-title {name}-description">'
        f'<title id="{name}-title">{escape(one_line(title))}</title>'
        f'<desc id="{name}-description">{escape(one_line(description))}</desc>'
    )
