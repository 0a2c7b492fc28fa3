"""What a large page holds closed, packed: its script unpacks it, and makes each part when it is opened."""

import base64
import re
import zlib

LARGE = 900_000
"""A page of more bytes is packed; in a smaller one browsers without scripts show all that is closed."""
_CLOSED = re.compile(r'<noscript class="later">(.*?)</noscript>', re.DOTALL)
_MARK = "<!-- parts -->"
"""Where the packed parts go."""


def packed(page: str) -> str:
    """The page, smaller where it is large: its closed parts as one element of data, by their numbers."""
    if len(page.encode()) <= LARGE:
        return page.replace(_MARK, "", 1)
    parts = _CLOSED.findall(page)
    numbers = iter(range(len(parts)))
    opened = _CLOSED.sub(lambda _: f'<span class="later" data-part="{next(numbers)}"></span>', page)
    # No page has this character: what comes from outside has its control characters written out.
    data = base64.b64encode(zlib.compress("\0".join(parts).encode(), 9)).decode()
    return opened.replace(_MARK, f'{_WITHOUT}<script type="application/zlib" id="parts">{data}</script>', 1)


_WITHOUT = (
    '<noscript><p class="notice">This page is large: what is closed is packed, and unpacked by its script, '
    "which does not run here. <code>ktrial report --whole</code> writes a page without anything closed.</p>"
    "</noscript>"
)
