"""Fidelity in sentences: figures, disagreements and what of the model could explain them, for all outputs."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ktrial.format import number_format
from ktrial.format.number_format import number
from ktrial.format.sanitize import shortened
from ktrial.format.table import of_texts
from ktrial.model.fidelity import (
    Change,
    CrossSection,
    Fidelity,
    FidelityPair,
    FidelityResult,
    FittedCosts,
    Interval,
    SizeBand,
)
from ktrial.report import charts
from ktrial.report.templating import chart_colours, environment, style_of
from ktrial.report.vega_lite import (
    Specification,
    as_it_is,
    inline_svg,
    layer,
    layered,
    quantitative,
    text_of,
)

_LEAST_SHARE = 0.1
"""Of what modelled cycles moved by: smaller parts are not named."""

_NAMES = {
    "instruction": "instructions",
    "string_bytes": "bytes of string instructions",
    "l2": "lines from the second level",
    "llc": "lines from the last level",
    "memory": "lines from memory",
    "stlb": "translations from the second level",
    "walk": "page walks",
    "misprediction": "mispredicted branches",
    "classes": "dear instructions, interrupts and devices, less what stores do not wait for",
}


def figures(count: Fidelity) -> str:
    """Correlations, error and slope."""
    if count.rms_error is None or count.slope is None:
        return f"no pair is decided on both; {count.undecided_in_exact} only in real time"
    return (
        f"Spearman {interval(count.spearman)}, Pearson {interval(count.pearson)}, "
        f"RMS error of log ratios {count.rms_error:.3f}, slope {count.slope:.2f}; "
        f"{count.undecided_in_exact} decided only in real time"
    )


def interval(figure: Interval) -> str:
    """A figure and its interval."""
    if figure.value is None:
        return "unknown (too few)"
    return f"{figure.value:.2f}" + (
        f" ({figure.low:.2f} to {figure.high:.2f})" if figure.low is not None else ""
    )


def change(ratio: Change) -> str:
    """A ratio as a change, with its interval."""
    return f"{number_format.change(ratio.ratio)} ({number_format.interval(ratio.low, ratio.high)})"


def disagreement(pair: FidelityPair, count: str) -> str:
    """What the two say, which counts have it right, and what modelled cycles moved by."""
    right = [name for name, counted in pair.exact.items() if counted.verdict is pair.time.verdict]
    better = f"; {', '.join(right)} {'has' if len(right) == 1 else 'have'} it right" if right else ""
    comparison = f"counted {change(pair.exact[count])}, in time {change(pair.time)}{better}"
    return f"{pair.treatment}, {pair.workload}, {pair.metric}: {comparison}; {explained(pair)}"


def explained(pair: FidelityPair) -> str:
    """Which kinds of modelled cost moved, the largest first."""
    if not pair.costs:
        return "no cycles were modelled, so that nothing is known of misses"
    total = sum(map(abs, pair.costs.values()))
    moved = sorted(pair.costs.items(), key=lambda part: -abs(part[1]))
    parts = [f"{_NAMES[name]} {by:+,.0f}" for name, by in moved if abs(by) > _LEAST_SHARE * total]
    if not parts:
        return "nothing that is modelled moved: waiting, other CPUs, or what is not modelled"
    return f"modelled cycles per operation moved by {', '.join(parts)}"


def lines(result: FidelityResult) -> Iterable[str]:
    """All of it, as plain lines; headings end with a colon."""
    for title, all_figures in (("All treatments", result.all), ("The half held out", result.held_out)):
        yield f"{title}:"
        for count in all_figures:
            yield f"  {count.sentence}"
            yield f"    {figures(count)}"
    for count in result.all:
        for pair in count.disagreements:
            yield f"Other sign by {count.count}: {disagreement(pair, count.count)}"
    if result.workloads:
        yield "Workloads beside each other, as the baseline runs them:"
        yield from (f"  {count.sentence}" for count in result.across)
    if result.fitted:
        yield from fit_lines(result.fitted)
    for reason in result.left_out:
        yield f"Left out: {reason}"


def fit_lines(fit: FittedCosts) -> Iterable[str]:
    """What was fitted, and the other half by it."""
    yield (
        f"Fitted to {fit.operations} operations, from {fit.like}: error of times {fit.error_before:.2f} "
        f"before and {fit.error_after:.2f} after, as logarithms"
    )
    for name, value in fit.after.items():
        yield f"  {name}: {fit.before[name]:.3g} to {value:.3g}"
    for title, figures_ in (("before", fit.held_out_before), ("after", fit.held_out)):
        yield f"  the other half {title}: {figures_.sentence}; {figures(figures_)}"


# The page of fidelity: signs, figures, a scatter plot a count, disagreements. No network, no script.

_HEADINGS = (
    "count", "pairs", "undecided in time", "decided only in time", "decided in both", "same sign", "Spearman",
    "Pearson", "RMS error", "slope",
)  # fmt: skip

_ACROSS_HEADINGS = ("count", "workloads", "Spearman", "scatter")


def fidelity_page(result: FidelityResult, name: str) -> str:
    """The page as text; `name`: of the studies."""
    charts = [
        (count.count, scatter_plot(result.pairs, count.count, f"scatter-{number}"))
        for number, count in enumerate(result.all)
        if count.pairs
    ]
    wrong = [
        (count.count, [disagreement(pair, count.count) for pair in count.disagreements])
        for count in result.all
        if count.disagreements
    ]
    return (
        environment()
        .get_template("fidelity.html.j2")
        .render(
            title=name,
            eyebrow="ktrial fidelity",
            question="Do changes that exact mode counts agree with those in real time?",
            sentences=[count.sentence for count in result.all],
            figures=replace(of_texts(_HEADINGS, map(row, result.all)), name="figures"),
            held_out=replace(of_texts(_HEADINGS, map(row, result.held_out)), name="figures"),
            bands=of_texts(("change", "count", "same sign", "undecided in time"), band_rows(result)),
            across=of_texts(_ACROSS_HEADINGS, map(across_row, result.across)) if result.across else None,
            workloads=of_texts(*workload_rows(result)) if result.workloads else None,
            charts=charts,
            wrong=wrong,
            fit=list(fit_lines(result.fitted)) if result.fitted else [],
            left_out=result.left_out,
            crumbs=(),
            sheet="",
            style=style_of() + chart_colours(),
            foot=f"Made by ktrial fidelity, seed {result.seed}. Intervals of correlations: 95 %, by "
            "bootstrap over treatments.",
        )
    )


def row(count: Fidelity) -> list[str]:
    """A count's row of the table of figures."""
    of_decided = f"{count.same_sign} of {count.decided}"
    numbers = (count.pairs, count.undecided_in_time, count.undecided_in_exact, count.decided)
    error = "" if count.rms_error is None else f"{count.rms_error:.3f}"
    slope = "" if count.slope is None else f"{count.slope:.2f}"
    return [
        count.count, *map(str, numbers), of_decided, interval(count.spearman),
        interval(count.pearson), error, slope,
    ]  # fmt: skip


