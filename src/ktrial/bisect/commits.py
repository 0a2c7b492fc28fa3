"""Which commits make a difference, measured: by taking each back on the newer side, or on the way between.

First the commits that touch most are taken back, one at a time, in the kernel that has all of them: a few
builds, and the answer is a commit's share. Where those leave much of the difference, the range is searched
from end to end, by the commits that change a file in which a ranked function is.
"""

import resource
from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from ktrial.bisect.builds import built
from ktrial.bisect.decision import Answer, BisectionMetric, ExactJudge, LimitReached, Memory, Numbers
from ktrial.bisect.errors import BadBisection
from ktrial.bisect.measurement import Laboratory, Setup, TrialOracle, targets_of
from ktrial.bisect.versions import ChainSearch
from ktrial.errors import Interrupted
from ktrial.experiment.resources import Builder
from ktrial.experiment.single_kernel import Runs
from ktrial.kernels import Progress, silent
from ktrial.kernels.build.build_trees import not_for_x86
from ktrial.kernels.commits import NotTakenBack, taken_back
from ktrial.kernels.errors import BadPatch, KernelUsageError, PatchNotApplied
from ktrial.kernels.patch_series import series_in_git
from ktrial.model.bisection import INTERRUPTED
from ktrial.model.commits import CommitList, CommitProof, MeasuredCommit, MeasuredHow, RankedCommit
from ktrial.model.kernel import Build, PatchSeries, SeriesPatch
from ktrial.model.study import Measurement

TAKEN_BACK = 3
"""Commits that are taken back before the range is searched."""
_LITTLE = 0.05
"""Of the difference: where so little is left, nothing more is looked for."""
_MUCH = 0.2
"""Of the difference: what is left, and is worth a search of the range."""
_MARGIN = 0.25
"""Of what is left: a step of the range that is looked for has so much, or more."""
_NO_BUDGET = "the budget is used up"
_NO_STEP = "no single step of the range makes a quarter of what is left, beyond the spread of perturbations"
_BUILT_UPON = "later commits build upon it: it does not come off alone"


@dataclass(frozen=True)
class TreeKernel:
    """A kernel of the tree: after so many steps of the range, without some commits."""

    steps: int
    without: frozenset[str] = frozenset()


@dataclass
class CommitGround:
    """Kernels of a range of commits."""

    commits: CommitList
    plain: Build
    """Of the range's first end."""
    builder: Builder
    progress: Progress = silent
    compiled: int = 0
    series: PatchSeries | None = None
    """The steps along first parents; None where they do not lead from one end to the other."""
    walk_problem: str = ""
    """Why there is no series."""

    def __post_init__(self) -> None:
        if not self.commits.is_line:
            self.walk_problem = "the two ends lie on branches that part: there are no steps between them"
            return
        try:
            self.series = series_in_git(self.directory, f"{self.commits.before}..{self.commits.after}")
        except KernelUsageError as error:
            self.walk_problem = f"the range has no steps that lead from end to end: {error.problem}"

    @property
    def directory(self) -> Path:
        """The tree."""
        return Path(self.commits.directory)

    @property
    def last(self) -> int:
        """The step of the newer end."""
        return len(self.series.patches) if self.series else 1

    @property
    def ends(self) -> tuple[TreeKernel, TreeKernel]:
        """The kernels of both ends."""
        return TreeKernel(0), TreeKernel(self.last)

    def without(self, commits: Collection[str]) -> TreeKernel:
        """The newer end without these."""
        return TreeKernel(self.last, frozenset(commits))

    def setup(self, candidate: TreeKernel) -> Setup:
        """See Ground."""
        kernel, compiled = built(self.builder, self.build_of(candidate), self.progress)
        self.compiled += compiled
        return Setup(kernel)

    def build_of(self, candidate: TreeKernel) -> Build:
        """How the kernel is built. Raises SourceUnusable, NotTakenBack."""
        if not candidate.steps:
            return self.plain
        if self.series:
            build = self.series.source(self.plain, candidate.steps)
        else:
            tree, _, base = self.plain.source.rpartition("@")
            since = self.plain.since or base
            build = self.plain.model_copy(update={"source": f"{tree}@{self.commits.after}", "since": since})
        if not candidate.without:
            return build
        # What came last is taken out first: nothing that came later lies over it then.
        rows = [row for row in self.commits.ranked if row.commit in candidate.without]
        steps = [_as_step(row) for row in sorted(rows, key=lambda row: row.place, reverse=True)]
        undo = taken_back(self.directory, self.commits.after, steps)
        return build.model_copy(update={"patches": (*build.patches, *undo), "series": build.domain})

    def refusal(self, candidate: TreeKernel) -> str:
        """Why the commits do not come off; empty where they do. Raises KernelError."""
        try:
            self.builder.applies(self.build_of(candidate), self.progress)
        except (NotTakenBack, PatchNotApplied):
            return _BUILT_UPON
        except BadPatch as error:
            return error.problem
        return ""

    def label(self, candidate: TreeKernel) -> str:
        """See Ground."""
        names = [row for row in self.commits.ranked if row.commit in candidate.without]
        if names:
            return f"without {', '.join(f'{row.short} {row.subject}' for row in names)}"
        if candidate in self.ends:
            ends = self.commits.range.split("..")
            return ends[0] if candidate == self.ends[0] else ends[-1]
        step = self.step(candidate.steps)
        return f"{candidate.steps}/{self.last}: {step.commit[:12]} {step.subject}"

    def step(self, number: int) -> SeriesPatch:
        """The commit that the step ends with."""
        assert self.series is not None, "only a series has steps"
        return self.series.patches[number - 1]

    def telling_steps(self, first: int, last: int, files: Set[str] | None = None) -> list[int]:
        """Steps behind the first up to the last that x86 may compile, and that change one of the files."""
        chosen = []
        for number in range(first + 1, last + 1):
            paths = self.step(number).paths
            if not not_for_x86(paths) and (files is None or any(path in files for path in paths)):
                chosen.append(number)
        return chosen


