"""Prove causes: find what moves the count, take each of it back alone, then all that helped together."""

import math
import re
import resource
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ktrial import machines
from ktrial.analysis.attribution.proof import (
    Candidates,
    Counts,
    candidates,
    effect_of,
    helpful,
    picked,
    tested,
)
from ktrial.analysis.attribution.question import AttributionQuestion
from ktrial.analysis.errors import ExplanationError
from ktrial.analysis.result import load_record
from ktrial.errors import Interrupted, KtrialError
from ktrial.experiment.explain import Guests, comparison_of, explain_record
from ktrial.experiment.jobs import jobs_of, obtained
from ktrial.experiment.manipulation import SettingRefused, TreatmentSetting, read_back
from ktrial.experiment.observer import Observer
from ktrial.experiment.profile import own_results
from ktrial.experiment.resources import Resources, default_resources
from ktrial.experiment.session import TRIED_AGAIN, run
from ktrial.experiment.stored_trials import take_over
from ktrial.kernels import silent
from ktrial.kernels.modules import module_names
from ktrial.machines import CountingMachine, Machine
from ktrial.model.attribution import (
    Attribution,
    Candidate,
    CandidateGroup,
    CauseKind,
    Cost,
    GroupKind,
    Proof,
    ProofSide,
    Status,
    Together,
    Tried,
    Untried,
)
from ktrial.model.base import digest
from ktrial.model.comparison import Comparison
from ktrial.model.design import AS_IT_IS, Design, Factor, FactorKind, LevelValue, Treatment
from ktrial.model.kernel import BuildChange
from ktrial.model.notation import nearest
from ktrial.model.study import Study, StudyRecord
from ktrial.model.workload import CountedBy
from ktrial.store.store import Store
from ktrial.studyfile.references import resolved
from ktrial.target import StepResult


@dataclass(frozen=True)
class Proven:
    """An explanation, and what its suspects were found to do."""

    attribution: Attribution
    proof: Proof


@dataclass(frozen=True)
class Proving:
    """Where and how causes are proved."""

    store: Store
    perturbations: int = 3
    budget: float | None = None
    """CPU seconds that the trials may take, as they are estimated; None: no limit."""
    candidates: tuple[str, ...] = ()
    """Names or patterns of the candidates, each of which is tried alone; empty: all."""
    each_alone: bool = False
    """Try each candidate alone, also where a group of them moves nothing."""
    jobs: int | None = None
    machine: Machine | None = None
    resources: Resources = field(default_factory=default_resources)
    observer: Observer = field(default_factory=Observer)
    tell: Callable[[Cost, Sequence[Candidate], bool], None] = lambda _cost, _candidates, _in_groups: None
    """Told what is going to be run, before it is, and whether in groups."""
    on_interruption: Callable[[Proof], None] = lambda _proof: None
    """Told what is known when it is interrupted, before Interrupted is raised."""


def prove(question: AttributionQuestion, proving: Proving) -> Proven:
    """Explain the difference, and measure the share of everything that can be taken back.

    Trials are kept as those of any study, and taken over from other studies in the store; what is there is
    not run again. Raises ExplanationError, and what `session.run` raises.
    """
    if question.study.machine.kind != EXACT:
        raise ExplanationError(
            f"{question.study.name} ran on the machine {question.study.machine.kind}, which counts "
            "no instructions by function.",
            hint="only results of the machines exact and exact-parallel can be explained",
        )
    return _Proving(question, proving).proven()


@dataclass(frozen=True)
class Reverting:
    """One treatment more: on this side, these things are as on the other."""

    side: ProofSide
    changed: tuple[Candidate, ...] = ()


