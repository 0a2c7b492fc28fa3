"""Round numbers for an axis."""

import math

_MOST = 5


def round_marks(low: float, high: float) -> list[float]:
    """From `low` to `high`: two to five steps of 1, 2 or 5 times a power of ten."""
    size = 10.0 ** math.floor(math.log10(high - low))
    step = next(part * size for part in (0.2, 0.5, 1.0, 2.0) if (high - low) / (part * size) <= _MOST)
    first = math.ceil(low / step)
    return [round(place * step, 12) for place in range(first, math.floor(high / step) + 1)]
