"""A workload's history over the commits of a range: what `series` and `watch` measured of them, in order.

A point is a commit whose kernel was measured, with the configuration that is asked for. Where commits before
it were not, it stands for all of them, and its name says how many they are; those that no build for x86
reads are not counted.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ktrial.analysis.history.series import HasNumbers, history, versions
from ktrial.format.sanitize import shortened
from ktrial.kernels.build import recipe_of
from ktrial.kernels.build.compiled_paths import not_for_x86
from ktrial.model.history import ChangePoint, History, Line, Point
from ktrial.model.kernel import Build
from ktrial.model.patch_series import PatchSeries
from ktrial.stats.change_points import ALPHA

_SHORT = 12
_SUBJECT = 48
_UNDOING = re.compile(r"\d{4}-undo-.*\.patch")
"""What `series` adds where it leaves out a commit before: the kernel is still this commit's."""


@dataclass(frozen=True)
class CommitHistory:
    """A history whose versions are commits."""

    history: History
    commits: int
    """Of the range, with its base."""
    measured: int
    """Of them those that have a number."""


def commit_history(
    studies: HasNumbers,
    workload: str,
    series: PatchSeries,
    plain: Build,
    *,
    metric: str | None = None,
    margin: float | None = None,
    alpha: float = ALPHA,
) -> CommitHistory:
    """The workload's history over the range. `plain`: how its base is built, which all were built like."""
    numbers = numbers_of(series, plain, versions(studies, workload))
    of_kernels = history(studies, workload, metric=metric, kernels=numbers, margin=margin, alpha=alpha)
    lines = tuple(_named(line, series, numbers) for line in of_kernels.lines)
    with_number = {numbers[one.version] for line in of_kernels.lines for one in line.points}
    return CommitHistory(
        of_kernels.model_copy(update={"lines": lines, "missing": ()}),
        len(series.patches) + 1,
        len(with_number),
    )


def numbers_of(series: PatchSeries, plain: Build, names: Iterable[str]) -> dict[str, int]:
    """Kernel → number of the commit that it was built of, 0 for the base, in that order; one for a commit."""
    known = {series.source(plain, number).name: number for number in range(len(series.patches) + 1)}
    commits = {one.commit: one.number for one in series.patches}
    by_number: dict[int, str] = {}
    for name in names:
        if name in known:
            by_number[known[name]] = name
        elif (number := _without_others(name, commits, plain)) is not None:
            by_number.setdefault(number, name)
    return {by_number[number]: number for number in sorted(by_number)}


def _without_others(name: str, commits: Mapping[str, int], plain: Build) -> int | None:
    """The number of a commit that was built without some before it; None where the kernel is none of them."""
    match = re.search(r"@([0-9a-f]{40,64})\+", name)
    number = commits.get(match[1]) if match else None
    recipe = recipe_of(name) if number is not None else None
    if recipe is None:
        return None
    first = len(plain.patches)
    added = recipe.build.patches[first:]
    alike = recipe.build.model_copy(update={"source": plain.source, "patches": recipe.build.patches[:first]})
    undone = all(_UNDOING.fullmatch(one.path.rpartition("/")[2]) for one in added)
    return number if undone and alike.key == plain.key else None


def _named(line: Line, series: PatchSeries, numbers: Mapping[str, int]) -> Line:
    """With what people call commits in place of kernels' names, and what looks between two of them."""
    places = [numbers[one.version] for one in line.points]
    begins = (None, *places)
    names = {
        point.version: _name(series, before, number)
        for point, before, number in zip(line.points, begins, places, strict=False)
    }
    points = tuple(_renamed(one, names) for one in line.points)
    changes = tuple(_explained(one, line.workload, series, numbers, names) for one in line.changes)
    return line.model_copy(update={"points": points, "changes": changes})


def _renamed(point: Point, names: Mapping[str, str]) -> Point:
    return point.model_copy(update={"version": names[point.version]})


def _explained(
    change: ChangePoint,
    workload: str,
    series: PatchSeries,
    numbers: Mapping[str, int],
    names: Mapping[str, str],
) -> ChangePoint:
    first, last = numbers[change.since], numbers[change.version]
    many = len(_compiled(series, first, last)) > 1
    directory = series.base.removeprefix("git:").rpartition("@")[0]
    ends = "..".join(_commit(series, number)[:_SHORT] for number in (first, last))
    every = f" --every {max(2, last - first)}" if many else ""
    why = f"ktrial series {ends} --git {directory} --workload '{workload}'{every}"
    return change.model_copy(
        update={"since": names[change.since], "version": names[change.version], "why": why}
    )


def _name(series: PatchSeries, before: int | None, number: int) -> str:
    """`0123456789ab mm: slub: count`, and of how many commits it is the last."""
    short = _commit(series, number)[:_SHORT]
    if number == 0:
        return f"{short} (base)"
    subject = shortened(series.patches[number - 1].subject, _SUBJECT)
    count = len(_compiled(series, before, number)) if before is not None else 1
    return f"{short} {subject}" + (f" [{count} commits]" if count > 1 else "")


def _compiled(series: PatchSeries, first: int, last: int) -> list[int]:
    """The commits behind the one up to the other that may change a kernel for x86."""
    return [one.number for one in series.patches[first:last] if not not_for_x86(one.paths)]


def _commit(series: PatchSeries, number: int) -> str:
    return series.patches[number - 1].commit if number else series.base.rpartition("@")[2]
