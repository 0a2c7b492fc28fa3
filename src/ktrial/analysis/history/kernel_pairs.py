"""Each two kernels of a store, compared in every workload that measured both."""

from collections import Counter
from collections.abc import Iterable, Sequence

from ktrial.model.history import History, Line, Point
from ktrial.model.kernel import measured_order
from ktrial.model.kernel_pairs import KernelPairs, MeasuredKernel, PairLine, PairVerdict, pairs_of
from ktrial.model.workload import EXACT_MODES
from ktrial.stats.verdict_rules import exact_verdict

MOST_KERNELS = 120
"""Pairs grow with the square of the kernels: 7,140 of them in each workload."""

_Points = dict[str, Point]
_LETTERS = {one.verdict: one for one in PairVerdict if one.verdict}


def kernel_pairs(past: Sequence[History], most: int = MOST_KERNELS) -> KernelPairs:
    """All kernels that a history has a number of; of more than `most`, those in the most workloads.

    An exact pair has the verdict that a study of the two would have: beyond the margin and the spread over
    perturbations (ktrial.stats.verdict_rules). A pair in real time has none.
    """
    measured = Counter(name for one in past for name in _measured(one))
    chosen = sorted(measured, key=lambda name: -measured[name])[:most]
    releases = {point.version: point.release for one in past for line in one.lines for point in line.points}
    in_order = sorted(chosen, key=lambda name: measured_order(name, releases[name]))
    lines = (_line(line, one.margin, in_order) for one in past for line in one.lines)
    return KernelPairs(
        kernels=tuple(MeasuredKernel(name=n, release=releases[n], workloads=measured[n]) for n in in_order),
        lines=tuple(line for line in lines if sum(value is not None for value in line.values) > 1),
        left_out=len(measured) - len(chosen),
    )


def _measured(past: History) -> Iterable[str]:
    return {point.version for line in past.lines for point in line.points if point.value is not None}


def _line(line: Line, margin: float, kernels: Sequence[str]) -> PairLine:
    # Of a kernel that was measured twice the later number is taken, as in a matrix.
    by_version: _Points = {point.version: point for point in line.points if point.value is not None}
    points = [by_version.get(name) for name in kernels]
    return PairLine(
        workload=line.workload,
        metric=line.metric,
        unit=line.unit,
        direction=line.direction,
        mode=line.mode,
        settings=line.system.settings,
        margin=margin,
        alone=line.alone,
        values=tuple(point.value if point else None for point in points),
        verdicts="".join(_verdict(line, margin, points[i], points[j]) for i, j in pairs_of(len(kernels))),
    )


def _verdict(line: Line, margin: float, first: Point | None, second: Point | None) -> PairVerdict:
    if first is None or second is None:
        return PairVerdict.NO_NUMBER
    if first.digest and first.digest == second.digest:
        return PairVerdict.IDENTICAL
    if line.mode not in EXACT_MODES:
        return PairVerdict.NOT_JUDGED
    verdict, _ = exact_verdict(first.by_perturbation, second.by_perturbation, line.direction, margin)
    return _LETTERS[verdict]
