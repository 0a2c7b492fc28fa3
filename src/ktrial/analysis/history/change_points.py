"""Where the lines of a history change, and which way.

Exact lines have no noise: a change is beyond the margin, and beyond the spread over perturbations. The rule,
with the values of each version under its perturbations, and m the margin. A stretch of versions that have one
level begins with its first version. A version belongs to the stretch unless its values lie wholly beyond
those of the stretch's first version, by the rule of `ktrial.stats.verdict_rules`: perturbation by
perturbation where these move both alike, else all of the one beyond all of the other. Then a new stretch
begins, and there is a change: a `step` where the version lies so beyond the one just before it too, else
`creep`, small steps that have come to more than the margin together. One ratio outside the margin whose
interval reaches into it is no change: it may be an accident of layout.

The comparison is with the stretch's first version and not with the one before, so that a level cannot walk
off in steps below the margin.

Lines in real time change in shifts that noise does not explain (`ktrial.stats.change_points`), judged
together.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from ktrial.analysis.history.stored_numbers import is_plain
from ktrial.model.comparison import Verdict
from ktrial.model.history import ChangeKind, ChangePoint, Line, Point
from ktrial.model.workload import EXACT_MODES, Direction, Mode
from ktrial.stats.verdict_rules import Values, exceeds, mean_value, paired_ratio, shown_interval

if TYPE_CHECKING:
    from ktrial.stats.change_points import Shift

ALPHA = 0.05
"""The chance that a series without any change shows one."""
_LEAST_POINTS = 16
"""Versions from which on a timed line's own levels are the series; of fewer, its trials."""


def with_changes(lines: Sequence[Line], margin: float, alpha: float) -> tuple[Line, ...]:
    """The lines with their changes. Timed lines are judged together: one rate of false alarms for all."""
    timed = {place: line for place, line in enumerate(lines) if line.mode not in EXACT_MODES}
    shifted = _shifts_of(timed, alpha) if timed else {}

    def changes(place: int, line: Line) -> tuple[ChangePoint, ...]:
        if place in shifted:
            return shifted[place]
        return steps([point.by_perturbation for point in line.points], margin)

    return tuple(
        line.model_copy(
            update={
                "changes": tuple(_described(changes(place, line), line)),
                "wanders": place in timed and _wanders(line),
            }
        )
        for place, line in enumerate(lines)
    )


def _described(changes: Sequence[ChangePoint], line: Line) -> Iterator[ChangePoint]:
    """With the versions on the two sides, the verdict, and where the reason is to be found."""
    begin = 0
    for change in changes:
        first = begin if change.kind is ChangeKind.CREEP else change.place - 1
        # A version without numbers has the level of the one before it.
        while first > 0 and not line.points[first].values and change.kind is not ChangeKind.CREEP:
            first -= 1
        before = line.points[first]
        after = line.points[change.place]
        worse = (change.after > change.before) == (line.direction is Direction.LOWER)
        ratio = paired(before, after, line.mode) if change.kind is ChangeKind.SHIFT else change.ratio
        yield change.model_copy(
            update={
                "ratio": change.ratio if ratio is None else ratio,
                "is_paired": change.ratio is None or ratio is not None,
                "since": before.version,
                "version": after.version,
                "verdict": Verdict.WORSE if worse else Verdict.BETTER,
                "why": _why(line, before, after),
            }
        )
        begin = change.place


def _why(line: Line, before: Point, after: Point) -> str:
    if line.mode is not Mode.EXACT_PLUGIN:
        return ""
    if before.study_id == after.study_id:
        ends = ["--from", before.treatment, "--to", after.treatment]
        return shlex.join(["ktrial", "explain", str(after.study_id), "--workload", line.workload, *ends])
    if line.workload.endswith(")") or not is_plain(line.system.settings):
        return ""  # `explain --kernel` counts a workload as it is by default, on a machine that nobody set
    return shlex.join(["ktrial", "explain", before.version, after.version, line.workload])


def paired(before: Point, after: Point, mode: Mode) -> float | None:
    """The value of `after` by that of `before`, in one line: as a study of the two has it.

    None where the two cannot be paired: in real time only blocks of one study are common to them.
    """
    if mode in EXACT_MODES:
        return paired_ratio(before.by_perturbation, after.by_perturbation)
    if before.study_id != after.study_id:
        return None
    old, new = before.by_perturbation, after.by_perturbation
    common = [block for block in old if block in new]
    # What is exact needs no numpy.
    from ktrial.stats.sequential.typical_block import typical_ratio

    return typical_ratio([old[block] for block in common], [new[block] for block in common])


