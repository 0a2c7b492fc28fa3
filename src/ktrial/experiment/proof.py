"""Prove causes: run each thing that differs taken back alone, then all that helped together, and compare."""

import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import mean

from ktrial import kernels, machines
from ktrial.analysis.attribution.candidates import Candidates, candidates, picked
from ktrial.analysis.attribution.proof import Counts, effect_of, helpful, tested
from ktrial.analysis.attribution.target import AttributionQuestion
from ktrial.analysis.errors import OtherMachine, UnknownCandidate
from ktrial.experiment.explain import Guests, explain_record
from ktrial.experiment.jobs import obtained
from ktrial.experiment.observer import Observer, Silent
from ktrial.experiment.proof_study import (
    BOOT_CONTROL,
    CONTROL,
    Reverting,
    boots_of_their_own,
    proof_study,
    treatment_of,
)
from ktrial.experiment.resources import Resources, default_resources
from ktrial.experiment.session import TRIED_AGAIN, run
from ktrial.experiment.stored_trials import take_over
from ktrial.machines import CountingMachine, Machine
from ktrial.model.base import digest
from ktrial.model.conditions_diff import Attribution
from ktrial.model.design import Treatment
from ktrial.model.proof import Candidate, CauseKind, Cost, LeftOut, Proof, Side, Status, Together, Tried
from ktrial.model.study_record import StudyRecord
from ktrial.model.suggestions import nearest
from ktrial.model.workload import CountedBy
from ktrial.store import Store
from ktrial.studyfile.references import resolved

_EXACT = "exact"
_BOOT_SECONDS = 20.0
"""CPU seconds that a system takes to boot and to settle, before its first trial."""
_BUILD_SECONDS = 1500.0
"""CPU seconds that a kernel takes to be built with the configuration for guests."""


@dataclass(frozen=True)
class Proving:
    """Where and how causes are proved."""

    store: Store
    perturbations: int = 3
    budget: float | None = None
    """CPU seconds that the trials may take, as they are estimated; None: no limit."""
    wanted: tuple[str, ...] = ()
    """Names or patterns of the candidates; empty: all."""
    jobs: int | None = None
    machine: Machine | None = None
    sources: Resources = field(default_factory=default_resources)
    observer: Observer = field(default_factory=Silent)
    tell: Callable[[Cost, Sequence[Candidate]], None] = lambda _cost, _found: None
    """Told what is going to be run, before it is."""


@dataclass(frozen=True)
class Proven:
    """An explanation, and what its suspects were found to do."""

    attribution: Attribution
    proof: Proof


def prove(asked: AttributionQuestion, how: Proving) -> Proven:
    """Explain the difference, and measure the share of everything that can be taken back.

    Trials are kept as those of any study, and taken over from other studies in the store; what is there is
    not run again. Raises OtherMachine, NotCounted, UnknownCandidate, and what `session.run` raises.
    """
    if asked.study.machine.kind != _EXACT:
        raise OtherMachine(study=asked.study.name, machine=asked.study.machine.kind)
    return _Proving(asked, how).proven()


class _Runs:
    """The trials: each call is a study of the two treatments and of some with something taken back."""

    def __init__(self, asked: AttributionQuestion, how: Proving) -> None:
        self._asked, self._how = asked, how
        self.machine = how.machine or machines.find(_EXACT)
        if isinstance(self.machine, CountingMachine):
            self.machine.count_by(CountedBy.PLUGIN)
        self.ran = self.stored = 0
        self.studies: list[str] = []
        self._begun = _cpu_seconds()

    def run(self, rows: Sequence[Reverting]) -> "_Counted":
        """Run what the store has not got of these."""
        how = self._how
        study = proof_study(self._asked, how.perturbations, rows)
        number = how.store.study(resolved(study))
        take_over(study, how.store, self.machine, how.sources)
        stored = len(how.store.finished_keys(number, apart_from=TRIED_AGAIN))
        record = run(
            study,
            store=how.store,
            machine=self.machine,
            observer=how.observer,
            jobs=how.jobs,
            sources=how.sources,
        )
        self.ran += record.planned - stored
        self.stored += 0 if self.studies else stored
        self.studies.append(f"{record.study.name} (number {record.id})")
        return _Counted(self._asked, record, Counts(record, self._asked.workload))

    @property
    def used(self) -> Cost:
        """What it took so far."""
        seconds = _cpu_seconds() - self._begun
        return Cost(trials=self.ran, stored=self.stored, seconds=seconds)


@dataclass(frozen=True)
class _Counted:
    """A study that was run."""

    asked: AttributionQuestion
    record: StudyRecord
    counts: Counts

    def treatment(self, row: Reverting) -> Treatment:
        """What the study has for it."""
        return treatment_of(self.asked, self.record.study, row)

    @property
    def ends(self) -> dict[Side, tuple[float, ...]]:
        """What the two treatments have as they are. Raises NotCounted."""
        return {side: self.counts.values(self.treatment(Reverting(side))) for side in Side}

    def control(self, side: Side, candidate: Candidate) -> tuple[float, ...]:
        """What a control does there; empty where it was not run, or failed."""
        treatment = self.treatment(Reverting(side, (candidate,)))
        if not self.counts.trials(treatment) or self.counts.problem(treatment):
            return ()
        return effect_of(side, self.counts.values(treatment), self.ends)


