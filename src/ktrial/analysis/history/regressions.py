"""Regressions as things that are followed: found in histories and by checks, and known again by their id.

A change point for the worse is a regression. It is the same one as a regression that is stored where the two
are of one metric and their kernels overlap: between the kernel before it and the first kernel with it a
version may be measured later, and the regression keeps its id. A kernel has it where more than half of it is
left, on the scale of ratios, of the level between the two kernels.

What was accepted of a metric multiplies: a check of two kernels allows what was accepted between them, on top
of its limit.
"""

import getpass
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise

from ktrial.analysis.history.series import history
from ktrial.analysis.history.stored_numbers import StoredNumbers
from ktrial.model.base import digest
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.history import ChangePoint, History, Line, Point
from ktrial.model.kernel import measured_order
from ktrial.model.regression import (
    Acceptance,
    MeasuredVersion,
    Regression,
    RegressionState,
    Sighting,
    TrackedRegression,
)
from ktrial.model.regression_check import Decision
from ktrial.model.workload import EXACT_MODES, Direction
from ktrial.stats.verdict_rules import paired_ratio
from ktrial.store.store import Store

ID_DIGITS = 8
_HALF = 0.5
StoredRegressions = Sequence[tuple[int, Regression]]
"""The first study of each, and the regression."""


def all_regressions(numbers: StoredNumbers, histories: Iterable[History] = ()) -> list[TrackedRegression]:
    """Every regression in the store, the one that changed last first. Raises StoreError.

    `histories`: of all workloads, where they are at hand.
    """
    every = list(histories) or [history(numbers, label) for label in _labels(numbers)]
    return regressions(every, numbers.store.regressions())


def regressions(histories: Iterable[History], stored: StoredRegressions) -> list[TrackedRegression]:
    """Those of histories, and those that only checks have seen; the one that changed last first."""
    tracked: dict[str, TrackedRegression] = {}
    for past in histories:
        for line in past.lines:
            returns: set[MeasuredVersion] = set()
            for change in line.changes:
                if change.verdict is not Verdict.WORSE or seen(line.points[change.place]) in returns:
                    continue  # one that comes back is no second regression
                item = _tracked(line, change, stored)
                returns |= {
                    again.kernel for gone, again in pairwise(item.sightings) if again.has_it > gone.has_it
                }
                # The line with the most versions comes first: other machines tell nothing more.
                tracked.setdefault(item.regression.id, item)
    for number, regression in stored:
        of_checks = TrackedRegression(
            regression=regression, study_id=number, sightings=regression.sightings, stored=True
        )
        tracked.setdefault(regression.id, of_checks)
    return sorted(tracked.values(), key=lambda item: (item.changed, item.regression.id), reverse=True)


def _labels(numbers: StoredNumbers) -> list[str]:
    return list(dict.fromkeys(use.label for study in numbers.studies for use in study.workloads))


def _tracked(line: Line, change: ChangePoint, stored: StoredRegressions) -> TrackedRegression:
    before = _point_before(line, change)
    after = line.points[change.place]
    fresh = Regression(
        id=regression_id(line.workload, line.metric, line.mode.value, seen(before), seen(after)),
        workload=line.workload,
        metric=line.metric,
        unit=line.unit,
        direction=line.direction,
        mode=line.mode,
        since=seen(before),
        version=seen(after),
        ratio=change.ratio,
        low=change.low,
        high=change.high,
        found_by="history",
        found=_moment(after),
    )
    places = {point.digest or point.version: place for place, point in enumerate(line.points)}
    same = next(((number, old) for number, old in stored if _is_same(old, fresh, places)), None)
    number, regression = after.study_id, fresh
    if same:
        number, old = same
        fields = {"id": old.id, "found_by": old.found_by, "found": old.found, "acceptance": old.acceptance}
        regression = fresh.model_copy(update={**fields, "cause": old.cause})
    sightings = tuple(_sightings(line, change, before))
    return TrackedRegression(
        regression=regression, study_id=number, sightings=sightings, stored=same is not None
    )


def _point_before(line: Line, change: ChangePoint) -> Point:
    before = [point for point in line.points[: change.place] if point.version == change.since]
    return before[-1]


