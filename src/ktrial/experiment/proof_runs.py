"""The trials behind a proof: each run is a study of two treatments, and of some with something taken back."""

import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ktrial import machines
from ktrial.analysis.attribution.proof import Counts, effect_of
from ktrial.analysis.attribution.target import AttributionQuestion
from ktrial.analysis.result import record as record_in
from ktrial.experiment.observer import Observer, Silent
from ktrial.experiment.proof_study import Reverting, proof_study, treatment_of
from ktrial.experiment.resources import Resources, default_resources
from ktrial.experiment.session import TRIED_AGAIN, run
from ktrial.experiment.stored_trials import take_over
from ktrial.machines import CountingMachine, Machine
from ktrial.model.conditions_diff import Attribution
from ktrial.model.design import Treatment
from ktrial.model.proof import Candidate, Cost, Proof, ProofSide
from ktrial.model.study_record import StudyRecord
from ktrial.model.workload import CountedBy
from ktrial.store import Store
from ktrial.studyfile.references import resolved

EXACT = "exact"


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


def _cpu_seconds() -> float:
    """Of this process and of all that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
