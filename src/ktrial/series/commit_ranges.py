"""Long ranges: measured sparsely first, then only the stretches whose ends differ are looked into.

There is no noise, so a stretch without a difference needs no look, unless two changes in it cancel each
other: `thorough` looks into those too, but for stretches of which nothing is compiled. Each round is a whole
run over other stretches: kernels that were built and trials that were run are not done again.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ktrial.analysis.history.answer import with_answer
from ktrial.analysis.history.change_points import ALPHA
from ktrial.analysis.history.series import HasNumbers, history, versions
from ktrial.experiment.errors import HOST_PROBLEMS
from ktrial.experiment.single_kernel import Runs
from ktrial.experiment.watch import GIT, TargetLook
from ktrial.format.sanitize import beginning
from ktrial.kernels.build.build_trees import not_for_x86
from ktrial.kernels.build.recipes import recipe_of
from ktrial.kernels.build.requests import requested
from ktrial.kernels.errors import KernelError
from ktrial.kernels.patch_series import series_in_git
from ktrial.model.history import ChangePoint, History, Line, Point
from ktrial.model.kernel import Build, PatchSeries, SeriesPatch
from ktrial.model.series_result import SeriesResult, Step, StepState
from ktrial.model.study import Measurement
from ktrial.series.errors import SeriesError
from ktrial.series.run import SeriesRun

Ends = tuple[int, ...]
"""The number of the last patch of each stretch."""


def every(series: PatchSeries, step: int) -> Ends:
    """The ends of stretches of so many patches; the last one may be shorter."""
    count = len(series.patches)
    return tuple(dict.fromkeys([*range(step, count + 1, step), count]))


def in_stretches(series: PatchSeries, ends: Ends) -> PatchSeries:
    """The series with each stretch as one patch, numbered anew."""
    starts = (0, *ends[:-1])
    patches = tuple(
        _together(place, series.patches[start:end])
        for place, (start, end) in enumerate(zip(starts, ends, strict=True), start=1)
    )
    return series.model_copy(update={"patches": patches})


def refined(ends: Ends, result: SeriesResult, *, thorough: bool = False) -> Ends:
    """With every stretch of several patches halved in which something changed or broke; else the same.

    `thorough`: those too in which nothing did, where something of them is compiled.
    """
    starts = (0, *ends[:-1])
    halves = [
        (start + end) // 2
        for step, start, end in zip(result.steps[1:], starts, ends, strict=True)
        if end - start > 1 and _is_looked_into(result, step, thorough)
    ]
    return tuple(sorted({*ends, *halves}))


def run_sparsely(
    series: PatchSeries,
    step: int,
    run: Callable[[PatchSeries], SeriesResult],
    tell: Callable[[str], None],
    *,
    thorough: bool = False,
) -> SeriesResult:
    """Run it in stretches of `step` patches, and refine until each change is one patch's; with `thorough`,
    until each patch is measured that compiles anything. Raises as `run`.
    """
    ends = every(series, step)
    while True:
        tell(f"{len(series.patches)} patches in {len(ends)} stretches")
        result = run(in_stretches(series, ends))
        finer = refined(ends, result, thorough=thorough)
        if finer == ends:
            return result
        ends = finer


def _is_looked_into(result: SeriesResult, step: Step, thorough: bool) -> bool:
    if thorough:
        return step.state is not StepState.NOT_COMPILED
    return step.state.is_broken or _is_changed(result, step.number)


def _is_changed(result: SeriesResult, number: int) -> bool:
    return any(cell.is_told for cell in result.cells if cell.number == number)


def _together(number: int, patches: Sequence[SeriesPatch]) -> SeriesPatch:
    first, last = patches[0], patches[-1]
    if len(patches) == 1:
        return last.model_copy(update={"number": number, "subject": f"[{last.number}] {last.subject}"})
    subject = f"[{first.number}–{last.number}] {len(patches)} patches, to: {last.subject}"
    files = tuple(patch.patch for patch in patches if patch.patch is not None)
    paths = dict.fromkeys(path for patch in patches for path in patch.paths)
    return SeriesPatch(
        number=number,
        subject=subject,
        name=f"{Path(first.name).name}…{Path(last.name).name}",
        commit=last.commit,
        parent=first.parent,
        merge=any(patch.merge for patch in patches),
        files=files,
        paths=tuple(paths),
    )


# What of a branch that is followed made a difference: the commits between two looks, as a long range.
#
# The two ends are in the store already, so that a change costs the kernels of a bisection, and no change
# none.

_COMMIT = re.compile(r"^build:[^@]*@([0-9a-f]{40,64})@")


@dataclass(frozen=True)
class CommitsBetween:
    """What the commits between two looks at a branch cost."""

    command: str
    """What repeats it."""
    result: SeriesResult | None = None
    problem: str = ""
    """Why there is no result, in one sentence."""


def commits_between(
    look: TargetLook,
    measurement: Measurement,
    limits: Mapping[str, float],
    runs: Runs,
    tell: Callable[[str], None],
) -> CommitsBetween | None:
    """Find the commits of a branch that made the difference of a look.

    None where there is none, or where it is no branch. Raises host problems, and what `session.run` raises.
    """
    ends = [_COMMIT.match(name) for name in look.kernels or ()]
    if not look.kernels or not look.target.startswith(GIT) or not look.is_changed or not all(ends):
        return None
    directory = Path(look.target.removeprefix(GIT).rpartition("@")[0])
    text = "..".join(end[1][:12] for end in ends if end)
    names = ",".join(use.label for use in measurement.workloads)
    command = f"ktrial series {text} --git {directory} --workload '{names}'"
    try:
        series = series_in_git(directory, text)
        step = max(2, len(series.patches))
        recipe = recipe_of(look.kernels[0])  # the look's own: the ends are there already
        plain = recipe.build if recipe else requested(series.base, directory=Path.cwd())
        series_run = SeriesRun(series, plain, measurement, runs, tell, limits=lambda _uses: limits)
        result = run_sparsely(
            series, step, lambda stretches: replace(series_run, series=stretches).run(), tell
        )
        return CommitsBetween(f"{command} --every {step}", result)
    except HOST_PROBLEMS:
        raise
    except KernelError as error:
        return CommitsBetween(command, problem=error.problem or error.message)
    except SeriesError as error:
        return CommitsBetween(command, problem=error.message)


# A workload's history over the commits of a range: what `series` and `watch` measured of them, in order.
#
# A point is a commit whose kernel was measured, with the configuration that is asked for. Where commits
# before it were not, it stands for all of them, and its name says how many they are; those that no build
# for x86 reads are not counted.

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
    with_number = {numbers[point.version] for line in of_kernels.lines for point in line.points}
    of_commits = of_kernels.model_copy(update={"lines": lines, "missing": ()})
    return CommitHistory(
        with_answer(of_commits, metric),
        len(series.patches) + 1,
        len(with_number),
    )


def numbers_of(series: PatchSeries, plain: Build, names: Iterable[str]) -> dict[str, int]:
    """Kernel → number of the commit that it was built of, 0 for the base, in that order; one for a commit."""
    numbers = {series.source(plain, number).name: number for number in range(len(series.patches) + 1)}
    commits = {_commit(series, number): number for number in range(len(series.patches) + 1)}
    by_number: dict[int, str] = {}
    for name in names:
        if name in numbers:
            by_number[numbers[name]] = name
        elif (number := _built_otherwise(name, commits, plain)) is not None:
            by_number.setdefault(number, name)
    return {by_number[number]: number for number in sorted(by_number)}


def _built_otherwise(name: str, commits: Mapping[str, int], plain: Build) -> int | None:
    """The number of a commit that was built without some before it, or whose options are counted as new
    from another one; None where the kernel is none of them.
    """
    match = re.search(r"@([0-9a-f]{40,64})[+@]", name)
    number = commits.get(match[1]) if match else None
    recipe = recipe_of(name) if number is not None else None
    if recipe is None:
        return None
    first = len(plain.patches)
    added = recipe.build.patches[first:]
    undone = all(_UNDOING.fullmatch(patch.path.rpartition("/")[2]) for patch in added)
    alike = {"source": plain.source, "patches": recipe.build.patches[:first], "since": plain.since}
    return number if undone and recipe.build.model_copy(update=alike).key == plain.key else None


def _named(line: Line, series: PatchSeries, numbers: Mapping[str, int]) -> Line:
    """With what people call commits in place of kernels' names, and what looks between two of them."""
    places = [numbers[point.version] for point in line.points]
    begins = (None, *places)
    names = {
        point.version: _name(series, before, number)
        for point, before, number in zip(line.points, begins, places, strict=False)
    }
    points = tuple(_renamed(point, names) for point in line.points)
    changes = tuple(_explained(change, line.workload, series, numbers, names) for change in line.changes)
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
    subject = beginning(series.patches[number - 1].subject, _SUBJECT)
    count = len(_compiled(series, before, number)) if before is not None else 1
    return f"{short} {subject}" + (f" [{count} commits]" if count > 1 else "")


def _compiled(series: PatchSeries, first: int, last: int) -> list[int]:
    """The commits behind the one up to the other that may change a kernel for x86."""
    return [patch.number for patch in series.patches[first:last] if not not_for_x86(patch.paths)]


def _commit(series: PatchSeries, number: int) -> str:
    return series.patches[number - 1].commit if number else series.base.rpartition("@")[2]
