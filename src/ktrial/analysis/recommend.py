"""Which of the measured kernels serve some workloads best, and which to avoid: from the store alone."""

from collections.abc import Collection, Mapping, Sequence

from ktrial.analysis.errors import NothingToRecommend
from ktrial.analysis.history.series import history, stored_trials
from ktrial.analysis.store_queries import labels_of
from ktrial.model.history import Line, Point, SystemIdentity
from ktrial.model.recommendation import Candidate, Recommendation, Regret
from ktrial.model.workload import short_labels
from ktrial.stats.minimax_regret import RegretRatio, dominates, regrets
from ktrial.store import Store

_Table = dict[str, dict[str, Point]]
"""Workload → version → its point."""


def recommend(
    store: Store, workloads: Sequence[str], margin: float | None = None, *, optional: Collection[str] = ()
) -> Recommendation:
    """From the machine and the settings with the most kernels that have all workloads; of those that are
    `optional`, only what was measured at all.

    Raises NothingToRecommend where fewer than two kernels have a number above zero in each of them.
    """
    stored = stored_trials(store)
    studies = [one.stored.study for one in stored]
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
        raise NothingToRecommend(store=store.name, problem=problem, workloads=",".join(workloads))
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
        (_candidate(name, table, ratios, over[name]) for name in names), key=lambda one: one.worst
    )
    free = [one for one in candidates if not one.dominated_by]
    best = tuple(one.version for one in free if one.worst <= free[0].worst * (1 + margin))
    avoid = tuple(one.version for one in reversed(candidates) if one.dominated_by)
    return Recommendation(
        workloads=tuple(workloads),
        margin=margin,
        system=system,
        candidates=tuple(candidates),
        best=best,
        avoid=avoid,
        incomplete=_incomplete(table, names),
        answer=_answer(candidates, best, avoid, short_labels(workloads)),
    )


def _candidate(
    name: str, table: _Table, ratios: Mapping[str, Mapping[str, RegretRatio]], over: tuple[str, ...]
) -> Candidate:
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
    return Candidate(
        version=name,
        release=release,
        regrets=its,
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


def _answer(
    candidates: Sequence[Candidate], best: tuple[str, ...], avoid: tuple[str, ...], short: Mapping[str, str]
) -> str:
    first = next(one for one in candidates if one.version == best[0])
    loss = f"{(first.worst - 1) * 100:.3g} %"
    names = " and ".join(best)
    verb = "serves" if len(best) == 1 else "serve"
    where = f" (in {short[first.worst_workload]})" if first.worst > 1 else ""
    said = f"{names} {verb} these workloads best: at most {loss} behind the best kernel of each{where}"
    if avoid:
        said += f"; avoid {', '.join(avoid)}: another kernel is worse in none of them, and better in some"
    return f"{said}."