class _Proving:
    def __init__(self, asked: AttributionQuestion, how: Proving) -> None:
        self._asked, self._how = asked, how
        self._runs = _Runs(asked, how)
        self._controls: list[float] = []
        self._each = 0.0
        """CPU seconds of a trial; 0 where none was run here: then what trials took is told by the store."""

    def proven(self) -> Proven:
        """First the two as they are, then each candidate, the other way round where refused, then all."""
        base = self._runs.run([])
        used = self._runs.used
        self._each = used.seconds / used.trials if used.trials else 0.0
        ends = base.ends
        why = self._why(base)
        found = self._candidates(why)
        chosen, left_out = self._chosen(found, base)
        rows = [Reverting(one.sides[0], (one,)) for one in chosen]
        estimated = self._cost(rows, base)
        self._how.tell(estimated, chosen)
        results = self._tested(rows)
        proof = Proof(
            workload=self._asked.workload,
            before=why.explanation.before.label,
            after=why.explanation.after.label,
            values_before=ends[Side.FROM],
            values_after=ends[Side.TO],
            tested=results,
            left_out=(*found.left_out, *left_out),
            estimated=estimated,
        )
        together = self._together(helpful(results, proof.difference))
        update = {
            "together": together,
            "control": max(self._controls, default=0.0),
            "used": self._runs.used,
            "studies": tuple(dict.fromkeys(self._runs.studies)),
        }
        proof = proof.model_copy(update=update)
        self._keep(proof, base.record.id)
        return Proven(why, proof)

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

    def _why(self, base: _Counted) -> Attribution:
        before, after = (base.treatment(Reverting(side)).label for side in (Side.FROM, Side.TO))
        guests = Guests(self._runs.machine, self._how.sources, self._how.observer)
        return explain_record(self._how.store, base.record, self._asked.workload, before, after, guests)

    def _candidates(self, why: Attribution) -> Candidates:
        study = resolved(self._asked.study)
        both = (self._asked.before, self._asked.after)
        booted = [obtained(study, one, self._how.sources, kernels.silent) for one in both]
        modules = [kernels.module_names(one) for one in booted]
        return candidates(study, *both, why, modules)

    def _chosen(self, found: Candidates, base: _Counted) -> tuple[tuple[Candidate, ...], tuple[LeftOut, ...]]:
        """Those that are wanted and that the budget has room for, the likeliest first."""
        every = found.found
        if self._how.wanted:
            every, unknown = picked(every, self._how.wanted)
            if unknown:
                names = [one.name for one in found.found]
                known = ", ".join(names) or "none"
                raise UnknownCandidate(name=unknown[0], similar=nearest(unknown[0], names), known=known)
        chosen: list[Candidate] = []
        left_out = []
        for one in every:
            rows = [Reverting(each.sides[0], (each,)) for each in (*chosen, one)]
            if self._how.budget is not None and self._cost(rows, base).seconds > self._how.budget:
                left_out.append(LeftOut(name=one.name, reason="--budget has no room for it"))
            else:
                chosen.append(one)
        return tuple(chosen), tuple(left_out)

    def _cost(self, rows: Sequence[Reverting], base: _Counted) -> Cost:
        """What trials of these rows, of their controls and of all together take at most."""
        if not rows:
            return Cost(trials=0)
        every = _with_controls(rows)
        together = int(len(rows) > 1)
        each = self._each or mean(one.seconds for one in base.record.trials)
        boots = boots_of_their_own(every) + (together if boots_of_their_own(rows) else 0)
        builds = sum(one.kind is CauseKind.OPTION for row in rows for one in row.changed)
        trials = (len(every) + together) * self._how.perturbations
        seconds = trials * each + boots * _BOOT_SECONDS + builds * _BUILD_SECONDS
        return Cost(trials=trials, boots=boots, builds=builds, seconds=seconds)

    def _tested(self, rows: Sequence[Reverting]) -> tuple[Tried, ...]:
        """Each candidate on its first side; where the kernel refuses that, on its second. Largest first."""
        results: dict[str, Tried] = {}
        while rows:
            counted = self._runs.run(_with_controls(rows))
            again = []
            for row in rows:
                (one,) = row.changed
                told = self._judged(counted, row, one)
                results[one.name] = _told_both(results.get(one.name), told)
                if told.status is Status.REFUSED and row.side is not one.sides[-1]:
                    again.append(Reverting(one.sides[-1], (one,)))
            rows = again
        return tuple(sorted(results.values(), key=lambda one: -abs(one.effect)))

    def _judged(self, counted: _Counted, row: Reverting, one: Candidate) -> Tried:
        control = counted.control(row.side, BOOT_CONTROL if boots_of_their_own([row]) else CONTROL)
        self._controls += map(abs, control)
        return tested(one, row.side, counted.counts, counted.treatment(row), counted.ends, control)

    def _together(self, helped: Sequence[Tried]) -> Together | None:
        """All that helped at once, on each side what was taken back there."""
        names = tuple(one.candidate.name for one in helped)
        if len(helped) < 2:
            return Together(names=names, effects=helped[0].effects) if helped else None
        by_side = {side: tuple(one.candidate for one in helped if one.side is side) for side in Side}
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


def _with_controls(rows: Sequence[Reverting]) -> list[Reverting]:
    """The rows, with what tells how far a write or a boot parameter alone moves the count."""
    wanted = {(row.side, bool(boots_of_their_own([row]))) for row in rows}
    return [
        *rows,
        *(Reverting(side, (BOOT_CONTROL if boots else CONTROL,)) for side, boots in sorted(wanted)),
    ]


def _cpu_seconds() -> float:
    """Of this process and of all that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
