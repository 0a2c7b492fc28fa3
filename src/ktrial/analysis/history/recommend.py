"""Which of the measured kernels serve some workloads best, and which to avoid: from the store alone."""

import math
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ktrial.analysis.errors import HistoryError
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

# Which of the measured kernels serve some workloads best, and which to avoid: from the store alone.

_Table = dict[str, dict[str, Point]]
"""Workload → version → its point."""


def recommend(
    store: Store, workloads: Sequence[str], margin: float | None = None, *, optional: Collection[str] = ()
) -> Recommendation:
    """From the machine and the settings with the most kernels that have all workloads; of those that are
    `optional`, only what was measured at all.

    Raises NothingToRecommend where fewer than two kernels have a number above zero in each of them.
    """
    stored = stored_numbers(store)
    studies = stored.studies
    there = {word for study in studies for use in study.workloads for word in (use.name, use.label)}
    left_out = tuple(one for one in workloads if one in optional and one not in there)
    workloads = labels_of(studies, (one for one in workloads if one not in left_out))
    lines: dict[SystemIdentity, dict[str, Line]] = {}
    edge = margin
    for workload in workloads:
        past = history(stored, workload, margin=margin)
        edge = edge or past.margin
        for line in past.lines:
            lines.setdefault(line.system, {}).setdefault(workload, line)
    system, chosen = max(lines.items(), key=lambda item: len(_whole(item[1], workloads)), default=(None, {}))
    names = _whole(chosen, workloads) if workloads else []
    if system is None or len(names) < 2:
        workloads = workloads or list(left_out)
        missing = [one for one in workloads if one not in chosen] or list(workloads)
        problem = f"fewer than two kernels have numbers of {', '.join(missing)} on one machine"
        raise HistoryError(
            f"Store {store.name}: {problem}.",
            hint=f"measure first: ktrial matrix --kernels 5.10..7.2 --workloads {','.join(workloads)}",
        )
    told = _recommendation(system, chosen, workloads, names, edge or 0.01)
    return told.model_copy(update={"left_out": left_out})


def _points(line: Line) -> dict[str, Point]:
    return {point.version: point for point in line.points if point.values and min(point.values) > 0}


def _whole(lines: Mapping[str, Line], workloads: Sequence[str]) -> list[str]:
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
    margin: float,
) -> Recommendation:
    table: _Table = {workload: _points(lines[workload]) for workload in workloads}
    ratios = {
        workload: regrets(
            {name: table[workload][name].by_perturbation for name in names},
            {name: table[workload][name].value or 0.0 for name in names},
            lines[workload].direction,
        )
        for workload in workloads
    }
    values = {
        name: {workload: table[workload][name].by_perturbation for workload in workloads} for name in names
    }
    directions = {workload: lines[workload].direction for workload in workloads}
    over = {
        name: tuple(one for one in names if dominates(values[one], values[name], directions, margin))
        for name in names
    }
    candidates = sorted(
        (_candidate(name, table, ratios, over[name]) for name in names), key=lambda one: one.mean
    )
    made = Recommendation(
        workloads=tuple(workloads),
        margin=margin,
        system=system,
        candidates=tuple(candidates),
        best=_best(candidates, margin)[0],
        without=tuple(_without(candidates, workloads, margin)),
        measured_by=_measured_by(lines[workload] for workload in workloads),
        avoid=tuple(one.version for one in reversed(candidates) if one.dominated_by),
        incomplete=_incomplete(table, names),
        answer="",
    )
    return made.model_copy(update={"answer": _answer(made)})


def _best(
    candidates: Sequence[KernelCandidate], margin: float, left_out: str = ""
) -> tuple[tuple[str, ...], float]:
    """Those that no other dominates, with a geometric mean within the margin of the smallest, and that."""
    means = {
        one.version: _mean(regret.ratio for regret in one.regrets if regret.workload != left_out)
        for one in candidates
        if not one.dominated_by
    }
    least = min(means.values())
    ordered = sorted(means, key=lambda version: means[version])
    return tuple(one for one in ordered if means[one] <= least * (1 + margin)), least


def _without(
    candidates: Sequence[KernelCandidate], workloads: Sequence[str], margin: float
) -> Iterator[WithoutOne]:
    """A summary that hangs on one workload is told by leaving each out in turn."""
    for workload in workloads if len(workloads) > 1 else ():
        best, mean = _best(candidates, margin, workload)
        yield WithoutOne(workload=workload, best=best, mean=mean)


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


