"""Where lines in real time change: shifts that noise does not explain, judged together."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from ktrial.model.history import ChangeKind, ChangePoint, Line, Point
from ktrial.stats.change_points.seeded_segmentation import Shift, shifts_of_all

_LEAST_POINTS = 16


def changes_of_all(timed: Mapping[int, Line], alpha: float) -> dict[int, tuple[ChangePoint, ...]]:
    """The changes of each line: one rate of false alarms, alpha, for all of them."""
    named = {str(place): line for place, line in timed.items()}
    many = {name: line for name, line in named.items() if len(line.points) >= _LEAST_POINTS}
    few = {name: line for name, line in named.items() if name not in many}
    share = alpha * len(many) / len(named) if named else alpha
    many_shifts = shifts_of_all({name: _levels(line) for name, line in many.items()}, alpha=share)
    # The trials of few versions: blocks, randomly ordered in time, so that their noise has no memory.
    by_trial = {name: _trials(line.points) for name, line in few.items()}
    few_shifts = shifts_of_all(
        {name: values for name, (values, _) in by_trial.items()},
        alpha=alpha - share if many else alpha,
        autocorrelated=False,
    )
    moved = {name: _at_versions(few_shifts[name], by_trial[name][1]) for name in few}
    return {int(name): _shifts(shifts, named[name]) for name, shifts in (many_shifts | moved).items()}


def _levels(line: Line) -> list[float]:
    return [_log(point.value) for point in line.points if point.value is not None]


def _log(value: float) -> float:
    """Ranks are the same, and steps add up as ratios do."""
    return float(np.log(value)) if value > 0 else value


def _trials(points: Sequence[Point]) -> tuple[list[float], list[int]]:
    """Every trial's value, by version, without what its block had in common; and each one's version."""
    logs = [np.array([_log(value) for value in point.values]) for point in points]
    blocked = len({point.study_id for point in points}) == 1 and len({len(one) for one in logs}) == 1
    if blocked and logs:
        of_block = np.mean(logs, axis=0)
        logs = [one - of_block for one in logs]
    places = [place for place, one in enumerate(logs) for _ in one]
    return [float(value) for one in logs for value in one], places


def _at_versions(shifts: Sequence[Shift], versions: Sequence[int]) -> tuple[Shift, ...]:
    """A change among trials, moved to the version that begins nearest to it."""
    begins = [place for place, version in enumerate(versions) if place and version != versions[place - 1]]
    moved: dict[int, Shift] = {}
    for shift in shifts:
        nearest = min(begins, key=lambda begin: abs(begin - shift.place), default=None)
        if nearest is not None:
            moved[versions[nearest]] = Shift(versions[nearest], shift.p, shift.before, shift.after)
    return tuple(moved[place] for place in sorted(moved))


def _shifts(shifts: Sequence[Shift], line: Line) -> tuple[ChangePoint, ...]:
    """Each with the median levels of the versions between its two neighbours."""
    edges = [0, *(shift.place for shift in shifts), len(line.points)]
    levels = [
        float(np.median([point.value for point in line.points[first:last] if point.value is not None]))
        for first, last in pairwise(edges)
    ]
    return tuple(
        ChangePoint(
            place=shift.place,
            kind=ChangeKind.SHIFT,
            before=old,
            after=new,
            ratio=new / old if old > 0 else None,
            p=shift.p,
        )
        for shift, (old, new) in zip(shifts, pairwise(levels), strict=True)
    )