def across_row(count: CrossSection) -> list[str]:
    """A count's row of the table of workloads beside each other."""
    scatter = "" if count.scatter is None else f"{count.scatter:.2f}-fold"
    return [count.count, str(count.workloads), interval(count.spearman), scatter]


def workload_rows(result: FidelityResult) -> tuple[list[str], list[list[str]]]:
    """Headings, and what an operation of each workload costs by each count and in real time."""
    counts = [item.count for item in result.across]
    return ["workload", *counts, "time, ns"], [
        [item.workload, *(number(item.exact.get(count)) for count in counts), number(item.time)]
        for item in result.workloads
    ]


def band_rows(result: FidelityResult) -> list[list[str]]:
    """Of each count and size of change: how often the sign was right."""
    return [
        [band_name(band), count.count, f"{band.same_sign} of {band.decided}", str(band.undecided)]
        for count in result.all
        for band in count.bands
        if band.decided or band.undecided
    ]


def band_name(band: SizeBand) -> str:
    """The sizes of changes in a band, as ratios."""
    return f"{band.low:g} to {band.high:g}" if band.high else f"beyond {band.low:g}"


# Counted changes against those in real time: a point a pair, both intervals, the line of agreement.

SIZE = 460
_ROOM = 60
_TITLE_PADDING = 14
"""Between the numbers of an axis, which telephones show larger, and what it is of."""
_NAME = 30
_FAR = 0.2
"""Decades from the line from which a pair is named."""
_PER_CHARACTER, _LINE = 6.5, 12.0
"""Pixels that a name takes."""
_MOST = 3.0
"""Changes beyond a thousandfold are drawn at the edge (log10 of 1000)."""
_NEAR_ONE = (0.5, 0.8, 0.9, 1, 1.1, 1.25, 2)
"""Marks of axes that reach no further than to a third and three times."""
_COLOURS = {True: charts.BETTER, False: charts.WORSE, None: charts.RULE}
"""By agreement; None: one of the two has not decided."""


def scatter_plot(pairs: Sequence[FidelityPair], count: str, name: str) -> str:
    """The scatter plot of one count as an SVG element."""
    both = [pair for pair in pairs if count in pair.exact]
    return inline_svg(_chart(both, count), name, f"Time by {count}", scatter_description(both, count))


def scatter_description(pairs: Sequence[FidelityPair], count: str) -> str:
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


