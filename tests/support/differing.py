"""Where two values from JSON differ, by the path that leads there: a failure names the number."""

import math
from collections.abc import Iterator


def differing(one: object, other: object, *, digits: int = 17, place: str = "") -> Iterator[str]:
    """One line for each place; floating-point numbers agree to so many digits."""
    if isinstance(one, float) and isinstance(other, float):
        if not math.isclose(one, other, rel_tol=10.0**-digits):
            yield f"{place}: {one!r} and {other!r}"
    elif isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key, each in one.items():
            yield from differing(each, other[key], digits=digits, place=f"{place}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (first, second) in enumerate(zip(one, other, strict=True)):
            yield from differing(first, second, digits=digits, place=f"{place}/{number}")
    elif one != other:
        yield f"{place}: {one!r} and {other!r}"
