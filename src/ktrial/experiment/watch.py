"""Follow kernels: what is new since last time is fetched or built, run, and compared with what was there.

A target is a kernel that a provider has, or the tip of a git branch, which is built where it is new.
What was there is in the store: each look at a target is a study `watch:TARGET` of one kernel, told from
others by the kernel's content.
"""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ktrial.analysis.comparability import machine_difference, mode_difference
from ktrial.analysis.errors import NothingToWatch
from ktrial.analysis.result import load_record
from ktrial.experiment.regression_check import (
    DEFAULT_LIMIT,
    accepted_in,
    explained,
    rows_of,
    with_accepted,
    worst,
)
from ktrial.experiment.single_kernel import Runs, failed, is_complete, measure, problem_of
from ktrial.kernels import Progress, kernel_registry
from ktrial.kernels.build.builds import build
from ktrial.kernels.build.recipes import recipe_of
from ktrial.kernels.build.requests import requested
from ktrial.kernels.errors import KernelError
from ktrial.model.comparison import Verdict
from ktrial.model.kernel import Kernel
from ktrial.model.regression import MeasuredVersion
from ktrial.model.regression_check import Decision, RegressionCheck
from ktrial.model.study import Measurement, StudyRecord
from ktrial.store.store import Store
from ktrial.text_lines import lines_of

WATCH = "watch"
"""The command that makes studies for itself, each a kernel that a history shows."""
PREFIX = "watch:"
"""What a target's studies are called, before the target; a study file cannot choose such a name."""
GIT = "git:"
QUESTION = "What does this kernel cost, as it is followed?"

_SAME = frozenset({Verdict.EQUIVALENT, Verdict.IDENTICAL})

Obtain = Callable[[str, Progress], Kernel]
"""The newest kernel of a target. Raises KernelError."""


class News(StrEnum):
    """What a look at a target found."""

    FIRST = "first"
    """It was never looked at: there is nothing to compare with."""
    UNCHANGED = "unchanged"
    NEW = "new"
    NOT_HAD = "not-had"
    """It could not be fetched or built."""


@dataclass(frozen=True)
class TargetLook:
    """What came of one look at one target."""

    target: str
    news: News
    kernel: str = ""
    """The kernel's release, with its digest's start."""
    before: str = ""
    """The same of the kernel that it is compared with."""
    check: RegressionCheck | None = None
    """The comparison; None where there is nothing new."""
    problem: str = ""
    """Why there is no comparison, in one sentence."""
    kernels: tuple[str, str] | None = None
    """The names of the two that were compared, the one before first."""

    @property
    def is_changed(self) -> bool:
        """Whether any metric is not what it was: better, worse, or nobody knows."""
        rows = self.check.rows if self.check else ()
        return any(row.comparison.verdict not in _SAME for row in rows)

    @property
    def decision(self) -> Decision:
        """What the look says about the kernel: within where nothing is new."""
        if self.check:
            return self.check.decision
        return Decision.NOT_RUN if self.news is News.NOT_HAD else Decision.WITHIN


def look(
    target: str,
    measurement: Measurement,
    limits: Mapping[str, float],
    runs: Runs,
    obtain: Obtain | None = None,
) -> TargetLook:
    """Fetch or build the newest kernel of the target, measure it where it is new, and compare.

    `target`: a kernel's name (`debian:6.12`), or `git:DIRECTORY@BRANCH`. A kernel that cannot be had is told
    in the look. Raises what `session.run` raises, and NothingToWatch.
    """
    earlier = _looks(runs.store, target, measurement)
    progress = runs.observer.progress_of(target)
    try:
        kernel = obtain(target, progress) if obtain else newest(target, progress, _since(earlier))
    except KernelError as error:
        return TargetLook(target, News.NOT_HAD, problem=error.message)
    if earlier and _content(earlier[-1]) == kernel.digest:
        return TargetLook(target, News.UNCHANGED, _shown(earlier[-1]))
    different = [record for record in earlier if _content(record) != kernel.digest]
    latest = measure(PREFIX + target, QUESTION, kernel, measurement, runs, WATCH)
    if not different:
        return TargetLook(target, News.FIRST, _shown(latest))
    before = different[-1]
    check, problem = _compared(kernel, before, latest, measurement, limits, runs)
    names = (before.trials[0].provenance.kernel, kernel.name)
    return TargetLook(target, News.NEW, _shown(latest), _shown(before), check, problem, names)


