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

from ktrial.analysis.comparability import failures, machine_difference, mode_difference
from ktrial.analysis.errors import NothingToWatch
from ktrial.analysis.result import record
from ktrial.experiment.regression_check import (
    DEFAULT_LIMIT,
    Baseline,
    Decision,
    RegressionCheck,
    explained,
    rows_of,
    worst,
)
from ktrial.experiment.single_kernel import Measurement, Runs, failed, measure
from ktrial.kernels import Progress, kernel_registry
from ktrial.kernels.build.builds import build
from ktrial.kernels.build.requests import requested
from ktrial.kernels.errors import KernelError
from ktrial.model.comparison import Verdict
from ktrial.model.kernel import Kernel
from ktrial.model.study import StudyRecord, plan
from ktrial.store.store import Store
from ktrial.store.study_rows import StoredStudy

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
        return any(one.comparison.verdict not in _SAME for one in rows)

    @property
    def decision(self) -> Decision:
        """What the look says about the kernel: within where nothing is new."""
        if self.check:
            return self.check.decision
        return Decision.NOT_RUN if self.news is News.NOT_HAD else Decision.WITHIN


def look(
    target: str, how: Measurement, limits: Mapping[str, float], runs: Runs, obtain: Obtain | None = None
) -> TargetLook:
    """Fetch or build the newest kernel of the target, measure it where it is new, and compare.

    `target`: a kernel's name (`debian:6.12`), or `git:DIRECTORY@BRANCH`. A kernel that cannot be had is told
    in the look. Raises what `session.run` raises, and NothingToWatch.
    """

    def tell(what: str, done: int = 0, total: int = 0) -> None:
        runs.observer.kernel_progress(target, what, done, total)

    try:
        kernel = (obtain or newest)(target, tell)
    except KernelError as error:
        return TargetLook(target, News.NOT_HAD, problem=error.message)
    known = _looks(runs.store, target, how)
    if known and _content(known[-1]) == kernel.digest:
        return TargetLook(target, News.UNCHANGED, _shown(known[-1]))
    others = [one for one in known if _content(one) != kernel.digest]
    now = measure(PREFIX + target, QUESTION, kernel, how, runs)
    if not others:
        return TargetLook(target, News.FIRST, _shown(now))
    before = others[-1]
    check, problem = _compared(kernel, before, now, how, limits, runs)
    names = (before.trials[0].provenance.kernel, kernel.name)
    return TargetLook(target, News.NEW, _shown(now), _shown(before), check, problem, names)


def newest(target: str, progress: Progress) -> Kernel:
    """The newest kernel of a target, fetched or built now. Raises KernelError, NothingToWatch."""
    if not target.startswith(GIT):
        return kernel_registry.add(target, progress=progress, refresh=True)
    directory, _, branch = target.removeprefix(GIT).rpartition("@")
    if not directory or not branch:
        raise NothingToWatch(what=target, problem="a branch is named git:DIRECTORY@BRANCH")
    return branch_kernel(Path(directory), branch, progress)


def _looks(store: Store, target: str, how: Measurement) -> list[StudyRecord]:
    """Earlier looks that are whole, oldest first: by when they ended, since a kernel may come back."""
    known = [one for one in store.studies() if one.study.name == PREFIX + target and _is_like(one, how)]
    records = [record(store, one.id) for one in known]
    return sorted(records, key=lambda one: max(trial.started for trial in one.trials))


def _is_like(stored: StoredStudy, how: Measurement) -> bool:
    study = stored.study
    same = (study.workloads, study.machine, study.perturbations) == (
        how.workloads,
        how.settings,
        how.perturbations,
    )
    return same and not stored.failed and stored.finished == len(plan(study).trials)


def _content(one: StudyRecord) -> str:
    return one.trials[0].provenance.kernel_digest


def _shown(one: StudyRecord) -> str:
    provenance = one.trials[0].provenance if one.trials else None
    if provenance is None:
        return ""
    return f"{provenance.kernel_release or provenance.kernel} ({provenance.kernel_digest[:12]})"


def _compared(
    kernel: Kernel,
    before: StudyRecord,
    now: StudyRecord,
    how: Measurement,
    limits: Mapping[str, float],
    runs: Runs,
) -> tuple[RegressionCheck | None, str]:
    """The check, or why there is none."""
    labels = (f"before: {_shown(before)}", f"now: {_shown(now)}")
    about = (kernel.name, kernel.release, labels[0])
    if wrong := failed(now):
        problem = failures(wrong, now.planned)
        return RegressionCheck(*about, Decision.NOT_RUN, problem=problem, console=wrong[0].console), ""
    if problem := _incomparable(before, now):
        return None, f"{problem}; the next one is compared with this"
    rows = [
        row
        for use in how.workloads
        for row in rows_of(use, limits.get(use.label, DEFAULT_LIMIT), labels, before, now)
    ]
    baseline = Baseline(labels[0], False, before)
    told = tuple(explained(row, baseline, now, runs.store) for row in rows)
    return RegressionCheck(*about, worst(row.decision for row in told), told), ""


def _incomparable(before: StudyRecord, now: StudyRecord) -> str:
    modes = [{sample.mode for trial in one.trials for sample in trial.samples} for one in (before, now)]
    return machine_difference(before.trials, now.trials) or mode_difference(modes[0] | modes[1])


def worst_of(looks: Sequence[TargetLook]) -> Decision:
    """What all looks make together: beyond, then what could not be run or decided, else within."""
    decisions = {one.decision for one in looks}
    for decision in (Decision.BEYOND, Decision.NOT_RUN, Decision.UNDECIDED):
        if decision in decisions:
            return decision
    return Decision.WITHIN


_SECONDS = 1800.0


def branch_kernel(directory: Path, branch: str, progress: Progress) -> Kernel:
    """Fetch what the tree's remotes have, and build the branch's commit with the configuration `guest`.

    `branch`: what git resolves (`master`, `origin/linux-6.12.y`). Raises NothingToWatch, BuildError, and
    KernelError where the remotes do not answer, which may be better tomorrow.
    """
    what = f"git:{directory}@{branch}"
    if _git(directory, what, "remote"):
        progress("fetching what is new")
        _fetch(directory, what)
    commit = _git(directory, what, "rev-parse", "--verify", "--quiet", f"{branch}^{{commit}}")
    if not commit:
        raise NothingToWatch(what=what, problem=f"git knows no {branch}")
    return build(requested(f"git:{directory.absolute()}@{commit}", directory=Path.cwd()), progress)


def _fetch(directory: Path, what: str) -> None:
    try:
        _git(directory, what, "fetch", "--quiet", "--all")
    except NothingToWatch as error:
        raise KernelError(name=what, problem=f"git fetch: {error.facts['problem']}") from error


def _git(directory: Path, what: str, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NothingToWatch(what=what, problem=str(error)) from error
    if done.returncode and done.stderr.strip():
        raise NothingToWatch(what=what, problem=done.stderr.strip().splitlines()[-1])
    return done.stdout.strip()
