"""The scripts of pages: each page has one, inside it, and its content policy lets no other run."""

import base64
import hashlib
from typing import NamedTuple

from markupsafe import Markup

from ktrial.report.html.templating import text_of

_SECTIONS = ("address.js", "sections.js", "tables.js", "search.js")
_KERNEL_PAIRS = ("kernel_pairs.js",)
_LIVE = ("live.js",)
_FLAME_GRAPHS = ("flame_frames.js", "flame_graph.js")


class Script(NamedTuple):
    """A page's script."""

    text: Markup
    digest: str
    """As a content policy names it: `sha256-…`."""


def page_script(*, flame_graphs: bool = False, kernel_pairs: bool = False, live: bool = False) -> Script:
    """What opens sections, sorts and filters tables; with `flame_graphs` what draws and zooms those; with
    `kernel_pairs` what compares two kernels; `live`: what shows the studies that run now.
    """
    # Frames are drawn before they come to life, so their listener is the first.
    own = (
        *(_FLAME_GRAPHS if flame_graphs else ()),
        *(_KERNEL_PAIRS if kernel_pairs else ()),
        *(_LIVE if live else ()),
    )
    names = (*_SECTIONS, *own)
    text = "\n".join(text_of(name) for name in names)
    return Script(Markup(text), f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}")