def _chart(pairs: Sequence[FidelityPair], count: str) -> Specification:
    reach = max((_reach(pair, count) for pair in pairs), default=0.1)
    axes = _Axes(min(_MOST, reach * 1.05))
    names = _names(pairs, count, axes.most)
    rows = [_point(pair, count, axes.most, names.get(place, "")) for place, pair in enumerate(pairs)]
    colour = {**as_it_is("colour"), "legend": None}
    point = {"x": axes.x("counted"), "y": axes.y("time")}
    across = {"x": axes.x("low"), "x2": {"field": "high"}, "y": axes.y("time"), "color": colour}
    upwards = {**point, "y": axes.y("time_low"), "y2": {"field": "time_high"}, "color": colour}
    text = {**point, "text": text_of("name")}
    names_of_far = layer(rows, "text", text, align="left", dx=6, fontSize=10, color=charts.INK)
    return layered(
        [
            _agreement(axes),
            layer(rows, "rule", across, strokeWidth=0.7),
            layer(rows, "rule", upwards, strokeWidth=0.7),
            layer(rows, "point", {**point, "color": colour}, filled=True, size=22, opacity=1),
            {**names_of_far, "transform": [{"filter": "datum.name != ''"}]},
        ],
        width=SIZE,
        height=SIZE,
        padding={"left": 64, "right": _ROOM, "top": 8, "bottom": 48},
    )


def _reach(pair: FidelityPair, count: str) -> float:
    """How far from one the pair goes, its intervals with it: none is cut off where the axes end."""
    ends = [
        end for change in (pair.time, pair.exact[count]) for end in (change.ratio, change.low, change.high)
    ]
    return max(abs(math.log10(max(end, 1e-9))) for end in ends)


class _Axes:
    """Both of the same reach, of log10 of ratios."""

    def __init__(self, most: float) -> None:
        self.most = most

    def x(self, field: str) -> Specification:
        """What was counted."""
        return quantitative(field, **self._both("counted: ratio to the baseline"))

    def y(self, field: str) -> Specification:
        """Real time."""
        return quantitative(field, **self._both("real time: ratio to the baseline"))

    def _both(self, title: str) -> Specification:
        marks = _NEAR_ONE if self.most < 0.5 else (0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100)
        values = [math.log10(mark) for mark in marks if abs(math.log10(mark)) <= self.most]
        axis = {
            "title": title, "grid": False, "values": values,
            "labelExpr": "format(pow(10, datum.value), '.3~g')",
            "domainColor": charts.RULE, "tickColor": charts.RULE, "labelColor": charts.MUTED,
            "titleColor": charts.MUTED, "titleFontWeight": "normal", "labelFontSize": 11,
            "titleFontSize": 11, "titlePadding": _TITLE_PADDING,
        }  # fmt: skip
        return {"scale": {"domain": [-self.most, self.most], "nice": False, "clamp": True}, "axis": axis}


def _agreement(axes: _Axes) -> Specification:
    ends = [{"counted": end, "time": end} for end in (-axes.most, axes.most)]
    line = {"x": axes.x("counted"), "y": axes.y("time")}
    return layer(ends, "line", line, color=charts.RULE, strokeWidth=1)


def _names(pairs: Sequence[FidelityPair], count: str, most: float) -> dict[int, str]:
    """Place → name, of those of another sign or far from the line: the farthest first, none on another."""
    decided = [place for place, pair in enumerate(pairs) if agreement(pair, count) is not None]
    far = [at for at in decided if agreement(pairs[at], count) is False or _off(pairs[at], count) > _FAR]
    pixels, names = SIZE / (2 * most), dict[int, str]()
    taken: list[tuple[float, float, float]] = []
    for place in sorted(far, key=lambda at: -_off(pairs[at], count)):
        pair = pairs[place]
        name = shortened(f"{pair.treatment.partition('=')[2] or pair.treatment}, {pair.workload}", _NAME)
        left, y = (pixels * math.log10(change.ratio) for change in (pair.exact[count], pair.time))
        right = left + _PER_CHARACTER * len(name)
        if all(abs(y - height) > _LINE or right < start or end < left for start, end, height in taken):
            names[place] = name
            taken.append((left, right, y))
    return names


def _off(pair: FidelityPair, count: str) -> float:
    """How far the pair is from the line, in decades."""
    return abs(math.log10(pair.time.ratio) - math.log10(pair.exact[count].ratio))


def _point(pair: FidelityPair, count: str, most: float, name: str) -> dict[str, Any]:
    def logs(change: Change) -> tuple[float, float, float]:
        three = (math.log10(max(value, 1e-9)) for value in (change.ratio, change.low, change.high))
        ratio, low, high = (max(-most, min(most, value)) for value in three)
        return ratio, low, high

    counted, time = logs(pair.exact[count]), logs(pair.time)
    agreed = agreement(pair, count)
    return {
        "counted": counted[0], "low": counted[1], "high": counted[2],
        "time": time[0], "time_low": time[1], "time_high": time[2],
        "colour": _COLOURS[agreed], "name": name,
    }  # fmt: skip
