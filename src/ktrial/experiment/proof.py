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
from ktrial.analysis.errors import OtherMachine, UnknownCandidate
from ktrial.analysis.result import record as record_in
from ktrial.errors import Interrupted, KtrialError
from ktrial.experiment.explain import Guests, explain_record
from ktrial.experiment.jobs import jobs_of, obtained
from ktrial.experiment.manipulation import SettingRefused, TreatmentSetting, read_back
from ktrial.experiment.observer import Observer, Silent
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
    wanted: tuple[str, ...] = ()
    """Names or patterns of the candidates, each of which is tried alone; empty: all."""
    each: bool = False
    """Try each candidate alone, also where a group of them moves nothing."""
    jobs: int | None = None
    machine: Machine | None = None
    sources: Resources = field(default_factory=default_resources)
    observer: Observer = field(default_factory=Silent)
    tell: Callable[[Cost, Sequence[Candidate], bool], None] = lambda _cost, _found, _in_groups: None
    """Told what is going to be run, before it is, and whether in groups."""
    known_so_far: Callable[[Proof], None] = lambda _proof: None
    """Told what is known when it is interrupted, before Interrupted is raised."""


def prove(asked: AttributionQuestion, how: Proving) -> Proven:
    """Explain the difference, and measure the share of everything that can be taken back.

    Trials are kept as those of any study, and taken over from other studies in the store; what is there is
    not run again. Raises OtherMachine, NotCounted, UnknownCandidate, and what `session.run` raises.
    """
    if asked.study.machine.kind != EXACT:
        raise OtherMachine(study=asked.study.name, machine=asked.study.machine.kind)
    return _Proving(asked, how).proven()


@dataclass(frozen=True)
class Reverting:
    """One treatment more: on this side, these things are as on the other."""

    side: ProofSide
    changed: tuple[Candidate, ...] = ()


@dataclass(frozen=True)
class Counted:
    """A study that was run."""

    asked: AttributionQuestion
    record: StudyRecord
    counts: Counts

    def treatment(self, row: Reverting) -> Treatment:
        """What the study has for it."""
        return treatment_of(self.asked, self.record.study, row)

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

    def __init__(self, asked: AttributionQuestion, how: Proving) -> None:
        self.asked, self.how = asked, how
        self.machine = how.machine or machines.find(EXACT)
        if isinstance(self.machine, CountingMachine):
            self.machine.count_by(CountedBy.PLUGIN)
        self.ran = self.stored = 0
        self.studies: list[str] = []
        self._begun = _cpu_seconds()
        self.seconds_a_trial = 0.0
        """CPU seconds, by the trials that were run first; 0 where none was."""

    def run(self, rows: Sequence[Reverting], perturbations: int | None = None) -> "Counted":
        """Run what the store has not got of these."""
        how = self.how
        study = proof_study(self.asked, perturbations or how.perturbations, rows)
        number = how.store.study(resolved(study))
        take_over(study, how.store, self.machine, how.sources)
        stored = len(how.store.finished_keys(number, apart_from=TRIED_AGAIN))
        begun = _cpu_seconds()
        record = run(
            study,
            store=how.store,
            machine=self.machine,
            observer=how.observer,
            jobs=how.jobs,
            sources=how.sources,
            any_settings=True,
        )
        self.ran += (ran := record.planned - stored)
        if ran and not self.seconds_a_trial:
            self.seconds_a_trial = (_cpu_seconds() - begun) / ran
        self.stored += 0 if self.studies else stored
        self.studies.append(f"{record.study.name} (number {record.id})")
        return Counted(self.asked, record, Counts(record, self.asked.workload))

    def stored_of(self, rows: Sequence[Reverting]) -> "Counted":
        """What the store has of these, though the run was interrupted."""
        store = self.how.store
        number = store.study(resolved(proof_study(self.asked, self.how.perturbations, rows)))
        record = record_in(store, number)
        return Counted(self.asked, record, Counts(record, self.asked.workload))

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


