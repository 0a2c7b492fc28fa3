"""Which of the measured kernels serve some workloads best, and which to avoid: from the store alone."""

import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from ktrial.analysis.errors import AnalysisError
from ktrial.analysis.history.series import history
from ktrial.analysis.history.stored_numbers import stored_numbers
from ktrial.analysis.store_queries import labels_of
from ktrial.model.history import (
    KernelCandidate,
    Line,
    Point,
    Recommendation,
    Regret,
    SystemIdentity,
    WithoutOne,
)
from ktrial.model.workload import EXACT_MODES, Direction, short_labels
from ktrial.stats.verdict_rules import Values, exceeds, interval
from ktrial.store.store import Store

_Table = dict[str, dict[str, Point]]
"""Workload → version → its point."""


def recommend(
    store: Store, workloads: Sequence[str], margin: float | None = None, *, optional: Collection[str] = ()
) -> Recommendation:
    """From the machine and the settings with the most kernels that have all workloads; of those that are
    `optional`, only what was measured at all.

    Raises AnalysisError where fewer than two kernels have a number above zero in each of them.
    """
    stored = stored_numbers(store)
    studies = stored.studies
    measured = {word for study in studies for use in study.workloads for word in (use.name, use.label)}
    left_out = tuple(name for name in workloads if name in optional and name not in measured)
    workloads = labels_of(studies, (name for name in workloads if name not in left_out))
    lines: dict[SystemIdentity, dict[str, Line]] = {}
    measured_on: dict[SystemIdentity, dict[str, None]] = {}
    edge = margin
    for workload in workloads:
        past = history(stored, workload, margin=margin)
        edge = edge or past.margin
        for line in past.lines:  # the first of a machine is the one with the most versions
            lines.setdefault(line.system, {}).setdefault(workload, line)
            measured_on.setdefault(line.system, {}).update(dict.fromkeys(p.version for p in line.points))
    system, chosen = max(lines.items(), key=lambda item: len(_in_all(item[1], workloads)), default=(None, {}))
    names = _in_all(chosen, workloads) if workloads else []
    if system is None or len(names) < 2:
        workloads = workloads or list(left_out)
        missing = [name for name in workloads if name not in chosen] or list(workloads)
        unmeasured = ", ".join(missing)
        raise AnalysisError(
            f"Store {store.name}: fewer than two kernels have numbers of {unmeasured} on one machine.",
            hint=f"measure first: ktrial matrix 5.10..7.2 {','.join(workloads)}",
        )
    recommendation = _recommendation(system, chosen, workloads, names, measured_on[system], edge or 0.01)
    return recommendation.model_copy(update={"left_out": left_out})


def _points(line: Line) -> dict[str, Point]:
    """Version → its point, of those that can be paired: in real time those of the study with the most."""
    positive = [point for point in line.points if point.values and min(point.values) > 0]
    if line.mode not in EXACT_MODES:
        studies = Counter(point.study_id for point in positive)
        most = max(studies, key=lambda number: (studies[number], number), default=0)
        positive = [point for point in positive if point.study_id == most]
    return {point.version: point for point in positive}


def _in_all(lines: Mapping[str, Line], workloads: Sequence[str]) -> list[str]:
    """The versions with numbers in every workload, in order."""
    if set(workloads) - set(lines):
        return []
    tables = [_points(lines[workload]) for workload in workloads]
    return [name for name in tables[0] if all(name in table for table in tables)]


def _recommendation(
    system: SystemIdentity,
    lines: Mapping[str, Line],
    workloads: Sequence[str],
    names: list[str],
    measured: Iterable[str],
    margin: float,
) -> Recommendation:
    table: _Table = {workload: _points(lines[workload]) for workload in workloads}
    directions = {workload: lines[workload].direction for workload in workloads}
    of_workloads = [
        regrets(
            workload,
            {name: points[name].by_perturbation for name in names},
            {name: points[name].value or 0.0 for name in names},
            directions[workload],
        )
        for workload, points in table.items()
    ]
    values = {
        name: {workload: table[workload][name].by_perturbation for workload in workloads} for name in names
    }
    candidates = []
    for name in names:
        of_candidate = tuple(by_name[name] for by_name in of_workloads)
        worst = max(of_candidate, key=lambda regret: regret.ratio)
        rivals = (rival for rival in names if dominates(values[rival], values[name], directions, margin))
        candidates.append(
            KernelCandidate(
                version=name,
                release=table[workloads[0]][name].release,
                regrets=of_candidate,
                mean=_mean(regret.ratio for regret in of_candidate),
                worst=worst.ratio,
                worst_workload=worst.workload,
                dominated_by=tuple(rivals),
            )
        )
    candidates.sort(key=lambda candidate: candidate.mean)
    without = []
    # A summary that hangs on one workload is told by leaving each out in turn.
    for workload in workloads if len(workloads) > 1 else ():
        best, mean = _best(candidates, margin, workload)
        without.append(WithoutOne(workload=workload, best=best, mean=mean))
    recommendation = Recommendation(
        workloads=tuple(workloads),
        margin=margin,
        system=system,
        candidates=tuple(candidates),
        best=_best(candidates, margin)[0],
        without=tuple(without),
        measured_by=_measured_by(lines[workload] for workload in workloads),
        avoid=tuple(candidate.version for candidate in reversed(candidates) if candidate.dominated_by),
        incomplete={
            name: tuple(workload for workload, points in table.items() if name not in points)
            for name in measured
            if name not in names
        },
        answer="",
    )
    return recommendation.model_copy(update={"answer": _answer(recommendation)})


