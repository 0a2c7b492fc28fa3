"""Which of many things move a count: all taken back together, then halves of what moves it, down to one.

As group testing has it (R. Dorfman, The Detection of Defective Members of Large Populations, Annals of
Mathematical Statistics 14, 1943; by halves: F. K. Hwang, Journal of the American Statistical Association 67,
1972). Trials are of the first perturbation. What the second half adds to the first is what the whole has
beyond it, so that one half of two is run.

Which settings a kernel does not take is asked before: all are written in one guest, without the workload.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ktrial.analysis.attribution.target import AttributionQuestion
from ktrial.errors import KtrialError
from ktrial.experiment.jobs import jobs_of, obtained
from ktrial.experiment.profile import own_results
from ktrial.experiment.proof_cost import cost_of
from ktrial.experiment.proof_runs import Runs
from ktrial.experiment.proof_study import (
    BOOT_CONTROL,
    Reverting,
    boots_of_their_own,
    proof_study,
    treatment_of,
)
from ktrial.experiment.resources import Resources
from ktrial.experiment.settings import SettingRefused, TreatmentSetting, read_back
from ktrial.kernels import silent
from ktrial.machines import Machine
from ktrial.model.proof import (
    Candidate,
    CandidateGroup,
    CauseKind,
    Cost,
    GroupKind,
    ProofSide,
    Status,
    Tried,
    Untried,
)
from ktrial.studyfile.references import resolved
from ktrial.target import StepResult

LEAST = 3
"""So many candidates, and they are tried in groups."""
LEAST_SHARE = 0.01
"""Of the difference: what has less together is not divided up."""
NO_ROOM = "--budget has no room for it"
_WRITTEN = (CauseKind.SETTING, CauseKind.FEATURE)
"""Kinds that are written into a system that runs."""


@dataclass(frozen=True)
class ScreenedPart:
    """Several things on one side, or a single one, and what they move the count by."""

    row: Reverting
    effect: float | None
    """None: they could not be run together."""
    least: float
    """An effect up to here is none."""
    control: float = 0.0

    @property
    def moves(self) -> bool:
        """Whether something of it has to be looked for."""
        return self.effect is None or abs(self.effect) > self.least

    @property
    def is_one(self) -> bool:
        """Whether nothing is left to divide."""
        return len(self.row.changed) == 1

    def group(self, kind: GroupKind, effect: float | None = None) -> CandidateGroup:
        """It, as the proof keeps it."""
        told = self.effect if effect is None else effect
        names = tuple(one.name for one in self.row.changed)
        return CandidateGroup(
            kind=kind, names=names, side=self.row.side, effect=told or 0.0, control=self.control
        )


@dataclass
class Screening:
    """What is known so far of the candidates."""

    runs: Runs
    difference: float
    """Under the first perturbation."""
    refused: list[Tried] = field(default_factory=list)
    whole: list[ScreenedPart] = field(default_factory=list)
    """Each group as it was before it was divided."""
    open: list[ScreenedPart] = field(default_factory=list)
    still: list[ScreenedPart] = field(default_factory=list)
    found: list[Reverting] = field(default_factory=list)
    """Single things that have to be measured."""
    left_out: list[Untried] = field(default_factory=list)

    def run(self, candidates: Sequence[Candidate]) -> None:
        """Divide until each part moves nothing or is a single thing, or the budget is used up."""
        self.found += [Reverting(one.sides[0], (one,)) for one in candidates if one.kind is CauseKind.LEVEL]
        self._begin(self._affordable(self._taken(candidates)))
        while self.open and self.has_room(cost_of(self.runs, [_halves(one.row)[0] for one in self.open], 1)):
            self._divide()

    def has_room(self, cost: Cost) -> bool:
        """Whether the budget has room for it, after all that was used."""
        budget = self.runs.how.budget
        return budget is None or self.runs.used.seconds + cost.seconds <= budget

    def leave_out(self, row: Reverting) -> None:
        """As there is no room."""
        self.left_out += [Untried(name=one.name, reason=NO_ROOM) for one in row.changed]

    @property
    def groups(self) -> tuple[CandidateGroup, ...]:
        """What was found of several at once."""
        still = (part.group(GroupKind.NOTHING) for part in self.still)
        return (*still, *(part.group(GroupKind.OPEN) for part in self.open))

    @property
    def grouped(self) -> tuple[Tried, ...]:
        """Those that were taken back with others only."""
        return tuple(
            Tried(candidate=one, side=part.row.side, status=Status.GROUPED, reason=_beside(part))
            for part in self.still
            for one in part.row.changed
        )

    def only_together(self, tried: Iterable[Tried]) -> tuple[CandidateGroup, ...]:
        """Of each group that was divided: what it has beyond all that its members have alone."""
        alone = {one.candidate.name: one.effects[0] for one in tried if one.effects}
        groups = []
        for whole in self.whole:
            names = {one.name for one in whole.row.changed}
            open_ = sum(len(part.row.changed) for part in self.open if _is_of(part, whole))
            divided = [name for name in names if name in alone]
            if whole.effect is None or open_ or not divided:
                continue
            rest = sum(part.effect or 0.0 for part in self.still if _is_of(part, whole))
            beyond = whole.effect - rest - sum(alone[name] for name in divided)
            if abs(beyond) > 2 * whole.least:
                groups.append(whole.group(GroupKind.ONLY_TOGETHER, beyond))
        return tuple(groups)

    def _taken(self, candidates: Sequence[Candidate]) -> list[Reverting]:
        """The groups: what a kernel takes, each on its first side where it is taken."""
        rest = [one for one in candidates if one.kind is not CauseKind.LEVEL]
        reasons: dict[str, list[str]] = {}
        placed: dict[tuple[ProofSide, int], list[Candidate]] = {}
        for side in (ProofSide.TO, ProofSide.FROM):
            mine = [one for one in rest if one.value_on(side) is not None]
            answers = _refusals(self.runs.asked, side, mine, self.runs.machine, self.runs.how.sources)
            for one in mine:
                if one.name in answers:
                    reasons.setdefault(one.name, []).append(answers[one.name])
                else:
                    placed.setdefault((side, _kind(one)), []).append(one)
            rest = [one for one in rest if one not in mine or one.name in answers]
        self.refused += [
            Tried(
                candidate=one,
                side=one.sides[-1],
                status=Status.REFUSED,
                reason="; the other way round: ".join(reasons[one.name]),
            )
            for one in rest
        ]
        return [Reverting(side, tuple(members)) for (side, _), members in sorted(placed.items())]

    def _begin(self, rows: Sequence[Reverting]) -> None:
        controls = [_unchanged(row) for row in rows]
        counted = self._effects([*rows, *controls])
        for row, control in zip(rows, controls, strict=True):
            moved = abs(counted[control] or 0.0)
            least = max(moved, LEAST_SHARE * abs(self.difference))
            part = ScreenedPart(row, counted[row], least, moved)
            self.whole.append(part)
            self._sort([part])

    def _divide(self) -> None:
        parts, self.open = self.open, []
        halves = [_halves(part.row) for part in parts]
        unknown = [second for part, (_, second) in zip(parts, halves, strict=True) if part.effect is None]
        try:
            counted = self._effects([*(first for first, _ in halves), *unknown])
        except BaseException:
            self.open = parts
            raise
        for part, (first, second) in zip(parts, halves, strict=True):
            own = counted[first]
            rest = None if part.effect is None or own is None else part.effect - own
            rest = counted.get(second, rest)
            self._sort([replace(part, row=first, effect=own), replace(part, row=second, effect=rest)])

    def _sort(self, parts: Iterable[ScreenedPart]) -> None:
        for part in parts:
            if not part.moves:
                self.still.append(part)
            elif part.is_one:
                self.found.append(part.row)
            else:
                self.open.append(part)

    def _effects(self, rows: Sequence[Reverting]) -> dict[Reverting, float | None]:
        """Under the first perturbation; None where it failed."""
        if not rows:
            return {}
        counted = self.runs.run(rows, 1)
        return {row: next(iter(counted.effect(row)), None) for row in rows}

    def _affordable(self, rows: Iterable[Reverting]) -> list[Reverting]:
        chosen: list[Reverting] = []
        for row in rows:
            if self.has_room(cost_of(self.runs, [*chosen, row], 1)):
                chosen.append(row)
            else:
                self.leave_out(row)
        return chosen


def expected(candidates: Sequence[Candidate]) -> list[Reverting]:
    """Rows like those of a screening in which two of the largest group move the count."""
    grouped: dict[tuple[ProofSide, int], list[Candidate]] = {}
    for one in candidates:
        if one.kind is not CauseKind.LEVEL:
            grouped.setdefault((one.sides[0], _kind(one)), []).append(one)
    rows = [Reverting(side, tuple(members)) for (side, _), members in grouped.items()]
    largest = max(rows, key=lambda row: len(row.changed), default=None)
    rounds = math.ceil(math.log2(len(largest.changed))) if largest else 0
    return [*rows, *([largest] * 2 * rounds if largest else [])]


def _kind(one: Candidate) -> int:
    """What is taken back together: what is written, what is given at boot, what is built."""
    return 0 if one.kind in _WRITTEN else 2 if one.kind is CauseKind.OPTION else 1


def _halves(row: Reverting) -> tuple[Reverting, Reverting]:
    """The likelier half first."""
    middle = (len(row.changed) + 1) // 2
    return Reverting(row.side, row.changed[:middle]), Reverting(row.side, row.changed[middle:])


def _is_of(part: ScreenedPart, whole: ScreenedPart) -> bool:
    return part.row.side is whole.row.side and set(part.row.changed) <= set(whole.row.changed)


def _unchanged(row: Reverting) -> Reverting:
    """The same files written with what they have; at boot, a parameter that nothing reads."""
    if boots_of_their_own([row]):
        return Reverting(row.side, (BOOT_CONTROL,))
    return Reverting(row.side, tuple(_as_it_is(one, row.side) for one in row.changed))


def _as_it_is(one: Candidate, side: ProofSide) -> Candidate:
    shown, taken = (one.after, one.on_from) if side is ProofSide.TO else (one.before, one.on_to)
    value = taken or shown
    update = {"name": f"{one.name} as it is", "on_to": value, "on_from": value}
    return one.model_copy(update=update)


def _beside(part: ScreenedPart) -> str:
    others = len(part.row.changed) - 1
    return f"with {others} more, which together move nothing" if others else "under one perturbation"


def _refusals(
    asked: AttributionQuestion,
    side: ProofSide,
    candidates: Sequence[Candidate],
    machine: Machine,
    sources: Resources,
) -> dict[str, str]:
    """Candidate's name → what the kernel of this side answers, of those that it does not take.

    Empty as well where the guest ends by one of them: their trials tell which.
    """
    written = tuple(one for one in candidates if one.kind in _WRITTEN and one.value_on(side) is not None)
    if not written:
        return {}
    row = Reverting(side, written)
    study = resolved(proof_study(asked, 1, [row]))
    treatment = treatment_of(asked, study, row)
    try:
        (job,) = jobs_of(study, treatment, obtained(study, treatment, sources, silent), sources)
        settings = job.settings[-len(written) :]
        before = (*job.before, *job.preparation, *(one.step for one in job.settings[: -len(written)]))
        with machine.start(job.boot) as target:
            results = target.perform((*before, *(one.step for one in settings)))
    except KtrialError:
        return {}
    by_step = {one.step: one for one in own_results(results, len(before))}
    told = (_refusal(one, by_step.get(place)) for place, one in enumerate(settings))
    return {one.name: reason for one, reason in zip(written, told, strict=True) if reason}


def _refusal(setting: TreatmentSetting, result: StepResult | None) -> str:
    try:
        read_back((setting,), (result.model_copy(update={"step": 0}),) if result else ())
    except SettingRefused as refused:
        return str(refused)
    return ""