@dataclass(frozen=True)
class Counted:
    """A study that was run."""

    question: AttributionQuestion
    record: StudyRecord
    counts: Counts

    def treatment(self, row: Reverting) -> Treatment:
        """What the study has for it."""
        return treatment_of(self.question, self.record.study, row)

    @property
    def ends(self) -> dict[ProofSide, tuple[float, ...]]:
        """What the two treatments have as they are. Raises NotCounted."""
        return {side: self.counts.values(self.treatment(Reverting(side))) for side in ProofSide}

    def effect(self, row: Reverting) -> tuple[float, ...]:
        """What the row does, under each perturbation; empty where it was not run, or failed."""
        treatment = self.treatment(row)
        if not self.counts.trials(treatment) or self.counts.problem(treatment):
            return ()
        return effect_of(row.side, self.counts.values(treatment), self.ends)

    def is_whole(self, row: Reverting) -> bool:
        """Whether it has a trial under each perturbation."""
        return len(self.counts.trials(self.treatment(row))) == self.record.study.perturbations


class Runs:
    """Has trials run that the store has not got, and tells what they took."""

    def __init__(self, question: AttributionQuestion, proving: Proving) -> None:
        self.question, self.proving = question, proving
        self.machine = proving.machine or machines.find(EXACT)
        if isinstance(self.machine, CountingMachine):
            self.machine.count_by(CountedBy.PLUGIN)
        self.ran = self.stored = 0
        self.studies: list[str] = []
        self._begun = _cpu_seconds()
        self.seconds_a_trial = 0.0
        """CPU seconds, by the trials that were run first; 0 where none was."""

    def run(self, rows: Sequence[Reverting], perturbations: int | None = None) -> "Counted":
        """Run what the store has not got of these."""
        proving = self.proving
        study = proof_study(self.question, perturbations or proving.perturbations, rows)
        take_over(study, proving.store, self.machine, proving.resources)
        own = proving.store.newest(digest=digest(resolved(study)))
        stored = len(proving.store.finished_keys(own.id, apart_from=TRIED_AGAIN)) if own else 0
        begun = _cpu_seconds()
        record = run(
            study,
            store=proving.store,
            machine=self.machine,
            observer=proving.observer,
            jobs=proving.jobs,
            resources=proving.resources,
            any_settings=True,
        )
        self.ran += (ran := record.planned - stored)
        if ran and not self.seconds_a_trial:
            self.seconds_a_trial = (_cpu_seconds() - begun) / ran
        self.stored += 0 if self.studies else stored
        self.studies.append(f"{record.study.name} (number {record.id})")
        return Counted(self.question, record, Counts(record, self.question.workload))

    def stored_of(self, rows: Sequence[Reverting]) -> "Counted | None":
        """What the store has of these, though the run was interrupted; None where it has nothing."""
        store = self.proving.store
        study = resolved(proof_study(self.question, self.proving.perturbations, rows))
        own = store.newest(digest=digest(study))
        if own is None:
            return None
        record = load_record(store, own.id)
        return Counted(self.question, record, Counts(record, self.question.workload))

    @property
    def used(self) -> Cost:
        """What it took so far."""
        return Cost(trials=self.ran, stored=self.stored, seconds=_cpu_seconds() - self._begun)


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
        shown = self.effect if effect is None else effect
        names = tuple(candidate.name for candidate in self.row.changed)
        return CandidateGroup(
            kind=kind, names=names, side=self.row.side, effect=shown or 0.0, control=self.control
        )


