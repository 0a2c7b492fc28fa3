"""One metric of one workload over versions: everything in the store that may stand in one line."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple, Protocol

from ktrial.analysis.comparability import differing_programs, with_same_programs
from ktrial.analysis.history import change_points
from ktrial.analysis.history.answer import with_answer
from ktrial.analysis.history.change_points import ALPHA, paired
from ktrial.analysis.history.stored_numbers import Numbers, StudyFacts, StudyNumbers, garbage_kept
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
from ktrial.stats.verdict_rules import exact_verdict, mean_value

EXACT = EXACT_MODES
_DEFAULT_MARGIN = 0.01
_MOST_NAMED = 3
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

    Numbers stand in one line only where they may be divided by each other: where machine, settings, mode,
    metric and programs are the same, and of exact numbers the perturbations. Of an exact number that was
    measured twice the later one is taken. The line with the most versions comes first.
    """
    names = None if kernels is None else tuple(kernels)
    using = [study for study in studies.studies if any(use.label == workload for use in study.workloads)]
    edge = margin or (using[-1].margin if using else _DEFAULT_MARGIN)
    with garbage_kept():
        alike = _alike(studies.of(workload), metric, None if names is None else set(names))
        order = PointOrder(names, commits, by_time)
        lines = [line_of(workload, entries, order) for entries in alike]

    def last(line: Line) -> float:
        return max((point.started.timestamp() for point in line.points if point.started), default=0.0)

    lines.sort(key=lambda line: (-len(line.points), -last(line)))
    lines = [line.model_copy(update={"alone": _difference(lines[0], line)}) for line in lines]
    judged = change_points.with_changes(lines, edge, alpha)
    seen = {point.version for line in judged for point in line.points if point.value is not None}
    missing = tuple(name for name in names or () if name not in seen)
    past = History(workload=workload, margin=edge, alpha=alpha, lines=judged, missing=missing)
    return with_answer(past, metric)


class PointOrder(NamedTuple):
    """In which order points stand."""

    names: tuple[str, ...] | None = None
    """As they were asked for; None: by version."""
    commits: Mapping[str, int] = MappingProxyType({})
    by_time: bool = False


def _alike(
    studies: Iterable[StudyNumbers], metric: str | None, kernels: Collection[str] | None
) -> list[list[_Entry]]:
    """The numbers of each line: those that may be divided by each other."""
    grouped: dict[tuple[str, str], dict[str, list[_Entry]]] = {}
    for study in studies:
        for numbers in study.every:
            is_chosen = numbers.is_first if metric is None else numbers.facts[0] == metric
            if is_chosen and (kernels is None or numbers.kernel[0] in kernels):
                perturbations = numbers.perturbations_text if numbers.is_exact else ""
                by_programs = grouped.setdefault((numbers.facts_text, perturbations), {})
                by_programs.setdefault(numbers.programs_text, []).append((study, numbers))
    return [
        [entry for text in texts for entry in by_programs[text]]
        for by_programs in grouped.values()
        for _, texts in with_same_programs(
            (entries[0][1].programs, text) for text, entries in by_programs.items()
        )
    ]


def _point(entry: _Entry) -> Point:
    study, numbers = entry
    version, release, digest = numbers.kernel
    values = numbers.values
    return Point(
        version=version,
        release=release,
        digest=digest,
        study_id=study.study_id,
        study=study.study,
        treatment=numbers.treatment,
        values=tuple(values),
        perturbations=numbers.perturbations,
        value=mean_value(dict(enumerate(values))),
        started=datetime.fromisoformat(numbers.started),
    )


def line_of(workload: str, entries: list[_Entry], order: PointOrder) -> Line:
    """The points of numbers that may be divided by each other."""
    first = entries[0][1]
    metric, unit, direction, mode, machine, qemu, cpu_model, agent_digest, seed, settings = first.facts
    points = _with_ratios(_in_order(entries, Mode(mode), order), Mode(mode))
    measured = [point for point in points if point.value is not None]
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
        perturbations=first.perturbations if Mode(mode) in EXACT else (),
        programs=with_same_programs((entry[1].programs, entry) for entry in entries)[0][0],
        trials=_trials(points, Mode(mode)),
        points=points,
        ratio=paired(measured[0], measured[-1], Mode(mode)) if len(measured) > 1 else None,
    )


def _with_ratios(points: Sequence[Point], mode: Mode) -> tuple[Point, ...]:
    measured: Point | None = None
    with_ratios = []
    for point in points:
        ratio = paired(measured, point, mode) if measured and point.value is not None else None
        with_ratios.append(point.model_copy(update={"ratio": ratio}))
        measured = point if point.value is not None else measured
    return tuple(with_ratios)


def _trials(points: Sequence[Point], mode: Mode) -> str:
    """`15 trials, 3 perturbations of each kernel: studies 1 (quick) and 4 (compare)`."""
    studies = sorted({(point.study_id, point.study) for point in points})
    named = [f"{number} ({name})" for number, name in studies[:_MOST_NAMED]]
    if len(studies) > _MOST_NAMED:
        named.append(f"{len(studies) - _MOST_NAMED} more")
    *others, last = named
    listed = f"{', '.join(others)} and {last}" if others else last
    trials = _many(sum(len(point.values) for point in points), "trial")
    each = f", {_many(len(points[0].values), 'perturbation')} of each kernel" if mode in EXACT else ""
    return f"{trials}{each}: {'study' if len(studies) == 1 else 'studies'} {listed}"


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


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
    differing += ["set of perturbations"] * (
        first.mode is line.mode and first.perturbations != line.perturbations
    )
    differing += differing_programs(first.programs, line.programs)
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
        trials=line.trials,
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
