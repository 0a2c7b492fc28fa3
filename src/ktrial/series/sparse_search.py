"""Long ranges: measured sparsely first, then only the stretches whose ends differ are looked into.

There is no noise, so a stretch without a difference needs no look, unless two changes in it cancel each
other: `thorough` looks into those too, but for stretches of which nothing is compiled. Each round is a whole
run over other stretches: kernels that were built and trials that were run are not done again.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from ktrial.model.patch_series import PatchSeries, SeriesPatch
from ktrial.series.result import SeriesResult
from ktrial.series.steps import Step, StepState

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
    return any(one.is_told for one in result.cells if one.number == number)


def _together(number: int, patches: Sequence[SeriesPatch]) -> SeriesPatch:
    first, last = patches[0], patches[-1]
    if len(patches) == 1:
        return last.model_copy(update={"number": number, "subject": f"[{last.number}] {last.subject}"})
    subject = f"[{first.number}–{last.number}] {len(patches)} patches, to: {last.subject}"
    files = tuple(one.patch for one in patches if one.patch is not None)
    paths = dict.fromkeys(path for one in patches for path in one.paths)
    return SeriesPatch(
        number=number,
        subject=subject,
        name=f"{Path(first.name).name}…{Path(last.name).name}",
        commit=last.commit,
        parent=first.parent,
        merge=any(one.merge for one in patches),
        files=files,
        paths=tuple(paths),
    )