@dataclass
class Screening:
    """What is known so far of the candidates."""

    runs: Runs
    difference: float
    """Under the first perturbation."""
    refused: list[Tried] = field(default_factory=list)
    groups_begun: list[ScreenedPart] = field(default_factory=list)
    """Each group as it was before it was divided."""
    open: list[ScreenedPart] = field(default_factory=list)
    still: list[ScreenedPart] = field(default_factory=list)
    single: list[Reverting] = field(default_factory=list)
    """Single things that have to be measured."""
    left_out: list[Untried] = field(default_factory=list)

    def run(self, candidates: Sequence[Candidate]) -> None:
        """Divide until each part moves nothing or is a single thing, or the budget is used up."""
        self.single += [
            Reverting(candidate.sides[0], (candidate,))
            for candidate in candidates
            if candidate.kind is CauseKind.LEVEL
        ]
        begun: list[Reverting] = []
        for row in self._taken(candidates):
            if self.has_room(cost_of(self.runs, [*begun, row], 1)):
                begun.append(row)
            else:
                self.leave_out(row)
        self._begin(begun)
        while self.open and self.has_room(
            cost_of(self.runs, [_halves(part.row)[0] for part in self.open], 1)
        ):
            self._divide()

    def has_room(self, cost: Cost) -> bool:
        """Whether the budget has room for it, after all that was used."""
        budget = self.runs.proving.budget
        return budget is None or self.runs.used.seconds + cost.seconds <= budget

    def leave_out(self, row: Reverting) -> None:
        """As there is no room."""
        self.left_out += [Untried(name=candidate.name, reason=NO_ROOM) for candidate in row.changed]

    @property
    def groups(self) -> tuple[CandidateGroup, ...]:
        """What was found of several at once."""
        still = (part.group(GroupKind.NOTHING) for part in self.still)
        return (*still, *(part.group(GroupKind.OPEN) for part in self.open))

    @property
    def grouped(self) -> tuple[Tried, ...]:
        """Those that were taken back with others only."""
        results = []
        for part in self.still:
            count = len(part.row.changed) - 1
            reason = f"with {count} more, which together move nothing" if count else "under one perturbation"
            results += [
                Tried(candidate=candidate, side=part.row.side, status=Status.GROUPED, reason=reason)
                for candidate in part.row.changed
            ]
        return tuple(results)

    def only_together(self, tried: Iterable[Tried]) -> tuple[CandidateGroup, ...]:
        """Of each group that was divided: what it has beyond all that its members have alone."""
        alone = {result.candidate.name: result.effects[0] for result in tried if result.effects}
        groups = []
        for parent in self.groups_begun:
            names = {candidate.name for candidate in parent.row.changed}
            open_ = sum(len(part.row.changed) for part in self.open if _is_of(part, parent))
            divided = [name for name in names if name in alone]
            if parent.effect is None or open_ or not divided:
                continue
            remainder = sum(part.effect or 0.0 for part in self.still if _is_of(part, parent))
            beyond = parent.effect - remainder - sum(alone[name] for name in divided)
            if abs(beyond) > 2 * parent.least:
                groups.append(parent.group(GroupKind.ONLY_TOGETHER, beyond))
        return tuple(groups)

    def _taken(self, candidates: Sequence[Candidate]) -> list[Reverting]:
        """The groups: what a kernel takes, each on its first side where it is taken."""
        left = [candidate for candidate in candidates if candidate.kind is not CauseKind.LEVEL]
        reasons: dict[str, list[str]] = {}
        placed: dict[tuple[ProofSide, int], list[Candidate]] = {}
        for side in (ProofSide.TO, ProofSide.FROM):
            on_side = [candidate for candidate in left if candidate.value_on(side) is not None]
            answers = _refusals(
                self.runs.question, side, on_side, self.runs.machine, self.runs.proving.resources
            )
            for candidate in on_side:
                if candidate.name in answers:
                    reasons.setdefault(candidate.name, []).append(answers[candidate.name])
                else:
                    placed.setdefault((side, _kind(candidate)), []).append(candidate)
            left = [candidate for candidate in left if candidate not in on_side or candidate.name in answers]
        self.refused += [
            Tried(
                candidate=candidate,
                side=candidate.sides[-1],
                status=Status.REFUSED,
                reason="; the other way round: ".join(reasons[candidate.name]),
            )
            for candidate in left
        ]
        return [Reverting(side, tuple(members)) for (side, _), members in sorted(placed.items())]

    def _begin(self, rows: Sequence[Reverting]) -> None:
        controls = [_unchanged(row) for row in rows]
        counted = self._effects([*rows, *controls])
        for row, control in zip(rows, controls, strict=True):
            moved = abs(counted[control] or 0.0)
            least = max(moved, LEAST_SHARE * abs(self.difference))
            part = ScreenedPart(row, counted[row], least, moved)
            self.groups_begun.append(part)
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
            first_effect = counted[first]
            second_effect = (
                None if part.effect is None or first_effect is None else part.effect - first_effect
            )
            second_effect = counted.get(second, second_effect)
            self._sort(
                [
                    replace(part, row=first, effect=first_effect),
                    replace(part, row=second, effect=second_effect),
                ]
            )

    def _sort(self, parts: Iterable[ScreenedPart]) -> None:
        for part in parts:
            if not part.moves:
                self.still.append(part)
            elif part.is_one:
                self.single.append(part.row)
            else:
                self.open.append(part)

    def _effects(self, rows: Sequence[Reverting]) -> dict[Reverting, float | None]:
        """Under the first perturbation; None where it failed."""
        if not rows:
            return {}
        counted = self.runs.run(rows, 1)
        return {row: next(iter(counted.effect(row)), None) for row in rows}


