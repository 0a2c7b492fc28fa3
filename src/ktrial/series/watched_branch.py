"""What of a branch that is followed made a difference: the commits between two looks, as a long range.

The two ends are in the store already, so that a change costs the kernels of a bisection, and no change none.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ktrial.errors import KtrialError
from ktrial.experiment.host_failures import HOST_PROBLEMS
from ktrial.experiment.single_kernel import Measurement, Runs
from ktrial.experiment.watch import GIT, TargetLook
from ktrial.kernels.build import requested
from ktrial.kernels.errors import KernelError
from ktrial.kernels.patch_series import series_in_git
from ktrial.model.patch_series import PatchSeries
from ktrial.series.errors import SeriesError
from ktrial.series.result import SeriesResult
from ktrial.series.run import SeriesRun
from ktrial.series.sparse_search import run_sparsely

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
    look: TargetLook, how: Measurement, limits: Mapping[str, float], runs: Runs, tell: Callable[[str], None]
) -> CommitsBetween | None:
    """Find the commits of a branch that made the difference of a look.

    None where there is none, or where it is no branch. Raises host problems, and what `session.run` raises.
    """
    ends = [_COMMIT.match(name) for name in look.kernels or ()]
    if not look.target.startswith(GIT) or not look.is_changed or not ends or not all(ends):
        return None
    directory = Path(look.target.removeprefix(GIT).rpartition("@")[0])
    text = "..".join(one[1][:12] for one in ends if one)
    names = ",".join(use.label for use in how.workloads)
    command = f"ktrial series {text} --git {directory} --workload '{names}'"
    try:
        series = series_in_git(directory, text)
        step = max(2, len(series.patches))
        result = _measured(series, step, how, limits, runs, tell)
        return CommitsBetween(f"{command} --every {step}", result)
    except HOST_PROBLEMS:
        raise
    except (KernelError, SeriesError) as error:
        return CommitsBetween(command, problem=_why(error))


def _measured(
    series: PatchSeries,
    step: int,
    how: Measurement,
    limits: Mapping[str, float],
    runs: Runs,
    tell: Callable[[str], None],
) -> SeriesResult:
    plain = requested(series.base, directory=Path.cwd())
    asked = SeriesRun(series, plain, how, runs, tell, limits=lambda _uses: limits)
    return run_sparsely(series, step, lambda one: replace(asked, series=one).run(), tell)


def _why(error: KtrialError) -> str:
    problem = error.facts.get("problem")
    return problem if isinstance(problem, str) and problem else error.message