def _is_same(old: Regression, fresh: Regression, places: Mapping[str, int]) -> bool:
    """Whether a stored regression is the one that a history shows."""
    if (old.workload, old.metric, old.mode) != (fresh.workload, fresh.metric, fresh.mode):
        return False
    if old.id == fresh.id:
        return True
    ends = [places.get(kernel.digest or kernel.name) for kernel in (old.since, old.version)]
    first, last = ends
    if first is None or last is None:
        return old.version == fresh.version
    begin, end = (places[kernel.digest or kernel.name] for kernel in (fresh.since, fresh.version))
    return max(first, begin) < min(last, end)


def _sightings(line: Line, change: ChangePoint, before: Point) -> Iterable[Sighting]:
    """The first kernel with it and those after it: has the value more than half of the change?"""
    size = math.log(change.ratio) if change.ratio else None
    for point in line.points[change.place :]:
        if not point.values:
            continue
        ratio = _ratio(before, point, line)
        if size is None or not ratio:
            has_it = point is line.points[change.place]
        else:
            has_it = math.log(ratio) / size > _HALF
        yield Sighting(kernel=seen(point), ratio=ratio, has_it=has_it, at=_moment(point))


def _ratio(before: Point, point: Point, line: Line) -> float | None:
    """Paired where the two can be; else of their levels, which tells whether a change is there."""
    if line.mode in EXACT_MODES:
        return paired_ratio(before.by_perturbation, point.by_perturbation)
    return point.value / before.value if before.value and point.value else None


def seen(point: Point) -> MeasuredVersion:
    """The kernel of a point."""
    return MeasuredVersion(name=point.version, release=point.release, digest=point.digest)


def _moment(point: Point) -> datetime:
    return point.started or datetime.fromtimestamp(0, UTC)


def regression_id(
    workload: str, metric: str, mode: str, since: MeasuredVersion, version: MeasuredVersion
) -> str:
    """The id of a regression that is seen for the first time: of one metric between two kernels."""
    kernels = [kernel.digest or kernel.name for kernel in (since, version)]
    return digest([workload, metric, mode, *kernels])[:ID_DIGITS]


# What checks see.


def of_check(comparison: Comparison, since: MeasuredVersion, version: MeasuredVersion, by: str) -> Regression:
    """The regression that a check has found for the first time."""
    moment = datetime.now(UTC)
    return Regression(
        id=regression_id(comparison.workload, comparison.metric, comparison.mode.value, since, version),
        workload=comparison.workload,
        metric=comparison.metric,
        unit=comparison.unit,
        direction=comparison.direction,
        mode=comparison.mode,
        since=since,
        version=version,
        ratio=comparison.ratio,
        low=comparison.low,
        high=comparison.high,
        found_by=by,
        found=moment,
        sightings=(Sighting(kernel=version, ratio=comparison.ratio, has_it=True, at=moment),),
    )


def seen_again(
    regression: Regression,
    comparison: Comparison,
    since: MeasuredVersion,
    version: MeasuredVersion,
    *,
    has_it: bool,
) -> Regression:
    """The regression, with one more kernel. A check from the same kernel says its size anew."""
    last = regression.sightings[-1] if regression.sightings else None
    if last and (last.kernel, last.has_it) == (version, has_it):
        return regression
    sighting = Sighting(kernel=version, ratio=comparison.ratio, has_it=has_it, at=datetime.now(UTC))
    size = {"ratio": comparison.ratio, "low": comparison.low, "high": comparison.high}
    return regression.model_copy(
        update={
            "sightings": (*regression.sightings, sighting),
            **(size if has_it and _is_kernel(regression.since, since) else {}),
        }
    )


def of_same_check(
    tracked: Iterable[TrackedRegression],
    comparison: Comparison,
    since: MeasuredVersion,
    version: MeasuredVersion,
    decision: Decision,
) -> TrackedRegression | None:
    """The regression of this metric that a check of these two kernels sees: one that began with the kernel
    under test, or was seen from the same baseline. None: none is known.

    What is beyond more than was accepted is another one. A kernel that is within says only of a regression
    from the same baseline that it is gone, and only if it is no older than that.
    """
    same = [
        item
        for item in tracked
        if (item.regression.workload, item.regression.metric, item.regression.mode) == _metric(comparison)
        and not (decision is Decision.BEYOND and item.state is RegressionState.ACCEPTED)
    ]
    from_baseline = [item for item in same if _is_kernel(item.regression.since, since)]
    if decision is Decision.WITHIN:
        later = (item for item in from_baseline if _order(item.regression.version) <= _order(version))
        return next(later, None)
    begins = [item for item in same if _is_kernel(item.regression.version, version)]
    return next(iter([*begins, *from_baseline]), None)