class _Proving:
    def __init__(self, question: AttributionQuestion, proving: Proving) -> None:
        self._question, self._proving = question, proving
        self._runs = Runs(question, proving)
        self._controls: list[float] = []

    def proven(self) -> Proven:
        """First the two as they are, then what moves the count, each alone, then all that helped."""
        base = self._runs.run([])
        if not self._runs.seconds_a_trial:
            # The clock's: on a busy machine the quickest trial is nearest to what it computed.
            self._runs.seconds_a_trial = min(trial.seconds for trial in base.record.trials)
        before, after = (base.treatment(Reverting(side)).label for side in (ProofSide.FROM, ProofSide.TO))
        guests = Guests(self._runs.machine, self._proving.resources, self._proving.observer)
        workload = self._question.workload
        why = explain_record(self._proving.store, base.record, workload, before, after, guests)
        if of_study := self._comparison():
            why = why.model_copy(update={"of_study": of_study})
        proof, chosen = self._planned(base, why)
        screening = Screening(self._runs, proof.differences[0])
        results: tuple[Tried, ...] = ()
        rows: list[Reverting] = []
        try:
            if self._in_groups(chosen):
                screening.run(chosen)
                rows = self._with_room(screening)
            else:
                rows = [Reverting(candidate.sides[0], (candidate,)) for candidate in chosen]
            results = self._tested(rows)
            together = self._together(helpful(results, proof.difference))
        except (Interrupted, KeyboardInterrupt):
            results = results or self._complete(rows)
            self._proving.on_interruption(self._filled(proof, screening, results, None))
            raise
        proof = self._filled(proof, screening, results, together)
        self._keep(proof, base.record.id)
        return Proven(why, proof)

    def _comparison(self) -> Comparison | None:
        """What the study says of the two, where it is in the store: that number is shown everywhere."""
        store = self._proving.store
        stored = store.newest(digest=digest(resolved(self._question.study)))
        return comparison_of(load_record(store, stored.id), self._question) if stored else None

    def _planned(self, base: Counted, why: Attribution) -> tuple[Proof, tuple[Candidate, ...]]:
        """The proof without its trials, and what is tried."""
        study = resolved(self._question.study)
        both = (self._question.before, self._question.after)
        booted = [obtained(study, treatment, self._proving.resources, silent) for treatment in both]
        offered = candidates(study, *both, why, [module_names(kernel) for kernel in booted])
        chosen, left_out = self._chosen(offered)
        in_groups = self._in_groups(chosen)
        if in_groups:
            # Where two of them move the count.
            groups = cost_of(self._runs, expected(chosen), 1)
            alone = 4 * self._proving.perturbations
            seconds = groups.seconds + alone * self._runs.seconds_a_trial
            estimated = groups.model_copy(update={"trials": groups.trials + alone, "seconds": seconds})
        else:
            estimated = self._cost_alone(chosen)
        self._proving.tell(estimated, chosen, in_groups)
        ends = base.ends
        proof = Proof(
            workload=self._question.workload,
            before=why.explanation.before.label,
            after=why.explanation.after.label,
            values_before=ends[ProofSide.FROM],
            values_after=ends[ProofSide.TO],
            left_out=(*offered.left_out, *left_out),
            estimated=estimated,
        )
        return proof, chosen

    def _in_groups(self, chosen: Sequence[Candidate]) -> bool:
        """Whether they are first taken back together: what was asked for by name is tried alone."""
        return not self._proving.candidates and not self._proving.each_alone and len(chosen) >= LEAST

    def _filled(
        self, proof: Proof, screening: Screening, results: Sequence[Tried], together: Together | None
    ) -> Proof:
        update = {
            "tested": (*results, *screening.refused, *screening.grouped),
            "groups": (*screening.groups, *screening.only_together(results)),
            "left_out": (*proof.left_out, *screening.left_out),
            "together": together,
            "control": max(self._controls, default=0.0),
            "used": self._runs.used,
            "studies": tuple(dict.fromkeys(self._runs.studies)),
        }
        return proof.model_copy(update=update)

    def _keep(self, proof: Proof, ends: int) -> None:
        """With the study whose difference it is; where that is not in the store, with that of the two ends.

        A proof of some of the candidates does not take the place of one of more.
        """
        store = self._proving.store
        stored = store.newest(digest=digest(resolved(self._question.study)))
        names = {result.candidate.name for result in proof.tested}
        for number in {stored.id if stored else ends, ends}:
            same = (old for old in store.proofs(number) if old.difference_key == proof.difference_key)
            if not any({result.candidate.name for result in old.tested} > names for old in same):
                store.add_proof(number, proof)

    def _chosen(self, offered: Candidates) -> tuple[tuple[Candidate, ...], tuple[Untried, ...]]:
        """Those that are wanted; tried alone, as many as the budget has room for, the likeliest first."""
        every = offered.ranked
        if self._proving.candidates:
            every, unknown = picked(every, self._proving.candidates)
            if unknown:
                names = [candidate.name for candidate in offered.ranked]
                available = ", ".join(names) or "none"
                raise ExplanationError(
                    "No difference that can be taken back is called "
                    f"{unknown[0]}{nearest(unknown[0], names)}.",
                    hint=f"what can be tried: {available}",
                )
        if self._in_groups(every):
            return every, ()
        chosen: list[Candidate] = []
        left_out = []
        budget = self._proving.budget
        for candidate in every:
            if budget is not None and self._cost_alone((*chosen, candidate)).seconds > budget:
                left_out.append(Untried(name=candidate.name, reason=NO_ROOM))
            else:
                chosen.append(candidate)
        return tuple(chosen), tuple(left_out)

    def _cost_alone(self, chosen: Sequence[Candidate]) -> Cost:
        """At most: trials of each, of their controls and of all together."""
        rows = [Reverting(candidate.sides[0], (candidate,)) for candidate in chosen]
        more = self._proving.perturbations if len(rows) > 1 else 0
        return cost_of(self._runs, rows, self._proving.perturbations, more)

    def _with_room(self, screening: Screening) -> list[Reverting]:
        """What was found to move the count, as far as the budget has room for measuring it."""
        rows: list[Reverting] = []
        for row in screening.single:
            more = cost_of(self._runs, [*rows, row], self._proving.perturbations)
            if screening.has_room(more):
                rows.append(row)
            else:
                screening.leave_out(row)
        return rows

    def _tested(self, rows: Sequence[Reverting]) -> tuple[Tried, ...]:
        """Each candidate on its first side; where the kernel refuses that, on its second. Largest first."""
        results: dict[str, Tried] = {}
        while rows:
            counted = self._runs.run(with_controls(rows))
            again = []
            for row in rows:
                (candidate,) = row.changed
                result = self._judged(counted, row)
                refused = result.status is Status.REFUSED
                if refused and (first := results.get(candidate.name)):
                    # Of one that was refused on both sides, what both kernels said.
                    both = f"{first.reason}; the other way round: {result.reason}"
                    result = result.model_copy(update={"reason": both})
                results[candidate.name] = result
                if refused and row.side is not candidate.sides[-1]:
                    again.append(Reverting(candidate.sides[-1], (candidate,)))
            rows = again
        return tuple(sorted(results.values(), key=lambda result: -abs(result.effect)))

    def _complete(self, rows: Sequence[Reverting]) -> tuple[Tried, ...]:
        """Of those that were being tried when it was interrupted: what has all its trials."""
        if not rows:
            return ()
        counted = self._runs.stored_of(with_controls(rows))
        if counted is None:
            return ()
        complete = [row for row in rows if all(map(counted.is_whole, with_controls([row])))]
        judged = [self._judged(counted, row) for row in complete]
        return tuple(sorted(judged, key=lambda result: -abs(result.effect)))

    def _judged(self, counted: Counted, row: Reverting) -> Tried:
        (candidate,) = row.changed
        changes_nothing = BOOT_CONTROL if boots_of_their_own([row]) else CONTROL
        control = counted.effect(Reverting(row.side, (changes_nothing,)))
        self._controls += map(abs, control)
        return tested(candidate, row.side, counted.counts, counted.treatment(row), counted.ends, control)

    def _together(self, helped: Sequence[Tried]) -> Together | None:
        """All that helped at once, on each side what was taken back there."""
        names = tuple(result.candidate.name for result in helped)
        if len(helped) < 2:
            return Together(names=names, effects=helped[0].effects) if helped else None
        by_side = {
            side: tuple(result.candidate for result in helped if result.side is side) for side in ProofSide
        }
        rows = [Reverting(side, changed) for side, changed in by_side.items() if changed]
        counted = self._runs.run(rows)
        parts = []
        for row in rows:
            treatment = counted.treatment(row)
            if lost := counted.counts.problem(treatment):
                reason = f"{treatment.label} ended as {lost.outcome.value}: {lost.reason}"
                return Together(names=names, reason=reason)
            parts.append(effect_of(row.side, counted.counts.values(treatment), counted.ends))
        return Together(names=names, effects=tuple(map(sum, zip(*parts, strict=True))))


