"""What the runs of foreign groups look like: a few far off, two heaps, a warm-up, a drift, a wide spread.

The checks look at groups outside of blocks, in their file's order.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ktrial.format.number_format import percentage
from ktrial.model.imported import Family, Group, Imported
from ktrial.model.warnings import DataWarning, WarningKind

FEWEST = 6
"""Runs of a group, below which its shape says nothing."""
_FEWEST_IN_ORDER = 8
_FEWEST_FOR_HEAPS = 8
_LEVEL = 0.01
"""Of a whole file, for tests."""
_FAR, _FAR_OF_FEW, _FEW = 12.0, 25.0, 12
"""Scaled distances from the median (Iglewicz and Hoaglin 1993), and the one for fewer runs than so many.

Of 20,000 groups of normal values of each size from 6 to 30, at most 0.12 % have a run so far off.
"""
_NORMAL = 0.6745
"""The median absolute deviation of normal values, in standard deviations."""
_APART = 2.5
"""How many times the wider heap's range the gap between two heaps is."""
_STEPS = 4
"""Of the last printed digit, below which a gap is one of resolution."""
_SMALLEST = 0.01
"""A part of the value, below which a gap or a distance does not matter."""
_WIDE = 0.1
_Groups = list[tuple[Family, Group]]


def odd_runs(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """All of these checks, a file at a time."""
    for file in files:
        groups = [
            (family, group)
            for family in file.families
            for group in family.groups
            if not family.blocked and len(group.values) >= FEWEST and min(group.values) > 0
        ]
        for family, group in groups:
            where = f"{file.source}: {', '.join(part for part in (family.name, group.label) if part)}"
            unit = family.unit
            yield from two_heaps(where, group, unit) or far_runs(where, group, unit)
            yield from trend(where, group, _LEVEL / len(groups))
        yield from _wide(file.source, groups)


def far_runs(where: str, group: Group, unit: str) -> list[DataWarning]:
    """Runs that are far from the median, by the median absolute deviation of logarithms."""
    logs = [math.log(value) for value in group.values]
    middle = statistics.median(logs)
    distances = [abs(log - middle) for log in logs]
    usual = max(statistics.median(distances) / _NORMAL, _SMALLEST / _FAR)
    limit = _FAR if len(logs) >= _FEW else _FAR_OF_FEW
    far = [at for at, distance in enumerate(distances) if distance > limit * usual]
    if not far:
        return []
    shown = ", ".join(f"run {at + 1} with {group.values[at]:g} {unit}".rstrip() for at in far[:3])
    text = f"{where}: far from the median, {math.exp(middle):.4g}: {shown}{' …' if len(far) > 3 else ''}"
    if far == list(range(len(far))):
        return [_warning(WarningKind.DRIFT, f"{text}: the first {_runs(len(far))}", _WARM_UP)]
    return [_warning(WarningKind.FAR_BLOCKS, text, "they move the mean and its interval; find out why")]


_WARM_UP = "as a warm-up does: leave these runs out in all groups, or warm up before"


def two_heaps(where: str, group: Group, unit: str) -> list[DataWarning]:
    """Two modes: a gap wider than either heap, each of a fifth of the runs or more."""
    ordered = sorted(group.values)
    gaps = [after - before for before, after in pairwise(ordered)]
    at = max(range(len(gaps)), key=gaps.__getitem__) + 1
    below, above = ordered[:at], ordered[at:]
    widest = max(below[-1] - below[0], above[-1] - above[0])
    step = 10.0 ** -max(_places(value) for value in ordered)
    fewest = max(2, len(ordered) / 5)
    gap = gaps[at - 1]
    if (
        len(ordered) < _FEWEST_FOR_HEAPS
        or min(len(below), len(above)) < fewest
        or gap <= max(_APART * widest, _STEPS * step, _SMALLEST * below[-1])
    ):
        return []
    low, high = statistics.fmean(below), statistics.fmean(above)
    text = f"{where}: the runs have two modes: about {low:.4g} ({len(below)} runs) and {high:.4g} "
    text += f"{unit} ({_runs(len(above))})"
    advice = "a mean of two modes describes neither; find what switches (memory layout, CPU, cache, THP)"
    return [_warning(WarningKind.BIMODAL, text, advice)]


def trend(where: str, group: Group, level: float) -> Iterator[DataWarning]:
    """Runs that rise or fall in their order (Kendall's tau), or only the first third of them."""
    if len(group.values) < _FEWEST_IN_ORDER or len(set(group.values)) < 3:
        return
    tau, p = _kendall(group.values)
    if p >= level:
        return
    way = "rise" if tau > 0 else "fall"
    first = len(group.values) // 3
    text = f"{where}: the runs {way} in the order of the file (Kendall's tau {tau:+.2f}, p = {p:.1g})"
    rest = group.values[first:]
    if len(rest) >= _FEWEST_IN_ORDER and _kendall(rest)[1] > _LEVEL:
        yield _warning(WarningKind.DRIFT, f"{text}, the first {_runs(first)} only", _WARM_UP)
    else:
        yield _warning(WarningKind.DRIFT, text, "something changed while they ran; run the groups in blocks")


def _kendall(values: Sequence[float]) -> tuple[float, float]:
    from scipy import stats

    result = stats.kendalltau(range(len(values)), values)
    return (float(result.statistic), float(result.pvalue)) if result.pvalue == result.pvalue else (0.0, 1.0)


def _wide(source: str, groups: _Groups) -> Iterator[DataWarning]:
    """How many groups scatter by more than a tenth, and the worst."""
    spreads = {
        (family.name, group.label): statistics.stdev(group.values) / statistics.fmean(group.values)
        for family, group in groups
    }
    wide = {name: spread for name, spread in spreads.items() if spread > _WIDE}
    if wide:
        (family, label), worst = max(wide.items(), key=lambda item: item[1])
        yield _warning(
            WarningKind.WIDE_SPREAD,
            f"{source}: {len(wide)} of {len(spreads)} groups scatter by more than {percentage(_WIDE)} "
            f"(standard deviation), {family}, {label} by {percentage(worst)}",
            "small effects cannot be told from that: measure for longer, or look what disturbs",
        )


def _places(value: float) -> int:
    """Digits behind the point, as the number is printed shortest."""
    text = repr(value)
    return 0 if "e" in text or text.endswith(".0") else len(text.partition(".")[2])


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _warning(kind: WarningKind, text: str, advice: str) -> DataWarning:
    return DataWarning(kind=kind, text=text, advice=advice)
