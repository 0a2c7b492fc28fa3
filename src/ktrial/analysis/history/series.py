"""One metric of one workload over versions: everything in the store that may stand in one line."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from statistics import geometric_mean, median
from types import MappingProxyType
from typing import NamedTuple, Protocol

from ktrial.analysis.history import change_points
from ktrial.analysis.history.change_points import ALPHA
from ktrial.analysis.history.stored_numbers import Facts, Numbers, StudyFacts, StudyNumbers, garbage_kept
from ktrial.model.history import (
    History,
    KernelPairs,
    Line,
    MeasuredKernel,
    PairLine,
    PairVerdict,
    Point,
    SystemIdentity,
    pairs_of,
)
from ktrial.model.kernel import measured_order
from ktrial.model.workload import EXACT_MODES, Direction, Mode
from ktrial.stats.verdict_rules import exact_verdict

EXACT = EXACT_MODES
_DEFAULT_MARGIN = 0.01
_Entry = tuple[StudyNumbers, Numbers]


class HasNumbers(Protocol):
    """Studies whose numbers a history is made of."""

    @property
    def studies(self) -> Sequence[StudyFacts]:
        """The oldest first."""

    def of(self, workload: str) -> Sequence[StudyNumbers]:
        """Each study's numbers in the workload (its label), the oldest first."""


def metrics(studies: HasNumbers, workload: str) -> tuple[str, ...]:
    """What the workload's numbers are called, as they were stored first."""
    return tuple(dict.fromkeys(name for numbers in studies.of(workload) for name in numbers.metrics))


def versions(studies: HasNumbers, workload: str) -> dict[str, str]:
    """Kernels that studies of the workload measured → their release; empty where none of them said it."""
    seen: dict[str, str] = {}
    for study in studies.studies:
        if any(use.label == workload for use in study.workloads):
            seen |= {name: release or seen.get(name, "") for name, release in study.kernels.items()}
    return seen


def history(
    studies: HasNumbers,
    workload: str,
    *,
    metric: str | None = None,
    kernels: Iterable[str] | None = None,
    margin: float | None = None,
    by_time: bool = False,
    alpha: float = ALPHA,
    commits: Mapping[str, int] = MappingProxyType({}),
) -> History:
    """The workload's history. `metric`: else its first one. `kernels`: only these, in this order, and in
    `missing` those of them that have no number; else in the order of versions, and builds of one version as
    their study names them. `commits`: places of those of one version that are commits.

    Numbers stand in one line only where machine, settings, mode and metric are the same; of an exact number
    that was measured twice the later one is taken. The line with the most versions comes first.
    """
    names = None if kernels is None else tuple(kernels)
    using = [study for study in studies.studies if any(use.label == workload for use in study.workloads)]
    edge = margin or (using[-1].margin if using else _DEFAULT_MARGIN)
    with garbage_kept():
        by_facts = _by_facts(studies.of(workload), metric, None if names is None else set(names))
        order = PointOrder(names, commits, by_time)
        lines = [line_of(workload, facts, entries, order) for facts, entries in by_facts.items()]

    def last(line: Line) -> float:
        return max((point.started.timestamp() for point in line.points if point.started), default=0.0)

    lines.sort(key=lambda line: (-len(line.points), -last(line)))
    lines = [line.model_copy(update={"alone": _difference(lines[0], line)}) for line in lines]
    judged = change_points.with_changes(lines, edge, alpha)
    seen = {point.version for line in judged for point in line.points if point.value is not None}
    missing = tuple(name for name in names or () if name not in seen)
    return History(workload=workload, margin=edge, alpha=alpha, lines=judged, missing=missing)


class PointOrder(NamedTuple):
    """In which order points stand."""

    names: tuple[str, ...] | None = None
    """As they were asked for; None: by version."""
    commits: Mapping[str, int] = MappingProxyType({})
    by_time: bool = False


def _by_facts(
    studies: Iterable[StudyNumbers], metric: str | None, kernels: Collection[str] | None
) -> dict[Facts, list[_Entry]]:
    """Numbers by what those of one line share."""
    grouped: dict[str, list[_Entry]] = {}
    for study in studies:
        for numbers in study.every:
            is_chosen = numbers.is_first if metric is None else numbers.facts[0] == metric
            if is_chosen and (kernels is None or numbers.kernel[0] in kernels):
                grouped.setdefault(numbers.facts_text, []).append((study, numbers))
    return {entries[0][1].facts: entries for entries in grouped.values()}