# The study behind a proof: two treatments, and each with one thing, or several, taken back.

_PREFIX, _COMMAND = "explain-", "explain"
_KINDS = {
    CauseKind.SETTING: FactorKind.SETTING,
    CauseKind.FEATURE: FactorKind.SETTING,
    CauseKind.BOOT: FactorKind.BOOT,
    CauseKind.MODULE: FactorKind.MODULE,
    CauseKind.OPTION: FactorKind.KCONFIG,
}
CONTROL = Candidate(
    name="control",
    kind=CauseKind.SETTING,
    target="/proc/sys/kernel/printk_ratelimit_burst",
    before="10",
    after="10",
    on_to="10",
    on_from="10",
)
"""A write of the value that every kernel has by itself (since 2.6): what a write alone does to the count."""
BOOT_CONTROL = Candidate(
    name="control at boot",
    kind=CauseKind.BOOT,
    target="ktrial.control",
    before="(not given)",
    after="(not given)",
    on_to="1",
    on_from="1",
)
"""A parameter of a module that does not exist: kernels leave it alone."""


def proof_study(question: AttributionQuestion, perturbations: int, rows: Sequence[Reverting]) -> Study:
    """The study of the two treatments (the first is the baseline) and of those with something taken back."""
    study = question.study
    based = tuple(
        factor.model_copy(update={"baseline": question.before.levels[factor.name]})
        for factor in study.factors
    )
    changed = {
        candidate.name: candidate
        for row in rows
        for candidate in row.changed
        if candidate.kind is not CauseKind.LEVEL
    }
    factors = (*based, *(_factor(candidate) for candidate in changed.values()))
    every = [Reverting(ProofSide.TO), *rows]
    old, new = question.before.label, question.after.label
    return study.model_copy(
        update={
            "name": _PREFIX + re.sub(r"[^A-Za-z0-9._-]+", "-", question.workload).strip("-."),
            "question": f"What makes {question.workload} differ between {old} and {new}?",
            "factors": factors,
            "workloads": (question.use,),
            "perturbations": perturbations,
            "design": Design.LISTED,
            "listed": tuple(dict(_levels(question, row)) for row in every),
            "search": None,
            "made_by": _COMMAND,
        }
    )


