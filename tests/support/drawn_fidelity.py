"""Scatter plots of fidelity, read back from their SVG and compared with the pairs that they show."""

import math
from collections.abc import Sequence
from itertools import combinations

from tests.support.drawn_svg import Axis, Drawing, Line, Text, axis, drawing, drawings_in, figure

from ktrial.model.fidelity import Change, FidelityPair, FidelityResult
from ktrial.report.charts import BETTER, RULE, WORSE
from ktrial.report.fidelity import agreement

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