def _best(
    candidates: Sequence[KernelCandidate], margin: float, left_out: str = ""
) -> tuple[tuple[str, ...], float]:
    """Those that no other dominates, with a geometric mean within the margin of the smallest, and that."""
    means = {
        candidate.version: _mean(regret.ratio for regret in candidate.regrets if regret.workload != left_out)
        for candidate in candidates
        if not candidate.dominated_by
    }
    least = min(means.values())
    ordered = sorted(means, key=lambda version: means[version])
    return tuple(version for version in ordered if means[version] <= least * (1 + margin)), least


def _mean(ratios: Iterable[float]) -> float:
    """The geometric mean: of ratios the only one that does not depend on which side is divided by which
    (Fleming and Wallace, 1986).
    """
    return math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))


def _measured_by(lines: Iterable[Line]) -> str:
    """`instructions counted, not time`; several units as they are."""
    kinds = {line.unit.partition("/")[0] if line.mode in EXACT_MODES else line.unit for line in lines}
    if kinds == {"instructions"}:
        return "instructions counted, not time"
    return ", ".join(sorted(filter(None, kinds))) or "the workloads' own metrics"


def _answer(recommendation: Recommendation) -> str:
    """Which kernels, by how much, by what it is measured, and whether one workload decides it."""
    short = short_labels(recommendation.workloads)
    first = next(
        candidate for candidate in recommendation.candidates if candidate.version == recommendation.best[0]
    )
    verb = "serves" if len(recommendation.best) == 1 else "serve"
    text = (
        f"by {recommendation.measured_by}, {' and '.join(recommendation.best)} {verb} these workloads best: "
    )
    if len(recommendation.workloads) > 1:
        text += f"{_percent(first.mean)} behind the best kernel of each on average (geometric mean), "
    where = f" (in {short[first.worst_workload]})" if first.worst > 1 else ""
    text += f"at most {_percent(first.worst)}{where}"
    if len(recommendation.workloads) > 1:
        text += f"; {_steadiness(recommendation, short)}"
    if recommendation.avoid:
        avoid = ", ".join(recommendation.avoid)
        text += f"; avoid {avoid}: another kernel is worse in none of them, and better in some"
    if recommendation.incomplete:
        count = len(recommendation.incomplete)
        text += f"; {count} more without comparable numbers of some workload: nothing is said of those"
    return f"{text[0].upper()}{text[1:]}."


def _steadiness(recommendation: Recommendation, short: Mapping[str, str]) -> str:
    """Whether the answer stays when a workload is left out: else which one decides."""
    deciding = [without for without in recommendation.without if recommendation.best[0] not in without.best]
    if not deciding:
        return "so it stays whichever workload is left out"
    in_words = ", ".join(
        f"without {short[without.workload]} it is {' and '.join(without.best)}" for without in deciding
    )
    return f"one workload decides: {in_words}"


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:.3g} %"


# Which of several treatments to prefer over several workloads, without one averaged number.
#
# For each workload the regret of a treatment is its ratio to the best one (Savage, JASA 46, 1951), as a
# factor of at least 1. Treatments are ranked by their worst regret (minimax): a gain in one workload does
# not pay for a loss in another, since only the user knows how much each of them runs. One treatment
# dominates another where it is worse in no workload, and better in one at least; better and worse mean what
# they mean in `ktrial.stats.verdict_rules`: beyond the margin, and beyond the spread over perturbations.


def regrets(
    workload: str, values: Mapping[str, Values], centres: Mapping[str, float], direction: Direction
) -> dict[str, Regret]:
    """Treatment → its regret in the workload: its value over the best one, turned so that more is worse.

    `values`: by treatment, then by perturbation; above zero. `centres`: by treatment.
    """
    lower = direction is Direction.LOWER
    best = (min if lower else max)(centres, key=lambda name: centres[name])
    of_workload = {}
    for name, centre in centres.items():
        ratio = centre / centres[best] if lower else centres[best] / centre
        ends = interval(values[best], values[name]) if lower else interval(values[name], values[best])
        of_workload[name] = Regret(workload=workload, value=centre, ratio=ratio, low=ends[0], high=ends[1])
    return of_workload


def dominates(
    first: Mapping[str, Values],
    second: Mapping[str, Values],
    directions: Mapping[str, Direction],
    margin: float,
) -> bool:
    """Whether `first` (workload → values) is nowhere worse than `second`, and somewhere better."""

    def better(values: Values, rival: Values, direction: Direction) -> bool:
        less, more = (values, rival) if direction is Direction.LOWER else (rival, values)
        return exceeds(less, more, margin)

    return any(better(first[name], second[name], directions[name]) for name in directions) and not any(
        better(second[name], first[name], directions[name]) for name in directions
    )