def _as_step(row: RankedCommit) -> SeriesPatch:
    return SeriesPatch(
        number=row.place, subject=row.subject, name=row.short, commit=row.commit, parent=row.parent
    )


@dataclass(frozen=True)
class _Rungs:
    """Some steps of the range, counted anew from 0."""

    memory: Memory[TreeKernel]
    steps: Sequence[int]

    def measure(self, candidate: int) -> Numbers | None:
        """See Oracle."""
        return self.memory.measure(TreeKernel(self.steps[candidate]))


@dataclass
class CommitSearch:
    """Measures commits until the difference is explained."""

    ground: CommitGround
    measurement: Measurement
    """With the one workload."""
    runs: Runs
    chosen: tuple[str, ...] = ()
    """Whole names of the commits that are taken back; empty: those that touch most, and then a search."""
    budget: float | None = None
    """CPU seconds, without the compiler's, after which nothing new is begun."""
    tell: Callable[[str], None] = lambda _text: None
    on_interruption: Callable[[CommitProof], None] = lambda _proof: None
    """Told what is known when it is interrupted."""
    notes: tuple[str, ...] = ()
    _measured: list[MeasuredCommit] = field(default_factory=list)
    _together: float | None = None
    _stopped: str = ""

    def __post_init__(self) -> None:
        self._begun = _cpu_seconds()
        laboratory = Laboratory(self.measurement, self.runs)
        self._oracle: TrialOracle[TreeKernel] = TrialOracle(self.ground, laboratory, self.tell)
        self._memory: Memory[TreeKernel] = Memory(self)

    def measure(self, candidate: TreeKernel) -> Numbers | None:
        """See Oracle. Raises LimitReached where the budget is used up."""
        used = _cpu_seconds() - self._begun
        if self.budget is not None and used >= self.budget and candidate not in self.ground.ends:
            raise LimitReached
        return self._oracle.measure(candidate)

    def run(self) -> CommitProof:
        """Measure the ends, take back, search. Raises BisectError, and what trials raise."""
        for end in self.ground.ends:
            self._memory.measure(end)
            self._oracle.end(end)
        target = targets_of(self._oracle.records[self.ground.ends[0]])[0]
        self._check_differ(target)
        try:
            self._take_back(target)
            if not self.chosen:
                self._search(target)
            self._measure_together(target)
        except LimitReached:
            self._stopped = self._stopped or _NO_BUDGET
        except (KeyboardInterrupt, Interrupted):
            self._stopped = INTERRUPTED
            self.on_interruption(self._proof(target))
            raise
        return self._proof(target)

    def _check_differ(self, target: BisectionMetric) -> None:
        """Raise BadBisection where the tree's kernels do not show the difference."""
        if not any(self._effects(target, self.ground.ends[0])):
            raise BadBisection(
                f"The kernels of {self.ground.commits.range} do not differ in {target.label}: no commit "
                "makes the difference.",
                hint="it comes from the configuration, the compiler or patches on top: leave --commits out",
            )

    def _take_back(self, target: BisectionMetric) -> None:
        for row in self._candidates():
            candidate = self.ground.without({row.commit})
            problem = self.ground.refusal(candidate)
            effects: tuple[float, ...] = ()
            if not problem:
                self._memory.measure(candidate)
                effects = self._effects(target, candidate)
                problem = self._oracle.problems.get(candidate, "")
            self._measured.append(
                MeasuredCommit(
                    commit=row.commit,
                    subject=row.subject,
                    how=MeasuredHow.TAKEN_BACK,
                    effects=effects,
                    problem=problem,
                )
            )
            if not self.chosen and abs(self._left(target)) <= _LITTLE * abs(self._difference(target)):
                return

    def _candidates(self) -> list[RankedCommit]:
        ranked = self.ground.commits.ranked
        if self.chosen:
            return [row for row in ranked if row.commit in self.chosen]
        return [row for row in ranked if row.share][:TAKEN_BACK]

    def _search(self, target: BisectionMetric) -> None:
        """Search the range for what is left, where that is much."""
        left = abs(self._left(target))
        if left <= _MUCH * abs(self._difference(target)):
            return
        ground = self.ground
        if ground.series is None:
            self._stopped = ground.walk_problem
            return
        margin = _MARGIN * left / max(self._value(target, ground.ends[0]), 1.0)
        files = {path for row in ground.commits.ranked for path in row.files}
        steps = sorted({0, *ground.telling_steps(0, ground.last, files), ground.last})
        self.tell(f"searching {len(steps) - 1} of {ground.last} steps")
        changes = self._changes(steps, target, margin)
        self._stopped = self._stopped or ("" if changes else _NO_STEP)
        for first, last in changes:
            for before, after in self._narrowed(first, last, target, margin):
                self._add_step(before, after, target)

    def _changes(self, steps: Sequence[int], target: BisectionMetric, margin: float) -> list[tuple[int, int]]:
        """Neighbours among these steps between which the numbers change."""
        search = ChainSearch(len(steps) - 1, ExactJudge(target, _Rungs(self._memory, steps), margin))
        search.run()
        if search.stopped:
            self._stopped = _NO_BUDGET
        return [(steps[change.before], steps[change.after]) for change in search.changes]

    def _narrowed(
        self, first: int, last: int, target: BisectionMetric, margin: float
    ) -> list[tuple[int, int]]:
        """The same, down to steps that follow each other; what is not compiled stands for nothing."""
        between = self.ground.telling_steps(first, last - 1)
        if not between:
            return [(last - 1, last)]
        judge = ExactJudge(target, self._memory, margin)
        answer = judge.differ(TreeKernel(first), TreeKernel(between[-1]))
        if answer is Answer.NO:
            return [(last - 1, last)]
        smaller = self._changes([first, *between, last], target, margin)
        return smaller or [(first, last)]

    def _add_step(self, before: int, after: int, target: BisectionMetric) -> None:
        step = self.ground.step(after)
        if any(row.commit == step.commit and row.effects for row in self._measured):
            return
        # Nothing of what lies between was compiled, or it could not be measured.
        measured_before = before
        while TreeKernel(measured_before) not in self._oracle.records and measured_before:
            measured_before -= 1
        effects = self._effects(target, TreeKernel(measured_before), TreeKernel(after))
        self._measured.append(
            MeasuredCommit(
                commit=step.commit,
                subject=step.subject,
                how=MeasuredHow.STEP,
                effects=effects,
                also=after - before - 1,
                merge=step.merge,
            )
        )

    def _measure_together(self, target: BisectionMetric) -> None:
        """All causes that were taken back, at once."""
        causes = [row for row in self._causes(target) if row.how is MeasuredHow.TAKEN_BACK]
        if len(causes) < 2 or len(causes) < len(self._causes(target)):
            return
        candidate = self.ground.without({row.commit for row in causes})
        if not self.ground.refusal(candidate):
            self._memory.measure(candidate)
            if effects := self._effects(target, candidate):
                self._together = _mean(effects)

    def _causes(self, target: BisectionMetric) -> tuple[MeasuredCommit, ...]:
        return self._proof(target).causes

    def _left(self, target: BisectionMetric) -> float:
        return self._proof(target).unexplained

    def _difference(self, target: BisectionMetric) -> float:
        return self._value(target, self.ground.ends[1]) - self._value(target, self.ground.ends[0])

    def _value(self, target: BisectionMetric, candidate: TreeKernel) -> float:
        return _mean(tuple(self._numbers(target, candidate).values()))

    def _numbers(self, target: BisectionMetric, candidate: TreeKernel) -> dict[int, float]:
        numbers = self._memory.numbers.get(candidate)
        return dict(numbers.get(target, {})) if numbers else {}

    def _effects(
        self, target: BisectionMetric, without: TreeKernel, whole: TreeKernel | None = None
    ) -> tuple[float, ...]:
        """What the second has beyond the first, under each perturbation of both."""
        less = self._numbers(target, without)
        more = self._numbers(target, whole or self.ground.ends[1])
        return tuple(more[number] - less[number] for number in sorted(less.keys() & more.keys()))

    def _proof(self, target: BisectionMetric) -> CommitProof:
        commits = self.ground.commits
        begin, end = commits.range.split("..", 1)
        rows = sorted(self._measured, key=lambda row: -abs(row.effect or 0.0))
        return CommitProof(
            workload=target.workload,
            before=begin,
            after=end,
            value_before=self._value(target, self.ground.ends[0]),
            value_after=self._value(target, self.ground.ends[1]),
            measured=tuple(rows),
            together=self._together,
            kernels=len(self._memory.numbers),
            builds=self.ground.compiled,
            seconds=_cpu_seconds() - self._begun,
            stopped=self._stopped,
            notes=self.notes,
        )


def most_kernels(ground: CommitGround) -> tuple[int, int]:
    """How many kernels are measured at most: before the range is searched, and then for one step of it."""
    reverts = min(TAKEN_BACK, sum(row.share > 0 for row in ground.commits.ranked))
    if ground.series is None:
        return 2 + reverts, 0
    files = {path for row in ground.commits.ranked for path in row.files}
    steps = len(ground.telling_steps(0, ground.last, files)) + 1
    return 2 + reverts, (steps - 1).bit_length() + 1


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