class _Proving:
    def __init__(self, asked: AttributionQuestion, how: Proving) -> None:
        self._asked, self._how = asked, how
        self._runs = Runs(asked, how)
        self._controls: list[float] = []

    def proven(self) -> Proven:
        """First the two as they are, then what moves the count, each alone, then all that helped."""
        base = self._runs.run([])
        if not self._runs.seconds_a_trial:
            # The clock's: on a busy machine the quickest trial is nearest to what it computed.
            self._runs.seconds_a_trial = min(one.seconds for one in base.record.trials)
        why = self._why(base)
        proof, chosen = self._planned(base, why)
        screening = Screening(self._runs, proof.differences[0])
        results: tuple[Tried, ...] = ()
        rows: list[Reverting] = []
        try:
            if self._in_groups(chosen):
                screening.run(chosen)
                rows = self._with_room(screening)
            else:
                rows = [Reverting(one.sides[0], (one,)) for one in chosen]
            results = self._tested(rows)
            together = self._together(helpful(results, proof.difference))
        except (Interrupted, KeyboardInterrupt):
            results = results or self._known(rows)
            self._how.known_so_far(self._filled(proof, screening, results, None))
            raise
        proof = self._filled(proof, screening, results, together)
        self._keep(proof, base.record.id)
        return Proven(why, proof)

    def _planned(self, base: Counted, why: Attribution) -> tuple[Proof, tuple[Candidate, ...]]:
        """The proof without its trials, and what is tried."""
        offered = self._candidates(why)
        chosen, left_out = self._chosen(offered)
        in_groups = self._in_groups(chosen)
        estimated = self._cost_in_groups(chosen) if in_groups else self._cost_alone(chosen)
        self._how.tell(estimated, chosen, in_groups)
        ends = base.ends
        proof = Proof(
            workload=self._asked.workload,
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
        return not self._how.wanted and not self._how.each and len(chosen) >= LEAST

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
        store = self._how.store
        stored = store.newest(digest=digest(resolved(self._asked.study)))
        names = {one.candidate.name for one in proof.tested}
        for number in {stored.id if stored else ends, ends}:
            same = (one for one in store.proofs(number) if one.difference_key == proof.difference_key)
            if not any({one.candidate.name for one in old.tested} > names for old in same):
                store.add_proof(number, proof)

    def _why(self, base: Counted) -> Attribution:
        before, after = (base.treatment(Reverting(side)).label for side in (ProofSide.FROM, ProofSide.TO))
        guests = Guests(self._runs.machine, self._how.sources, self._how.observer)
        return explain_record(self._how.store, base.record, self._asked.workload, before, after, guests)

    def _candidates(self, why: Attribution) -> Candidates:
        study = resolved(self._asked.study)
        both = (self._asked.before, self._asked.after)
        booted = [obtained(study, one, self._how.sources, silent) for one in both]
        modules = [module_names(one) for one in booted]
        return candidates(study, *both, why, modules)

    def _chosen(self, offered: Candidates) -> tuple[tuple[Candidate, ...], tuple[Untried, ...]]:
        """Those that are wanted; tried alone, as many as the budget has room for, the likeliest first."""
        every = offered.ranked
        if self._how.wanted:
            every, unknown = picked(every, self._how.wanted)
            if unknown:
                names = [one.name for one in offered.ranked]
                known = ", ".join(names) or "none"
                raise UnknownCandidate(name=unknown[0], similar=nearest(unknown[0], names), known=known)
        if self._in_groups(every):
            return every, ()
        chosen: list[Candidate] = []
        left_out = []
        for one in every:
            if self._how.budget is not None and self._cost_alone((*chosen, one)).seconds > self._how.budget:
                left_out.append(Untried(name=one.name, reason=NO_ROOM))
            else:
                chosen.append(one)
        return tuple(chosen), tuple(left_out)

    def _cost_alone(self, chosen: Sequence[Candidate]) -> Cost:
        """At most: trials of each, of their controls and of all together."""
        rows = [Reverting(one.sides[0], (one,)) for one in chosen]
        more = self._how.perturbations if len(rows) > 1 else 0
        return cost_of(self._runs, rows, self._how.perturbations, more)

    def _cost_in_groups(self, chosen: Sequence[Candidate]) -> Cost:
        """Where two of them move the count."""
        groups = cost_of(self._runs, expected(chosen), 1)
        alone = 4 * self._how.perturbations
        seconds = groups.seconds + alone * self._runs.seconds_a_trial
        return groups.model_copy(update={"trials": groups.trials + alone, "seconds": seconds})

    def _with_room(self, screening: Screening) -> list[Reverting]:
        """What was found to move the count, as far as the budget has room for measuring it."""
        rows: list[Reverting] = []
        for row in screening.found:
            more = cost_of(self._runs, [*rows, row], self._how.perturbations)
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
                (one,) = row.changed
                told = self._judged(counted, row)
                results[one.name] = _told_both(results.get(one.name), told)
                if told.status is Status.REFUSED and row.side is not one.sides[-1]:
                    again.append(Reverting(one.sides[-1], (one,)))
            rows = again
        return tuple(sorted(results.values(), key=lambda one: -abs(one.effect)))

    def _known(self, rows: Sequence[Reverting]) -> tuple[Tried, ...]:
        """Of those that were being tried when it was interrupted: what has all its trials."""
        if not rows:
            return ()
        counted = self._runs.stored_of(with_controls(rows))
        whole = [row for row in rows if all(map(counted.is_whole, with_controls([row])))]
        told = [self._judged(counted, row) for row in whole]
        return tuple(sorted(told, key=lambda one: -abs(one.effect)))

    def _judged(self, counted: Counted, row: Reverting) -> Tried:
        (one,) = row.changed
        changes_nothing = BOOT_CONTROL if boots_of_their_own([row]) else CONTROL
        control = counted.effect(Reverting(row.side, (changes_nothing,)))
        self._controls += map(abs, control)
        return tested(one, row.side, counted.counts, counted.treatment(row), counted.ends, control)

    def _together(self, helped: Sequence[Tried]) -> Together | None:
        """All that helped at once, on each side what was taken back there."""
        names = tuple(one.candidate.name for one in helped)
        if len(helped) < 2:
            return Together(names=names, effects=helped[0].effects) if helped else None
        by_side = {side: tuple(one.candidate for one in helped if one.side is side) for side in ProofSide}
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


def _told_both(first: Tried | None, told: Tried) -> Tried:
    """Of one that was refused on both sides, what both kernels said."""
    if first is None or told.status is not Status.REFUSED:
        return told
    return told.model_copy(update={"reason": f"{first.reason}; the other way round: {told.reason}"})


# The study behind a proof: two treatments, and each with one thing, or several, taken back.

_PREFIX = "explain-"


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


def proof_study(asked: AttributionQuestion, perturbations: int, rows: Sequence[Reverting]) -> Study:
    """The study of the two treatments (the first is the baseline) and of those with something taken back."""
    study = asked.study
    own = tuple(
        factor.model_copy(update={"baseline": asked.before.levels[factor.name]}) for factor in study.factors
    )
    changed = {one.name: one for row in rows for one in row.changed if one.kind is not CauseKind.LEVEL}
    factors = (*own, *(_factor(one) for one in changed.values()))
    every = [Reverting(ProofSide.TO), *rows]
    old, new = asked.before.label, asked.after.label
    return study.model_copy(
        update={
            "name": _PREFIX + re.sub(r"[^A-Za-z0-9._-]+", "-", asked.workload).strip("-."),
            "question": f"What makes {asked.workload} differ between {old} and {new}?",
            "factors": factors,
            "workloads": (asked.use,),
            "perturbations": perturbations,
            "design": Design.LISTED,
            "listed": tuple(dict(_levels(asked, row)) for row in every),
            "search": None,
        }
    )


def is_of_proof(study: Study) -> bool:
    """Whether the study is one that a proof has made, as far as its name and its design tell."""
    return study.name.startswith(_PREFIX) and study.design is Design.LISTED


def treatment_of(asked: AttributionQuestion, study: Study, row: Reverting) -> Treatment:
    """The treatment of the study that the row stands for."""
    given = _levels(asked, row)
    return Treatment(levels={one.name: given.get(one.name, one.baseline) for one in study.factors})


def _levels(asked: AttributionQuestion, row: Reverting) -> Mapping[str, LevelValue]:
    """Factor → level, where that is not the baseline's."""
    own, other = (asked.after, asked.before) if row.side is ProofSide.TO else (asked.before, asked.after)
    levels: dict[str, LevelValue] = dict(own.levels)
    for one in row.changed:
        if one.kind is CauseKind.LEVEL:
            levels[one.target] = other.levels[one.target]
        else:
            levels[one.name] = one.value_on(row.side) or ""
    return levels


def _factor(one: Candidate) -> Factor:
    values = dict.fromkeys(value for value in (one.on_to, one.on_from) if value is not None)
    changes = {value: BuildChange(options={one.target: value}) for value in values}
    return Factor(
        name=one.name,
        kind=_KINDS[one.kind],
        levels=(AS_IT_IS, *values),
        baseline=AS_IT_IS,
        target=one.target,
        changes=changes if one.kind is CauseKind.OPTION else {},
    )


def boots_of_their_own(rows: Iterable[Reverting]) -> int:
    """How many of the rows need a system that is booted for them."""
    own = {CauseKind.BOOT, CauseKind.MODULE, CauseKind.OPTION, CauseKind.LEVEL}
    return sum(any(one.kind in own for one in row.changed) for row in rows)


# The trials behind a proof: each run is a study of two treatments, and of some with something taken back.

EXACT = "exact"


def _cpu_seconds() -> float:
    """Of this process and of all that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


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
    builds = sum(any(one.kind is CauseKind.OPTION for one in row.changed) for row in rows)
    trials = len(every) * perturbations + more
    seconds = trials * runs.seconds_a_trial + boots * _BOOT_SECONDS + builds * _BUILD_SECONDS
    return Cost(trials=trials, boots=boots, builds=builds, seconds=seconds)


def with_controls(rows: Sequence[Reverting]) -> list[Reverting]:
    """The rows, with what tells how far a write or a boot parameter alone moves the count."""
    wanted = {(row.side, bool(boots_of_their_own([row]))) for row in rows}
    return [
        *rows,
        *(Reverting(side, (BOOT_CONTROL if boots else CONTROL,)) for side, boots in sorted(wanted)),
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


__all__ = ["Proven", "Proving", "prove"]