def treatment_of(question: AttributionQuestion, study: Study, row: Reverting) -> Treatment:
    """The treatment of the study that the row stands for."""
    levels = _levels(question, row)
    return Treatment(
        levels={factor.name: levels.get(factor.name, factor.baseline) for factor in study.factors}
    )


def _levels(question: AttributionQuestion, row: Reverting) -> Mapping[str, LevelValue]:
    """Factor → level, where that is not the baseline's."""
    this, opposite = (
        (question.after, question.before) if row.side is ProofSide.TO else (question.before, question.after)
    )
    levels: dict[str, LevelValue] = dict(this.levels)
    for candidate in row.changed:
        if candidate.kind is CauseKind.LEVEL:
            levels[candidate.target] = opposite.levels[candidate.target]
        else:
            levels[candidate.name] = candidate.value_on(row.side) or ""
    return levels


def _factor(candidate: Candidate) -> Factor:
    values = dict.fromkeys(value for value in (candidate.on_to, candidate.on_from) if value is not None)
    changes = {value: BuildChange(options={candidate.target: value}) for value in values}
    return Factor(
        name=candidate.name,
        kind=_KINDS[candidate.kind],
        levels=(AS_IT_IS, *values),
        baseline=AS_IT_IS,
        target=candidate.target,
        changes=changes if candidate.kind is CauseKind.OPTION else {},
    )


