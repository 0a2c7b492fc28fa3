"""The numbers of all studies in a store: from what was kept of them, and from trials where they have changed.

A study's trials are read once: what a history asks of them is in the store from then on.
"""

from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from ktrial.analysis.history.collector_pause import garbage_kept
from ktrial.analysis.history.study_numbers import (
    StudyFacts,
    StudyNumbers,
    facts_of,
    numbers_of,
    packed,
    unpacked_facts,
    unpacked_numbers,
)
from ktrial.model.study_record import StudyRecord
from ktrial.store import Store, StoredStudy
from ktrial.store.errors import TrialsDamaged
from ktrial.store.summaries import OF_STUDY, StudySummaries

_AT_ONCE = 1_000
"""Trials whose summaries are written in one transaction."""
_TOLD = 5_000
"""Trials that are worth a word: they take some seconds."""
Tell = Callable[[str], None]


def _nothing(_text: str) -> None:
    pass


class LeftOut(NamedTuple):
    """A study that is not what was stored."""

    name: str
    """`study 2, quick`."""
    workloads: frozenset[str] | None
    """Labels; None where that is damaged, too."""


@dataclass(frozen=True)
class WorkloadNumbers:
    """What the studies of a store measured of one workload; the store may be closed."""

    studies: tuple[StudyFacts, ...]
    numbers: tuple[StudyNumbers, ...]
    left_out: tuple[str, ...]

    def of(self, workload: str) -> tuple[StudyNumbers, ...]:
        """Of the one workload."""
        return self.numbers


@dataclass(frozen=True)
class StoredNumbers:
    """What the studies of a store measured. The store has to be open for as long as this is asked."""

    store: Store
    states: dict[int, str]
    """Store.study_states, when the studies were read."""
    facts: dict[int, StudyFacts] = field(default_factory=dict)
    """Of each study by number, the oldest first."""
    left_out: list[LeftOut] = field(default_factory=list)
    made: dict[int, dict[str, bytes]] = field(default_factory=dict)
    """Study → workload → its summary, of those whose trials were read now."""

    @property
    def studies(self) -> tuple[StudyFacts, ...]:
        """The oldest first; also those of which no trial ended."""
        return tuple(self.facts.values())

    def of(self, workload: str) -> tuple[StudyNumbers, ...]:
        """Each study's numbers in the workload (its label), the oldest first. Raises StoreError."""
        own = [one.study_id for one in self.studies if any(use.label == workload for use in one.workloads)]
        kept = self.store.summaries(workload) if any(number not in self.made for number in own) else {}
        with garbage_kept():
            return tuple(self._numbers(number, workload, kept.get(number)) for number in own)

    def of_one(self, workload: str) -> WorkloadNumbers:
        """All that is asked for the histories of one workload. Raises StoreError."""
        left_out = (one.name for one in self.left_out if one.workloads is None or workload in one.workloads)
        return WorkloadNumbers(self.studies, self.of(workload), tuple(left_out))

    def _numbers(self, number: int, workload: str, kept: tuple[str, bytes] | None) -> StudyNumbers:
        if number in self.made:
            return unpacked_numbers(self.made[number][workload])
        if kept is not None and kept[0] == self.states[number]:
            return unpacked_numbers(kept[1])
        study = self.store.find(number).study  # it has changed since, or what was kept is damaged
        trials = self.store.trials(number, counted=False, workload=workload)
        return numbers_of(number, study, trials, workload)


def stored_numbers(
    store: Store, tell: Tell = _nothing, *, leave_out: bool = False, before: StoredNumbers | None = None
) -> StoredNumbers:
    """Of every study. Where one has to be read that is not what was stored, it is left out, or StudyDamaged
    or TrialsDamaged is raised. `before`: what was found before, in a store that may not be written. Raises
    StoreError.
    """
    states = store.study_states()
    numbers = StoredNumbers(store, states)
    known = _as_before(numbers, before) if before else {}
    with garbage_kept():
        for number, one in store.summaries().items():
            if number not in known and states.get(number) == one.state:
                known[number] = unpacked_facts(one.content)
    if wanted := states.keys() - known.keys():
        known |= _made_now(numbers, wanted, tell, leave_out=leave_out)
    numbers.facts.update(sorted(known.items()))
    return numbers


def _as_before(numbers: StoredNumbers, before: StoredNumbers) -> dict[int, StudyFacts]:
    same = {number for number, state in numbers.states.items() if before.states.get(number) == state}
    numbers.made.update({number: made for number, made in before.made.items() if number in same})
    return {number: facts for number, facts in before.facts.items() if number in same}


def _made_now(
    numbers: StoredNumbers, wanted: Set[int], tell: Tell, *, leave_out: bool
) -> dict[int, StudyFacts]:
    """What is said of studies whose trials have to be read; it is kept as they are read."""
    readable = _readable(numbers, wanted, leave_out=leave_out)
    every = sum(one.finished for one in readable)
    if every >= _TOLD:
        tell(f"{numbers.store.name}: {every:,} trials are read, once, for the histories of their workloads")
    facts: dict[int, StudyFacts] = {}
    waiting: list[StudySummaries] = []
    trials = 0
    for stored in readable:
        if made := _made_of(numbers, stored, leave_out=leave_out):
            facts[stored.id] = made
            waiting.append(_summaries(numbers, made))
            trials += stored.finished
        if trials >= _AT_ONCE:
            numbers.store.keep_summaries(waiting)
            waiting, trials = [], 0
    if waiting:
        numbers.store.keep_summaries(waiting)
    return facts


def _readable(numbers: StoredNumbers, wanted: Set[int], *, leave_out: bool) -> list[StoredStudy]:
    readable, damaged = numbers.store.readable_studies(wanted)
    if damaged and not leave_out:
        numbers.store.find(damaged[0].id)  # it raises what is the matter with it
    numbers.left_out.extend(LeftOut(f"study {one.id}, {one.name}", None) for one in damaged)
    return list(readable)


def _made_of(numbers: StoredNumbers, stored: StoredStudy, *, leave_out: bool) -> StudyFacts | None:
    """None where its trials are not what was stored."""
    number, study = stored.id, stored.study
    labels = [use.label for use in study.workloads]
    try:
        trials = numbers.store.trials(number, counted=False)
    except TrialsDamaged:
        if not leave_out:
            raise
        numbers.left_out.append(LeftOut(f"study {number}, {study.name}", frozenset(labels)))
        return None
    numbers.made[number] = {label: packed(numbers_of(number, study, trials, label)) for label in labels}
    return facts_of(number, study, trials)


def summaries_of(record: StudyRecord, state: str) -> StudySummaries:
    """What is kept of a study for histories. `state`: the study's, from before the record was read."""
    number, study, trials = record.id, record.study, record.trials
    labels = [use.label for use in study.workloads]
    own = {label: packed(numbers_of(number, study, trials, label)) for label in labels}
    return StudySummaries(number, state, {OF_STUDY: packed(facts_of(number, study, trials)), **own})


def _summaries(numbers: StoredNumbers, made: StudyFacts) -> StudySummaries:
    by_workload = {OF_STUDY: packed(made), **numbers.made[made.study_id]}
    return StudySummaries(made.study_id, numbers.states[made.study_id], by_workload)
