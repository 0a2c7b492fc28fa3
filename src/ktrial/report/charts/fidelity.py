"""Counted changes against those in real time: a point a pair, both intervals, the line of agreement."""

import math
from collections.abc import Sequence
from typing import Any

from ktrial.format.sanitize import shortened
from ktrial.model.fidelity import Change, FidelityPair
from ktrial.report.charts import altair_svg, palette
from ktrial.report.charts.levels import styled

SIZE = 460
_ROOM = 60
_NAME = 30
_FAR = 0.2
"""Decades from the line from which a pair is named."""
_PER_CHARACTER, _LINE = 6.5, 12.0
"""Pixels that a name takes."""
_MOST = 3.0
"""Changes beyond a thousandfold are drawn at the edge (log10 of 1000)."""
_NEAR_ONE = (0.5, 0.8, 0.9, 1, 1.1, 1.25, 2)
"""Marks of axes that reach no further than to a third and three times."""
_COLOURS = {True: palette.BETTER, False: palette.WORSE, None: palette.RULE}
"""By agreement; None: one of the two has not decided."""


def draw(pairs: Sequence[FidelityPair], count: str, name: str) -> str:
    """The scatter plot of one count as an SVG element."""
    both = [pair for pair in pairs if count in pair.exact]
    return altair_svg.inline(lambda: _chart(both, count), name, f"Time by {count}", describe(both, count))


def describe(pairs: Sequence[FidelityPair], count: str) -> str:
    """What the chart shows, in words."""
    agreed = [agreement(pair, count) for pair in pairs]
    return (
        f"Ratios of {len(pairs)} pairs: {count} across, real time upwards, both logarithmic, with their "
        f"intervals. {agreed.count(True)} have the same sign in both, {agreed.count(False)} another, "
        f"{agreed.count(None)} are undecided in one of the two."
    )


def agreement(pair: FidelityPair, count: str) -> bool | None:
    """Whether both have the same sign; None where one has not decided."""
    if not (pair.time.decided and pair.exact[count].decided):
        return None
    return pair.time.verdict is pair.exact[count].verdict


def _chart(pairs: Sequence[FidelityPair], count: str) -> altair_svg.Drawing:
    import altair

    reach = max((_reach(pair, count) for pair in pairs), default=0.1)
    axes = _Axes(altair, min(_MOST, reach * 1.05))
    names = _names(pairs, count, axes.most)
    rows = [_row(pair, count, axes.most, names.get(place, "")) for place, pair in enumerate(pairs)]
    base = altair.Chart(altair.InlineData(values=rows))
    across = base.mark_rule(strokeWidth=0.7).encode(
        x=axes.x("low"), x2="high:Q", y=axes.y("time"), color=_colour(altair)
    )
    upwards = base.mark_rule(strokeWidth=0.7).encode(
        x=axes.x("counted"), y=axes.y("time_low"), y2="time_high:Q", color=_colour(altair)
    )
    points = base.mark_point(filled=True, size=22, opacity=1).encode(
        x=axes.x("counted"), y=axes.y("time"), color=_colour(altair)
    )
    text = base.mark_text(align="left", dx=6, fontSize=10, color=palette.INK).encode(
        x=axes.x("counted"), y=axes.y("time"), text="name:N"
    )
    names = text.transform_filter("datum.name != ''")
    drawn = altair.layer(_agreement(altair, axes), across, upwards, points, names)
    padding = {"left": 46, "right": _ROOM, "top": 8, "bottom": 36}
    return styled(drawn.properties(width=SIZE, height=SIZE, padding=padding))


def _reach(pair: FidelityPair, count: str) -> float:
    """How far from one the pair goes, its intervals with it: none is cut off where the axes end."""
    ends = [end for one in (pair.time, pair.exact[count]) for end in (one.ratio, one.low, one.high)]
    return max(abs(math.log10(max(end, 1e-9))) for end in ends)


class _Axes:
    """Both of the same reach, of log10 of ratios."""

    def __init__(self, altair: Any, most: float) -> None:
        self._altair, self.most = altair, most

    def x(self, field: str) -> Any:
        """What was counted."""
        return self._altair.X(f"{field}:Q", **self._both("counted: ratio to the baseline"))

    def y(self, field: str) -> Any:
        """Real time."""
        return self._altair.Y(f"{field}:Q", **self._both("real time: ratio to the baseline"))

    def _both(self, title: str) -> dict[str, Any]:
        marks = _NEAR_ONE if self.most < 0.5 else (0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100)
        values = [math.log10(one) for one in marks if abs(math.log10(one)) <= self.most]
        axis = self._altair.Axis(
            title=title, grid=False, values=values, labelExpr="format(pow(10, datum.value), '.3~g')",
            domainColor=palette.RULE, tickColor=palette.RULE, labelColor=palette.MUTED,
            titleColor=palette.MUTED, titleFontWeight="normal", labelFontSize=11, titleFontSize=11,
        )  # fmt: skip
        return {
            "scale": self._altair.Scale(domain=[-self.most, self.most], nice=False, clamp=True),
            "axis": axis,
        }


def _colour(altair: Any) -> Any:
    return altair.Color("colour:N", scale=None, legend=None)


def _agreement(altair: Any, axes: _Axes) -> Any:
    ends = [{"counted": end, "time": end} for end in (-axes.most, axes.most)]
    line = altair.Chart(altair.InlineData(values=ends)).mark_line(color=palette.RULE, strokeWidth=1)
    return line.encode(x=axes.x("counted"), y=axes.y("time"))


def _names(pairs: Sequence[FidelityPair], count: str, most: float) -> dict[int, str]:
    """Place → name, of those of another sign or far from the line: the farthest first, none on another."""
    decided = [place for place, pair in enumerate(pairs) if agreement(pair, count) is not None]
    far = [at for at in decided if agreement(pairs[at], count) is False or _off(pairs[at], count) > _FAR]
    pixels, names = SIZE / (2 * most), dict[int, str]()
    taken: list[tuple[float, float, float]] = []
    for place in sorted(far, key=lambda at: -_off(pairs[at], count)):
        pair = pairs[place]
        name = shortened(f"{pair.treatment.partition('=')[2] or pair.treatment}, {pair.workload}", _NAME)
        left, y = (pixels * math.log10(one.ratio) for one in (pair.exact[count], pair.time))
        right = left + _PER_CHARACTER * len(name)
        if all(abs(y - other) > _LINE or right < start or end < left for start, end, other in taken):
            names[place] = name
            taken.append((left, right, y))
    return names


def _off(pair: FidelityPair, count: str) -> float:
    """How far the pair is from the line, in decades."""
    return abs(math.log10(pair.time.ratio) - math.log10(pair.exact[count].ratio))


def _row(pair: FidelityPair, count: str, most: float, name: str) -> dict[str, Any]:
    def logs(change: Change) -> tuple[float, float, float]:
        three = (math.log10(max(one, 1e-9)) for one in (change.ratio, change.low, change.high))
        ratio, low, high = (max(-most, min(most, one)) for one in three)
        return ratio, low, high

    counted, time = logs(pair.exact[count]), logs(pair.time)
    agreed = agreement(pair, count)
    return {
        "counted": counted[0], "low": counted[1], "high": counted[2],
        "time": time[0], "time_low": time[1], "time_high": time[2],
        "colour": _COLOURS[agreed], "name": name,
    }  # fmt: skip