def boots_of_their_own(rows: Iterable[Reverting]) -> int:
    """How many of the rows need a system that is booted for them."""
    booted = {CauseKind.BOOT, CauseKind.MODULE, CauseKind.OPTION, CauseKind.LEVEL}
    return sum(any(candidate.kind in booted for candidate in row.changed) for row in rows)


# The trials behind a proof: each run is a study of two treatments, and of some with something taken back.

EXACT = "exact"


def _cpu_seconds() -> float:
    """Of this process and of all that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


# What the trials of a proof take: how many, which systems have to be booted or built for them, CPU time.

_BOOT_SECONDS = 20.0
"""CPU seconds that a system takes to boot and to settle, before its first trial."""
_BUILD_SECONDS = 1500.0
"""CPU seconds that a kernel takes to be built with the configuration for guests."""


def cost_of(runs: Runs, rows: Sequence[Reverting], perturbations: int, more: int = 0) -> Cost:
    """Of these rows under so many perturbations, with their controls, and of `more` trials beside them."""
    if not rows:
        return Cost(trials=more, seconds=more * runs.seconds_a_trial)
    every = with_controls(rows)
    boots = boots_of_their_own(every)
    builds = sum(any(candidate.kind is CauseKind.OPTION for candidate in row.changed) for row in rows)
    trials = len(every) * perturbations + more
    seconds = trials * runs.seconds_a_trial + boots * _BOOT_SECONDS + builds * _BUILD_SECONDS
    return Cost(trials=trials, boots=boots, builds=builds, seconds=seconds)


def with_controls(rows: Sequence[Reverting]) -> list[Reverting]:
    """The rows, with what tells how far a write or a boot parameter alone moves the count."""
    controls = {(row.side, bool(boots_of_their_own([row]))) for row in rows}
    return [
        *rows,
        *(Reverting(side, (BOOT_CONTROL if boots else CONTROL,)) for side, boots in sorted(controls)),
    ]


# Which of many things move a count: all taken back together, then halves of what moves it, down to one.
#
# As group testing has it (R. Dorfman, The Detection of Defective Members of Large Populations, Annals of
# Mathematical Statistics 14, 1943; by halves: F. K. Hwang, Journal of the American Statistical Association
# 67, 1972). Trials are of the first perturbation. What the second half adds to the first is what the whole
# has beyond it, so that one half of two is run.
#
# Which settings a kernel does not take is asked before: all are written in one guest, without the workload.

LEAST = 3
"""So many candidates, and they are tried in groups."""
LEAST_SHARE = 0.01
"""Of the difference: what has less together is not divided up."""
NO_ROOM = "--budget has no room for it"
_WRITTEN = (CauseKind.SETTING, CauseKind.FEATURE)
"""Kinds that are written into a system that runs."""


def expected(candidates: Sequence[Candidate]) -> list[Reverting]:
    """Rows like those of a screening in which two of the largest group move the count."""
    grouped: dict[tuple[ProofSide, int], list[Candidate]] = {}
    for candidate in candidates:
        if candidate.kind is not CauseKind.LEVEL:
            grouped.setdefault((candidate.sides[0], _kind(candidate)), []).append(candidate)
    rows = [Reverting(side, tuple(members)) for (side, _), members in grouped.items()]
    largest = max(rows, key=lambda row: len(row.changed), default=None)
    rounds = math.ceil(math.log2(len(largest.changed))) if largest else 0
    return [*rows, *([largest] * 2 * rounds if largest else [])]


def _kind(candidate: Candidate) -> int:
    """What is taken back together: what is written, what is given at boot, what is built."""
    return 0 if candidate.kind in _WRITTEN else 2 if candidate.kind is CauseKind.OPTION else 1


def _halves(row: Reverting) -> tuple[Reverting, Reverting]:
    """The likelier half first."""
    middle = (len(row.changed) + 1) // 2
    return Reverting(row.side, row.changed[:middle]), Reverting(row.side, row.changed[middle:])


def _is_of(part: ScreenedPart, parent: ScreenedPart) -> bool:
    return part.row.side is parent.row.side and set(part.row.changed) <= set(parent.row.changed)


def _unchanged(row: Reverting) -> Reverting:
    """The same files written with what they have; at boot, a parameter that nothing reads."""
    if boots_of_their_own([row]):
        return Reverting(row.side, (BOOT_CONTROL,))
    return Reverting(row.side, tuple(_as_it_is(candidate, row.side) for candidate in row.changed))


def _as_it_is(candidate: Candidate, side: ProofSide) -> Candidate:
    shown, taken = (
        (candidate.after, candidate.on_from) if side is ProofSide.TO else (candidate.before, candidate.on_to)
    )
    value = taken or shown
    update = {"name": f"{candidate.name} as it is", "on_to": value, "on_from": value}
    return candidate.model_copy(update=update)


def _refusals(
    question: AttributionQuestion,
    side: ProofSide,
    candidates: Sequence[Candidate],
    machine: Machine,
    resources: Resources,
) -> dict[str, str]:
    """Candidate's name → what the kernel of this side answers, of those that it does not take.

    Empty as well where the guest ends by one of them: their trials tell which.
    """
    written = tuple(
        candidate
        for candidate in candidates
        if candidate.kind in _WRITTEN and candidate.value_on(side) is not None
    )
    if not written:
        return {}
    row = Reverting(side, written)
    study = resolved(proof_study(question, 1, [row]))
    treatment = treatment_of(question, study, row)
    try:
        (job,) = jobs_of(study, treatment, obtained(study, treatment, resources, silent), resources)
        settings = job.settings[-len(written) :]
        before = (*job.before, *job.preparation, *(setting.step for setting in job.settings[: -len(written)]))
        with machine.start(job.boot) as target:
            results = target.perform((*before, *(setting.step for setting in settings)))
    except KtrialError:
        return {}
    by_step = {own_result.step: own_result for own_result in own_results(results, len(before))}
    refusals = (_refusal(candidate, by_step.get(place)) for place, candidate in enumerate(settings))
    return {candidate.name: reason for candidate, reason in zip(written, refusals, strict=True) if reason}


def _refusal(setting: TreatmentSetting, result: StepResult | None) -> str:
    try:
        read_back((setting,), (result.model_copy(update={"step": 0}),) if result else ())
    except SettingRefused as refused:
        return str(refused)
    return ""


__all__ = ["Proven", "Proving", "prove"]
