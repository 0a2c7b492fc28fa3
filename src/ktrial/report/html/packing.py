"""What a large page holds closed, packed: its script unpacks it, and makes each part when it is opened."""

import base64
import re
import zlib
from collections import Counter
from collections.abc import Sequence

LARGE = 900_000
"""A page of more bytes is packed; in a smaller one browsers without scripts show all that is closed."""
_CLOSED = re.compile(r'<noscript class="later">(.*?)</noscript>', re.DOTALL)
_WORD = re.compile(r"<[^<>]*>|[A-Za-z_][A-Za-z0-9_]{3,}")
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_FIRST, _MOST_WORDS = 0xE000, 6400
_OFTEN = 3
_MARK = "<!-- parts -->"
"""Where the packed parts go."""


def packed(page: str) -> str:
    """The page, smaller where it is large: its closed parts as one element of data, by their numbers."""
    if len(page.encode()) <= LARGE:
        return page.replace(_MARK, "", 1)
    parts = _CLOSED.findall(page)
    numbers = iter(range(len(parts)))
    opened = _CLOSED.sub(lambda _: f'<span class="later" data-part="{next(numbers)}"></span>', page)
    # No page has these characters: what comes from outside has its control characters written out.
    data = base64.b64encode(zlib.compress("\0".join(shortened(parts)).encode(), 9)).decode()
    return opened.replace(_MARK, f'{_WITHOUT}<script type="application/zlib" id="parts">{data}</script>', 1)


def shortened(parts: Sequence[str]) -> tuple[str, ...]:
    """First a list of words, with U+0001 between them; then the parts, a character for each word of the list.

    The characters are Unicode's private ones, from U+E000, in the order of the list. Names of functions come
    again in parts that lie further from each other than deflate looks back.
    """
    text = "".join(parts)
    if _PRIVATE.search(text):
        return ("", *parts)
    counted = Counter(_WORD.findall(text)).most_common(_MOST_WORDS)
    characters = {
        word: chr(_FIRST + number) for number, (word, count) in enumerate(counted) if count >= _OFTEN
    }
    short = (_WORD.sub(lambda word: characters.get(word[0], word[0]), part) for part in parts)
    return ("\1".join(characters), *short)


_WITHOUT = (
    '<noscript><p class="notice">This page is large: what is closed is packed, and unpacked by its script, '
    "which does not run here. <code>ktrial report --whole</code> writes a page without anything closed.</p>"
    "</noscript>"
)
