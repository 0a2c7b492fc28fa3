"""Each patch alone on the base: what it costs there, and whether that depends on the patches before it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from ktrial.experiment.host_failures import HOST_PROBLEMS
from ktrial.experiment.regression_check import FLOOR
from ktrial.kernels import Progress
from ktrial.kernels.build.errors import BadPatch, PatchNotApplied
from ktrial.kernels.errors import KernelError
from ktrial.kernels.patch_series import as_patch
from ktrial.model.kernel import Build, Kernel
from ktrial.model.patch_series import PatchSeries, SeriesPatch
from ktrial.series.building import Boots
from ktrial.series.result import SeriesCell
from ktrial.series.steps import Step, StepState

Measured = Callable[[Step], list[SeriesCell]]
"""The cells of a kernel against the base."""


@dataclass(frozen=True)
class Alone:
    """One patch without the others."""

    number: int
    why: str = ""
    """Why it cannot be measured alone, in one sentence; empty where it was."""
    cells: tuple[SeriesCell, ...] = ()
    """Against the base."""
    depends: tuple[str, ...] = ()
    """Workloads in which it costs something else than among the others."""


@dataclass(frozen=True)
class OneByOne:
    """Builds and measures each patch of a series on the base."""

    series: PatchSeries
    plain: Build
    build: Callable[[Build, Progress], Kernel]
    boots: Boots
    measured: Measured
    progress: Progress

    def of(self, steps: Iterable[Step], cells: Iterable[SeriesCell]) -> tuple[Alone, ...]:
        """Of each patch that has a kernel of its own in the series, whose cells there are `cells`."""
        among = {(one.number, one.workload): one for one in cells}
        own = (one for one in steps if one.patch is not None and one.state is StepState.BUILT)
        return tuple(self._alone(one, among) for one in own)

    def _alone(self, step: Step, among: dict[tuple[int, str], SeriesCell]) -> Alone:
        assert step.patch is not None, "the base is none of them"
        wanted = self.source(step.patch)
        try:
            kernel = self.build(wanted, self.progress)
        except HOST_PROBLEMS:
            raise
        except (PatchNotApplied, BadPatch) as error:
            return Alone(step.number, f"{StepState.NOT_APPLIED.value} alone: {error.facts['problem']}")
        except KernelError as error:
            problem = error.facts.get("problem") or error.message
            return Alone(step.number, f"{StepState.NOT_BUILT.value} alone: {problem}")
        if why := self.boots(kernel):
            return Alone(step.number, f"{StepState.NOT_BOOTED.value} alone: {why}")
        cells = self.measured(replace(step, kernel=kernel, build=wanted))
        other = tuple(
            one.workload
            for one in cells
            if (there := among.get((step.number, one.workload))) and differs(one, there)
        )
        return Alone(step.number, cells=tuple(cells), depends=other)

    def source(self, patch: SeriesPatch) -> Build:
        """The base with this patch alone."""
        if patch.patch is not None:
            added = patch.patch
        else:
            directory = Path(self.series.base.removeprefix("git:").rpartition("@")[0])
            added = as_patch(directory, patch)
        return self.plain.model_copy(update={"patches": (*self.plain.patches, added)})


def differs(alone: SeriesCell, among: SeriesCell) -> bool:
    """Whether a patch costs something else alone: by more than a change that means nothing moves a number."""
    return abs(alone.difference - among.difference) > Fraction(FLOOR) * max(alone.before, among.before)