def accepted_ratio(
    tracked: Iterable[TrackedRegression],
    comparison: Comparison,
    since: MeasuredVersion,
    version: MeasuredVersion,
) -> tuple[float, tuple[Regression, ...]]:
    """What was accepted of the metric between two kernels, as a ratio for the worse, at least 1; and the
    regressions that it is made of.

    An acceptance counts that begins with the same kernel, or lies between the two by their versions. Of two
    that overlap the larger one counts.
    """
    applying = [
        item.regression
        for item in tracked
        if item.state is RegressionState.ACCEPTED
        and (item.regression.workload, item.regression.metric, item.regression.mode) == _metric(comparison)
        and item.regression.acceptance
        and _applies(item.regression.acceptance, since, version)
    ]
    chosen: list[Regression] = []
    for regression in sorted(applying, key=_harm, reverse=True):
        if not any(_overlap(regression, other) for other in chosen):
            chosen.append(regression)
    return math.prod(map(_harm, chosen)), tuple(chosen)


def harm(ratio: float | None, direction: Direction) -> float | None:
    """The ratio for the worse: above 1 is worse, whichever direction is better."""
    if ratio is None or direction is Direction.LOWER:
        return ratio
    return 1 / ratio if ratio else math.inf


def _metric(comparison: Comparison) -> tuple[object, ...]:
    return comparison.workload, comparison.metric, comparison.mode


def _harm(regression: Regression) -> float:
    ratio = regression.acceptance.ratio if regression.acceptance else None
    return max(harm(ratio, regression.direction) or 1.0, 1.0)


def _is_kernel(first: MeasuredVersion, second: MeasuredVersion) -> bool:
    return first.digest == second.digest if first.digest and second.digest else first.name == second.name


def _applies(acceptance: Acceptance, since: MeasuredVersion, version: MeasuredVersion) -> bool:
    if _is_kernel(acceptance.since, since):
        return True
    before, begin, end, after = map(_order, (since, acceptance.since, acceptance.version, version))
    return before <= begin < end <= after


def _overlap(first: Regression, second: Regression) -> bool:
    ends = [
        (_order(item.acceptance.since), _order(item.acceptance.version))
        for item in (first, second)
        if item.acceptance
    ]
    (begin, end), (other_begin, other_end) = ends
    return max(begin, other_begin) < min(end, other_end) or begin == other_begin


def _order(kernel: MeasuredVersion) -> tuple[object, ...]:
    return measured_order(kernel.name, kernel.release)


# What people say.


def accept(store: Store, tracked: TrackedRegression, reason: str, by: str = "") -> TrackedRegression:
    """Say why a regression may stay: checks allow its size from now on. Raises StoreError.

    `by`: else this user's name.
    """
    regression = tracked.regression
    newest = [sighting.ratio for sighting in tracked.sightings if sighting.has_it]
    acceptance = Acceptance(
        reason=reason,
        by=by or user_name(),
        at=datetime.now(UTC),
        since=regression.since,
        version=regression.version,
        ratio=newest[-1] if newest and regression.found_by != "history" else regression.ratio,
    )
    return keep(store, tracked, regression.model_copy(update={"acceptance": acceptance}))


def withdraw(store: Store, tracked: TrackedRegression) -> TrackedRegression:
    """Take the acceptance back. Raises StoreError."""
    return keep(store, tracked, tracked.regression.model_copy(update={"acceptance": None}))


def keep(store: Store, tracked: TrackedRegression, regression: Regression) -> TrackedRegression:
    """Store it, so that it keeps its id. Raises StoreError."""
    store.add_regression(tracked.study_id, regression)
    return tracked.model_copy(update={"regression": regression, "stored": True})


def user_name() -> str:
    """Who calls the command; empty where the system does not know."""
    with suppress(OSError, KeyError):
        return getpass.getuser()
    return ""