def newest(target: str, progress: Progress, since: str | None = None) -> Kernel:
    """The newest kernel of a target, fetched or built now. `since`: see `branch_kernel`.

    Raises KernelError, NothingToWatch.
    """
    if not target.startswith(GIT):
        return kernel_registry.add(target, progress=progress, refresh=True)
    directory, _, branch = target.removeprefix(GIT).rpartition("@")
    if not directory or not branch:
        raise NothingToWatch(what=target, problem="a branch is named git:DIRECTORY@BRANCH")
    return branch_kernel(Path(directory), branch, progress, since)


def _looks(store: Store, target: str, measurement: Measurement) -> list[StudyRecord]:
    """Earlier looks that are whole, oldest first: by when they ended, since a kernel may come back."""
    records = [
        load_record(store, stored.id)
        for stored in store.studies()
        if (study := stored.study).name == PREFIX + target
        and Measurement(study.workloads, study.machine, study.perturbations) == measurement
        and is_complete(stored)
    ]
    return sorted(records, key=lambda record: max(trial.started for trial in record.trials))


def _since(earlier: Sequence[StudyRecord]) -> str | None:
    """The commit that new options of the last look's kernel are counted from: the next look's, too.

    Else an option would go off again with the release after the commit that brought it.
    """
    recipe = recipe_of(earlier[-1].trials[0].provenance.kernel) if earlier else None
    return recipe.build.since if recipe else None


def _content(record: StudyRecord) -> str:
    return record.trials[0].provenance.kernel_digest


def _shown(record: StudyRecord) -> str:
    provenance = record.trials[0].provenance if record.trials else None
    if provenance is None:
        return ""
    return f"{provenance.kernel_release or provenance.kernel} ({provenance.kernel_digest[:12]})"


def _compared(
    kernel: Kernel,
    before: StudyRecord,
    latest: StudyRecord,
    measurement: Measurement,
    limits: Mapping[str, float],
    runs: Runs,
) -> tuple[RegressionCheck | None, str]:
    """The check, or why there is none."""
    labels = (f"before: {_shown(before)}", f"now: {_shown(latest)}")
    about = (kernel.name, kernel.release, labels[0])
    if problem := problem_of(latest):
        console = failed(latest)[0].console
        return RegressionCheck(*about, Decision.NOT_RUN, problem=problem, console=console), ""
    modes = {
        sample.mode for record in (before, latest) for trial in record.trials for sample in trial.samples
    }
    if problem := machine_difference(before.trials, latest.trials) or mode_difference(modes):
        return None, f"{problem}; the next one is compared with this"
    rows = [
        row
        for use in measurement.workloads
        for row in rows_of(use, limits.get(use.label, DEFAULT_LIMIT), labels, before, latest)
    ]
    kernels = (_version(before), _version(latest))
    accepted = accepted_in(runs.store, rows)
    rows = [with_accepted(row, accepted, *kernels) for row in rows]
    explained_rows = tuple(explained(row, before, latest, runs.store) for row in rows)
    decision = worst(row.decision for row in rows)
    return RegressionCheck(*about, decision, explained_rows, kernels=kernels, study_id=latest.id), ""


def _version(record: StudyRecord) -> MeasuredVersion:
    provenance = record.trials[0].provenance
    return MeasuredVersion(
        name=provenance.kernel, release=provenance.kernel_release, digest=provenance.kernel_digest
    )


_SECONDS = 1800.0


def branch_kernel(directory: Path, branch: str, progress: Progress, since: str | None = None) -> Kernel:
    """Fetch what the tree's remotes have, and build the branch's commit with the configuration `guest`.

    `branch`: what git resolves (`master`, `origin/linux-6.12.y`). `since`: the commit beyond which options
    are new (`Build.since`); None: the release that the branch stands on.
    Raises NothingToWatch, BuildError, and KernelError where the remotes do not answer, which may be better
    tomorrow.
    """
    source = f"git:{directory}@{branch}"
    if _git(directory, source, "remote"):
        progress("fetching what is new")
        try:
            _git(directory, source, "fetch", "--quiet", "--all")
        except NothingToWatch as error:
            raise KernelError(name=source, problem=f"git fetch: {error.facts['problem']}") from error
    commit = _git(directory, source, "rev-parse", "--verify", "--quiet", f"{branch}^{{commit}}")
    if not commit:
        raise NothingToWatch(what=source, problem=f"git knows no {branch}")
    spec = requested(f"git:{directory.absolute()}@{commit}", directory=Path.cwd())
    return build(spec if since is None else spec.model_copy(update={"since": since}), progress)


def _git(directory: Path, source: str, *arguments: str) -> str:
    try:
        git = subprocess.run(
            ["git", "-C", str(directory), *arguments],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NothingToWatch(what=source, problem=str(error)) from error
    if git.returncode and git.stderr.strip():
        raise NothingToWatch(what=source, problem=lines_of(git.stderr.strip())[-1])
    return git.stdout.strip()
