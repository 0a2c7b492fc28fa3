"""Delta debugging: Zeller and Hildebrandt, 'Simplifying and isolating failure-inducing input', IEEE
Transactions on Software Engineering 28(2), 2002: the algorithm ddmin.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

Shows = Callable[[frozenset[int]], bool]


def ddmin(items: Sequence[int], shows: Shows) -> tuple[int, ...]:
    """A part of `items` that shows, none of whose items can be left out alone (1-minimal).

    `items` as a whole are known to show, and none of them not to. What is unresolved does not show: as in
    ddmin, the search goes on with finer parts.
    """
    found, parts = tuple(items), 2
    while len(found) > 1:
        chunks = _split(found, parts)
        smaller = _first_that_shows(chunks, shows)
        if smaller:
            found, parts = smaller, 2
            continue
        # With two parts, each one's complement is the other.
        rest = [tuple(one for one in found if one not in chunk) for chunk in chunks] if parts > 2 else []
        if smaller := _first_that_shows(rest, shows):
            found, parts = smaller, max(parts - 1, 2)
        elif parts < len(found):
            parts = min(len(found), parts * 2)
        else:
            break
    return found


def _split(items: tuple[int, ...], parts: int) -> list[tuple[int, ...]]:
    edges = [place * len(items) // parts for place in range(parts + 1)]
    return [items[start:end] for start, end in pairwise(edges)]


def _first_that_shows(parts: list[tuple[int, ...]], shows: Shows) -> tuple[int, ...]:
    return next((part for part in parts if part and shows(frozenset(part))), ())