def steps(points: Sequence[Values], margin: float) -> tuple[ChangePoint, ...]:
    """The changes of a series, in order; `points` has each version's values by perturbation.

    A version without values belongs to the stretch that it stands in. Zero and anything above it lie beyond
    every margin of each other.
    """
    changes: list[ChangePoint] = []
    first: int | None = None
    before: int | None = None
    for place, values in enumerate(points):
        if not values:
            continue
        if first is not None and before is not None and _are_apart(points[first], values, margin):
            step = _are_apart(points[before], values, margin)
            kind = ChangeKind.STEP if step else ChangeKind.CREEP
            changes.append(_change(place, kind, points[before if step else first], values))
            first = place
        first = place if first is None else first
        before = place
    return tuple(changes)


def _are_apart(old: Values, new: Values, margin: float) -> bool:
    return exceeds(old, new, margin) or exceeds(new, old, margin)


def _change(place: int, kind: ChangeKind, old: Values, new: Values) -> ChangePoint:
    before, after = mean_value(old), mean_value(new)
    low, high = shown_interval(old, new)
    return ChangePoint(
        place=place,
        kind=kind,
        before=before,
        after=after,
        ratio=paired_ratio(old, new),
        low=low,
        high=high,
    )


def _shifts_of(timed: Mapping[int, Line], alpha: float) -> dict[int, tuple[ChangePoint, ...]]:
    """The changes of each line: one rate of false alarms, alpha, for all of them."""
    # What is exact needs no numpy, which takes a fifth of the time in which `ktrial history` starts.
    from ktrial.stats.change_points import shifts_of_all

    named = {str(place): line for place, line in timed.items()}
    many = {name: line for name, line in named.items() if len(line.points) >= _LEAST_POINTS}
    few = {name: line for name, line in named.items() if name not in many}
    share = alpha * len(many) / len(named)
    levels = {name: _levels(line) for name, line in many.items()}
    many_shifts = shifts_of_all(levels, alpha=share)
    # The trials of few versions: blocks, randomly ordered in time, so that their noise has no memory.
    by_trial = {name: _trials(line.points) for name, line in few.items()}
    few_shifts = shifts_of_all(
        {name: values for name, (values, _) in by_trial.items()},
        alpha=alpha - share if many else alpha,
        autocorrelated=False,
    )
    moved = {name: _at_versions(few_shifts[name], by_trial[name][1]) for name in few}
    return {int(name): _as_changes(shifts, named[name]) for name, shifts in (many_shifts | moved).items()}


def _levels(line: Line) -> list[float]:
    return [_log(median(point.values)) for point in line.points if point.values]


def _wanders(line: Line) -> bool:
    from ktrial.stats.change_points import wanders

    return len(line.points) >= _LEAST_POINTS and wanders(_levels(line))


def _log(value: float) -> float:
    """Ranks are the same, and steps add up as ratios do."""
    import numpy as np

    return float(np.log(value)) if value > 0 else value


def _trials(points: Sequence[Point]) -> tuple[list[float], list[int]]:
    """Every trial's value, by version, without what its block had in common; and each one's version."""
    import numpy as np

    logs = [np.array([_log(value) for value in point.values]) for point in points]
    blocked = len({point.study_id for point in points}) == 1 and len({len(log) for log in logs}) == 1
    if blocked and logs:
        of_block = np.mean(logs, axis=0)
        logs = [log - of_block for log in logs]
    places = [place for place, log in enumerate(logs) for _ in log]
    return [float(value) for log in logs for value in log], places


def _at_versions(shifts: Sequence["Shift"], versions: Sequence[int]) -> tuple["Shift", ...]:
    """A change among trials, moved to the version that begins nearest to it."""
    begins = [place for place, version in enumerate(versions) if place and version != versions[place - 1]]
    moved: dict[int, Shift] = {}
    for shift in shifts:
        nearest = min(begins, key=lambda begin: abs(begin - shift.place), default=None)
        if nearest is not None:
            moved[versions[nearest]] = replace(shift, place=versions[nearest])
    return tuple(moved[place] for place in sorted(moved))


def _as_changes(shifts: Sequence["Shift"], line: Line) -> tuple[ChangePoint, ...]:
    """Each with the median levels of the versions between its two neighbours."""
    import numpy as np

    edges = [0, *(shift.place for shift in shifts), len(line.points)]
    levels = [
        float(np.median([median(point.values) for point in line.points[first:last] if point.values]))
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
