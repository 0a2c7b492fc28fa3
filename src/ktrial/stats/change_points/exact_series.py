"""Change points of a series without noise: by the margin, and by the spread over perturbations.

The rule, with the values of each version under its perturbations, and m the margin. A stretch of versions
that have one level begins with its first version. A version belongs to the stretch unless its values lie
wholly beyond those of the stretch's first version, by the rule of `ktrial.stats.exact_comparison`:
perturbation by perturbation where these move both alike, else all of the one beyond all of the other. Then
a new stretch begins, and there is a change: a `step` where the version lies so beyond the one just before
it too, else `creep`, small steps that have come to more than the margin together. One ratio outside the
margin whose interval reaches into it is no change: it may be an accident of layout.

The comparison is with the stretch's first version and not with the one before, so that a level cannot walk
off in steps below the margin.
"""

import math
import statistics
from collections.abc import Sequence

from ktrial.model.history import ChangeKind, ChangePoint
from ktrial.stats.paired_perturbations import Values, exceeds, interval


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
        if first is not None and before is not None and _beyond(points[first], values, margin):
            step = _beyond(points[before], values, margin)
            kind = ChangeKind.STEP if step else ChangeKind.CREEP
            changes.append(_change(place, kind, points[before if step else first], values))
            first = place
        first = place if first is None else first
        before = place
    return tuple(changes)


def _beyond(old: Values, new: Values, margin: float) -> bool:
    return exceeds(old, new, margin) or exceeds(new, old, margin)


def _change(place: int, kind: ChangeKind, old: Values, new: Values) -> ChangePoint:
    before, after = _mean(list(old.values())), _mean(list(new.values()))
    low, high = interval(old, new) if min(*old.values(), *new.values()) > 0 else (None, None)
    return ChangePoint(
        place=place,
        kind=kind,
        before=before,
        after=after,
        ratio=after / before if before > 0 else None,
        low=low,
        high=high,
    )


def _mean(values: Sequence[float]) -> float:
    """The geometric mean; with a value not above zero the mean. Equal values give themselves."""
    if min(values) == max(values):
        return values[0]
    usual = min(values) > 0 and all(map(math.isfinite, values))
    return statistics.geometric_mean(values) if usual else statistics.fmean(values)
