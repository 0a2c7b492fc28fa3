"""The numbers of all studies in a store: from what was kept of them, and from trials where they have changed.

A study's trials are read once: what a history asks of them is in the store from then on.
"""

import gc
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic_core import from_json

from ktrial.model.design import BUILD_KINDS, FactorKind, Perturbation, Treatment
from ktrial.model.machine import CgroupLimits
from ktrial.model.study import REAL_MACHINES, Disk, MachineSettings, Study, StudyRecord, treatments
from ktrial.model.trial import Outcome, Provenance, Trial
from ktrial.model.workload import STRING_BYTES, Sample
from ktrial.store.errors import TrialsDamaged
from ktrial.store.store import Store
from ktrial.store.study_rows import OF_STUDY, StoredStudy, StudySummaries

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


class NamedWorkload(NamedTuple):
    """A workload as a study uses it."""

    name: str
    label: str


class StudyFacts(NamedTuple):
    """What is asked about a study that has numbers."""

    study_id: int
    study: str
    margin: float
    workloads: tuple[NamedWorkload, ...]
    kernels: Mapping[str, str]
    """Kernels that were measured → their release; empty where none of them said it."""


# What the trials of one study say of one workload, as a history asks for it: made once, kept as JSON.

Facts = tuple[str, str, str, str, str, str, str, str, int, str]
"""What numbers share that may stand in one line: metric, unit, direction, mode, machine, QEMU, CPU model,
agent's digest, seed, settings."""


class Numbers(NamedTuple):
    """A treatment's numbers with the same facts.

    What many of them share is text, which is compared and hashed at once, a million times if need be; and
    taken apart where it is shown.
    """

    facts_text: str
    is_first: bool
    """Whether their metric is the one that the treatment's trials say first."""
    kernel_text: str
    treatment: str
    started: str
    """When the first of them was, as ISO 8601."""
    perturbations_text: str
    values: Sequence[float]

    @property
    def facts(self) -> Facts:
        """What they share with others in a line."""
        return _facts_in(self.facts_text)

    @property
    def kernel(self) -> tuple[str, str, str]:
        """Its name (or what the treatment is called), release and digest."""
        return _kernel_in(self.kernel_text)

    @property
    def perturbations(self) -> tuple[Perturbation, ...]:
        """Of each value."""
        return _perturbations_in(self.perturbations_text)


class StudyNumbers(NamedTuple):
    """All of a study in one workload: treatments as the study names them, whichever is the baseline."""

    study_id: int
    study: str
    metrics: tuple[str, ...]
    """As they were stored first."""
    every: Sequence[Numbers]


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


_OTHER_SYSTEM, _HOST = "ssh", "host="
"""The machine that is another system, and what says which among its arguments."""


_LEVEL = 1
"""Of compression: ten times smaller, and quick."""


def facts_of(number: int, study: Study, trials: Iterable[Trial]) -> StudyFacts:
    """From a study's trials."""
    seen: dict[str, str] = {}
    for provenance in (one.provenance for one in trials):
        seen[provenance.kernel] = provenance.kernel_release or seen.get(provenance.kernel, "")
    uses = tuple(NamedWorkload(use.name, use.label) for use in study.workloads)
    return StudyFacts(number, study.name, study.margin, uses, seen)


def numbers_of(number: int, study: Study, trials: Sequence[Trial], workload: str) -> StudyNumbers:
    """The workload's numbers in a study's trials, but for those that were refused."""
    by_treatment: dict[str, list[tuple[Trial, Sample]]] = {}
    metrics: dict[str, None] = {}
    for trial in trials:
        for sample in (one for one in trial.samples if one.workload == workload):
            metrics[sample.metric] = None
            if trial.outcome is not Outcome.REFUSED:
                by_treatment.setdefault(trial.planned.treatment.key, []).append((trial, sample))
    in_order = sorted(treatments(study), key=lambda one: _place(study, one))
    every = (
        made
        for one in in_order
        if one.key in by_treatment
        for made in _of_treatment(one, settings_in_words(study, one), by_treatment[one.key])
    )
    return StudyNumbers(number, study.name, tuple(metrics), tuple(every))


def _place(study: Study, treatment: Treatment) -> tuple[int, ...]:
    """Where the study names it: by its levels, of which any may be the baseline."""
    return tuple(one.levels.index(treatment.levels[one.name]) for one in study.factors)


def _of_treatment(
    treatment: Treatment, settings: str, measured: Sequence[tuple[Trial, Sample]]
) -> Iterator[Numbers]:
    first = next((one.metric for _, one in measured if one.metric != STRING_BYTES.name), None)
    by_facts: dict[str, list[tuple[Trial, Sample]]] = {}
    for trial, sample in measured:
        by_facts.setdefault(_facts(settings, trial.provenance, sample), []).append((trial, sample))
    for facts, own in by_facts.items():
        provenance = own[0][0].provenance
        in_order = sorted(own, key=lambda pair: pair[0].planned.block)
        kernel = (provenance.kernel or treatment.label, provenance.kernel_release, provenance.kernel_digest)
        yield Numbers(
            facts_text=facts,
            is_first=_facts_in(facts)[0] == first,
            kernel_text=_text(kernel),
            treatment=treatment.label,
            started=min(trial.started for trial, _ in own).isoformat(),
            perturbations_text=_as_text(tuple(trial.planned.perturbation for trial, _ in in_order)),
            values=tuple(sample.value for _, sample in in_order),
        )


def _facts(settings: str, provenance: Provenance, sample: Sample) -> str:
    facts: Facts = (
        sample.metric,
        sample.unit,
        sample.direction.value,
        sample.mode.value,
        _machine(provenance),
        provenance.qemu,
        provenance.cpu_model,
        provenance.agent_digest,
        provenance.seed,
        settings,
    )
    return _text(facts)