def _point(entry: _Entry) -> Point:
    study, numbers = entry
    version, release, digest = numbers.kernel
    values = numbers.values
    if Mode(numbers.facts[3]) in EXACT and min(values) > 0:
        value = values[0] if min(values) == max(values) else geometric_mean(values)
    else:
        value = float(median(values))
    return Point(
        version=version,
        release=release,
        digest=digest,
        study_id=study.study_id,
        study=study.study,
        treatment=numbers.treatment,
        values=tuple(values),
        perturbations=numbers.perturbations,
        value=value,
        started=datetime.fromisoformat(numbers.started),
    )


def line_of(workload: str, facts: Facts, entries: list[_Entry], order: PointOrder) -> Line:
    """The points of numbers with the same facts."""
    metric, unit, direction, mode, machine, qemu, cpu_model, agent_digest, seed, settings = facts
    return Line(
        workload=workload,
        metric=metric,
        unit=unit,
        direction=Direction(direction),
        mode=Mode(mode),
        system=SystemIdentity(
            machine=machine,
            qemu=qemu,
            cpu_model=cpu_model,
            agent_digest=agent_digest,
            seed=seed,
            settings=settings,
        ),
        points=_in_order(entries, Mode(mode), order),
    )


def _in_order(entries: list[_Entry], mode: Mode, order: PointOrder) -> tuple[Point, ...]:
    if mode in EXACT and not order.by_time:
        # Two commits may make one image: each of them was measured.
        entries = list({entry[1].kernel[::2]: entry for entry in entries}.values())
    every = order.names or dict.fromkeys(numbers.kernel[0] for _, numbers in entries)
    places = {name: place for place, name in enumerate(every)}

    def key(point: Point) -> tuple[object, ...]:
        moment = point.started.timestamp() if point.started else 0.0
        if order.by_time:
            return (moment,)
        place = places[point.version]
        if order.names:
            return (place, moment)
        version = measured_order(point.version, point.release)
        return (version, order.commits.get(point.version, -1), place, moment)

    return tuple(sorted(map(_point, entries), key=key))


def _difference(first: Line, line: Line) -> str:
    """Why it is a line of its own."""
    names = {
        "machine": "machine", "qemu": "QEMU build", "cpu_model": "CPU model", "agent_digest": "guest agent",
        "seed": "QEMU seed", "settings": "setting",
    }  # fmt: skip
    old, new = first.system.model_dump(), line.system.model_dump()
    differing = [word for name, word in names.items() if old[name] != new[name]]
    differing += ["mode"] * (first.mode is not line.mode)
    differing += ["unit"] * ((first.metric, first.unit) != (line.metric, line.unit))
    return f"measured with a different {' and '.join(differing)}" if differing else ""


# Each two kernels of a store, compared in every workload that measured both.

MOST_KERNELS = 120
"""Pairs grow with the square of the kernels: 7,140 of them in each workload."""
_LETTERS = {letter.verdict: letter for letter in PairVerdict if letter.verdict}


def kernel_pairs(past: Sequence[History], most: int = MOST_KERNELS) -> KernelPairs:
    """All kernels that a history has a number of; of more than `most`, those in the most workloads.

    An exact pair has the verdict that a study of the two would have: beyond the margin and the spread over
    perturbations (ktrial.stats.verdict_rules). A pair in real time has none.
    """
    versions_of = (
        {point.version for line in history_.lines for point in line.points if point.value is not None}
        for history_ in past
    )
    measured = Counter(name for names in versions_of for name in names)
    chosen = sorted(measured, key=lambda name: -measured[name])[:most]
    releases = {
        point.version: point.release for history_ in past for line in history_.lines for point in line.points
    }
    in_order = sorted(chosen, key=lambda name: measured_order(name, releases[name]))
    lines = (_line(line, history_.margin, in_order) for history_ in past for line in history_.lines)
    return KernelPairs(
        kernels=tuple(MeasuredKernel(name=n, release=releases[n], workloads=measured[n]) for n in in_order),
        lines=tuple(line for line in lines if sum(value is not None for value in line.values) > 1),
        left_out=len(measured) - len(chosen),
    )


def _line(line: Line, margin: float, kernels: Sequence[str]) -> PairLine:
    # Of a kernel that was measured twice the later number is taken, as in a matrix.
    by_version = {point.version: point for point in line.points if point.value is not None}
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