# Which of several treatments to prefer over several workloads, without one averaged number.
#
# For each workload the regret of a treatment is its ratio to the best one (Savage, JASA 46, 1951), as a
# factor of at least 1. Treatments are ranked by their worst regret (minimax): a gain in one workload does
# not pay for a loss in another, since only the user knows how much each of them runs. One treatment
# dominates another where it is worse in no workload, and better in one at least; better and worse mean what
# they mean in `ktrial.stats.verdict_rules`: beyond the margin, and beyond the spread over perturbations.


@dataclass(frozen=True)
class RegretRatio:
    """A value over the best one, turned so that more is worse."""

    ratio: float
    low: float
    high: float


def _candidate(
    name: str, table: _Table, ratios: Mapping[str, Mapping[str, RegretRatio]], over: tuple[str, ...]
) -> KernelCandidate:
    its = tuple(
        Regret(
            workload=workload,
            value=points[name].value or 0.0,
            ratio=ratios[workload][name].ratio,
            low=ratios[workload][name].low,
            high=ratios[workload][name].high,
        )
        for workload, points in table.items()
    )
    worst = max(its, key=lambda one: one.ratio)
    release = next(iter(table.values()))[name].release
    return KernelCandidate(
        version=name,
        release=release,
        regrets=its,
        mean=_mean(one.ratio for one in its),
        worst=worst.ratio,
        worst_workload=worst.workload,
        dominated_by=over,
    )


def _incomplete(table: _Table, names: list[str]) -> dict[str, tuple[str, ...]]:
    every = dict.fromkeys(name for points in table.values() for name in points)
    return {
        name: tuple(workload for workload, points in table.items() if name not in points)
        for name in every
        if name not in names
    }


def _answer(made: Recommendation) -> str:
    """Which kernels, by how much, by what it is measured, and whether one workload decides it."""
    short = short_labels(made.workloads)
    first = next(one for one in made.candidates if one.version == made.best[0])
    verb = "serves" if len(made.best) == 1 else "serve"
    said = f"by {made.measured_by}, {' and '.join(made.best)} {verb} these workloads best: "
    if len(made.workloads) > 1:
        said += f"{_percent(first.mean)} behind the best kernel of each on average (geometric mean), "
    where = f" (in {short[first.worst_workload]})" if first.worst > 1 else ""
    said += f"at most {_percent(first.worst)}{where}"
    if len(made.workloads) > 1:
        said += f"; {_steadiness(made, short)}"
    if made.avoid:
        said += (
            f"; avoid {', '.join(made.avoid)}: another kernel is worse in none of them, and better in some"
        )
    if made.incomplete:
        said += f"; {len(made.incomplete)} more without numbers of some workload: nothing is said of those"
    return f"{said[0].upper()}{said[1:]}."


def _steadiness(made: Recommendation, short: Mapping[str, str]) -> str:
    """Whether the answer stays when a workload is left out: else which one decides."""
    others = [one for one in made.without if made.best[0] not in one.best]
    if not others:
        return "so it stays whichever workload is left out"
    told = ", ".join(f"without {short[one.workload]} it is {' and '.join(one.best)}" for one in others)
    return f"one workload decides: {told}"


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:.3g} %"


def regrets(
    values: Mapping[str, Values], centres: Mapping[str, float], direction: Direction
) -> dict[str, RegretRatio]:
    """Treatment → its regret in one workload. `values`: by treatment, then by perturbation; above zero."""
    best = (min if direction is Direction.LOWER else max)(centres, key=lambda name: centres[name])
    return {
        name: _ratio(values[best], centres[best], values[name], centres[name], direction) for name in values
    }


def _ratio(best: Values, best_centre: float, its: Values, centre: float, direction: Direction) -> RegretRatio:
    if direction is Direction.LOWER:
        return RegretRatio(centre / best_centre, *interval(best, its))
    return RegretRatio(best_centre / centre, *interval(its, best))


def dominates(
    one: Mapping[str, Values], other: Mapping[str, Values], directions: Mapping[str, Direction], margin: float
) -> bool:
    """Whether `one` (workload → values) is nowhere worse than `other`, and somewhere better."""
    better = [_better(one[name], other[name], directions[name], margin) for name in directions]
    worse = [_better(other[name], one[name], directions[name], margin) for name in directions]
    return any(better) and not any(worse)


def _better(one: Values, other: Values, direction: Direction, margin: float) -> bool:
    less, more = (one, other) if direction is Direction.LOWER else (other, one)
    return exceeds(less, more, margin)