def _machine(provenance: Provenance) -> str:
    """Two other systems with one processor are two machines: `ssh lab1`."""
    given = provenance.machine_arguments if provenance.machine == _OTHER_SYSTEM else ()
    hosts = [one.removeprefix(_HOST) for one in given if one.startswith(_HOST)]
    return f"{provenance.machine} {hosts[0].rpartition('@')[2]}" if hosts else provenance.machine


def _text(plain: object) -> str:
    return json.dumps(plain, separators=(",", ":"))


@lru_cache(maxsize=4096)
def _as_text(perturbations: tuple[Perturbation, ...]) -> str:
    return _text([one.model_dump(mode="json", exclude_defaults=True) for one in perturbations])


@lru_cache(maxsize=4096)
def _perturbations_in(text: str) -> tuple[Perturbation, ...]:
    return tuple(map(Perturbation.model_validate, json.loads(text)))


@lru_cache(maxsize=4096)
def _facts_in(text: str) -> Facts:
    metric, unit, direction, mode, machine, qemu, cpu_model, agent_digest, seed, settings = json.loads(text)
    return metric, unit, direction, mode, machine, qemu, cpu_model, agent_digest, seed, settings


@lru_cache(maxsize=4096)
def _kernel_in(text: str) -> tuple[str, str, str]:
    name, release, digest = json.loads(text)
    return name, release, digest


def packed(made: StudyNumbers | StudyFacts) -> bytes:
    """As the store keeps it. What many numbers of a study share is written once."""
    plain: dict[str, Any] = made._asdict()
    if isinstance(made, StudyNumbers):
        shared = {text: place for place, text in enumerate(dict.fromkeys(_shared(made.every)))}
        plain["shared"] = list(shared)
        plain["every"] = [
            (shared[facts], first, shared[kernel], treatment, started, shared[perturbations], values)
            for facts, first, kernel, treatment, started, perturbations, values in made.every
        ]
    return zlib.compress(_text(plain).encode(), _LEVEL)


def _shared(every: Iterable[Numbers]) -> Iterator[str]:
    for one in every:
        yield from (one.facts_text, one.kernel_text, one.perturbations_text)


def unpacked_facts(content: bytes) -> StudyFacts:
    """What `packed` packed."""
    plain = from_json(zlib.decompress(content))
    return StudyFacts(**(plain | {"workloads": tuple(NamedWorkload(*one) for one in plain["workloads"])}))


def unpacked_numbers(content: bytes) -> StudyNumbers:
    """What `packed` packed."""
    plain = from_json(zlib.decompress(content))
    shared = plain["shared"]
    every = [
        Numbers(shared[facts], first, shared[kernel], treatment, started, shared[perturbations], values)
        for facts, first, kernel, treatment, started, perturbations, values in plain["every"]
    ]
    return StudyNumbers(plain["study_id"], plain["study"], tuple(plain["metrics"]), every)


# How a study sets its machine, in words: numbers under other settings stand in other lines of a history.

_OF_THE_KERNEL = BUILD_KINDS | {FactorKind.KERNEL}


_MILLISECOND = 1_000_000


def settings_in_words(study: Study, treatment: Treatment) -> str:
    """Memory, CPUs, boot parameters, disk, and the treatment's levels but for those of the kernel itself.

    Not which system it is: that is the machine's name.
    """
    kinds = {factor.name: factor.kind for factor in study.factors}
    levels = [
        f"{name}={level}" for name, level in treatment.levels.items() if kinds[name] not in _OF_THE_KERNEL
    ]
    return ", ".join((*_machine_label_machine(study.machine), *sorted(levels)))


def is_plain(words: str) -> bool:
    """Whether these are the settings of a machine that nobody set."""
    return words == ", ".join(_machine_label_machine(MachineSettings()))


def _machine_label_machine(machine: MachineSettings) -> Iterator[str]:
    if machine.kind not in REAL_MACHINES:
        yield f"{machine.memory_mib} MiB"
        yield f"{machine.cpus} CPU{'s' if machine.cpus > 1 else ''}"
    yield from machine.boot
    if machine.modules:
        yield f"modules {' '.join(machine.modules)}"
    if machine.pin:
        yield f"on CPUs {' '.join(map(str, machine.pin))}"
    if machine.sample_ns:
        yield f"sampled every {machine.sample_ns / _MILLISECOND:g} ms"
    if machine.cgroup:
        yield from _limits(machine.cgroup)
    if machine.disk:
        yield _disk(machine.disk)


def _limits(group: CgroupLimits) -> Iterator[str]:
    if group.cpus:
        yield f"the time of {group.cpus:g} CPUs for the programs"
    if group.memory_mib:
        yield f"{group.memory_mib} MiB for the programs"
    yield from (f"io.max {line}" for line in group.io)


def _disk(disk: Disk) -> str:
    """All that tells two disks apart."""
    parts = (
        f"{disk.kind.value} disk of {disk.size_mib} MiB with {disk.filesystem}",
        f"{disk.bandwidth_mib} MiB/s" if disk.bandwidth_mib else "",
        f"{disk.latency_us:g} µs" if disk.latency_us else "",
        "turning" if disk.rotational else "",
        f"at {disk.path}" if disk.path != Disk().path else "",
    )
    return " ".join(part for part in parts if part)


# No collection of garbage while a million values are read, none of which is any: it took half the time.


@contextmanager
def garbage_kept(*, for_good: bool = False) -> Iterator[None]:
    """Until the end of the block, in which many objects are made that stay. `for_good`: until the end of the
    process; no collection looks at them again. For commands that end soon.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if for_good:
            gc.freeze()
        if was_on:
            gc.enable()
