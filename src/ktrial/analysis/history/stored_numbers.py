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

from ktrial.analysis.comparability import Programs, programs_of, with_same_programs
from ktrial.model.base import digest
from ktrial.model.design import BUILD_KINDS, FactorKind, Perturbation, Treatment
from ktrial.model.study import REAL_MACHINES, Disk, MachineSettings, Study, treatments
from ktrial.model.trial import Outcome, Provenance, Trial
from ktrial.model.workload import EXACT_MODES, STRING_BYTES, Mode, Sample
from ktrial.store.errors import TrialsDamaged
from ktrial.store.store import Store
from ktrial.store.study_rows import OF_STUDY, StudySummaries

_IN_HISTORIES = frozenset({"", "series", "watch"})
"""Whose studies histories are made of: the user's, and what these commands measure to be followed."""
_SHARED = 4
"""The first so many fields of Numbers are texts that many of them share."""
_AT_ONCE = 1_000
"""Trials whose summaries are written in one transaction."""
_MANY_TRIALS = 5_000
"""Reading so many takes some seconds, which is worth a word."""
Tell = Callable[[str], None]


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
    kernel_text: str
    programs_text: str
    perturbations_text: str
    is_first: bool
    """Whether their metric is the one that the treatment's trials say first."""
    treatment: str
    started: str
    """When the first of them was, as ISO 8601."""
    values: Sequence[float]

    @property
    def facts(self) -> Facts:
        """What they share with others in a line."""
        return _tuple_in(self.facts_text)

    @property
    def is_exact(self) -> bool:
        """Whether they are without noise."""
        return _is_exact(self.facts_text)

    @property
    def kernel(self) -> tuple[str, str, str]:
        """Its name (or what the treatment is called), release and digest."""
        return _tuple_in(self.kernel_text)

    @property
    def programs(self) -> Programs:
        """What they were measured with, apart from the machine, as far as trials noted it."""
        programs: Programs = json.loads(self.programs_text)
        return programs

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
    made: dict[int, Mapping[str, bytes]] = field(default_factory=dict)
    """Study → workload → its summary, of those whose trials were read now."""

    @property
    def studies(self) -> tuple[StudyFacts, ...]:
        """The oldest first; also those of which no trial ended."""
        return tuple(self.facts.values())

    def of(self, workload: str) -> tuple[StudyNumbers, ...]:
        """Each study's numbers in the workload (its label), the oldest first. Raises StoreError."""
        study_ids = [
            study.study_id for study in self.studies if any(use.label == workload for use in study.workloads)
        ]
        all_made = self.made.keys() >= set(study_ids)
        summaries = {} if all_made else self.store.summaries(workload)
        with garbage_kept():
            return tuple(self._numbers(number, workload, summaries.get(number)) for number in study_ids)

    def of_one(self, workload: str) -> WorkloadNumbers:
        """All that is asked for the histories of one workload. Raises StoreError."""
        left_out = (
            study.name for study in self.left_out if study.workloads is None or workload in study.workloads
        )
        return WorkloadNumbers(self.studies, self.of(workload), tuple(left_out))

    def _numbers(self, number: int, workload: str, summary: tuple[str, bytes] | None) -> StudyNumbers:
        if number in self.made:
            return unpacked_numbers(self.made[number][workload])
        if summary is not None and summary[0] == self.states[number]:
            return unpacked_numbers(summary[1])
        study = self.store.find(number).study  # it has changed since, or what was kept is damaged
        trials = self.store.trials(number, counted=False, workload=workload)
        return numbers_of(number, study, trials, workload)


def stored_numbers(
    store: Store,
    tell: Tell = lambda _text: None,
    *,
    leave_out: bool = False,
    before: StoredNumbers | None = None,
) -> StoredNumbers:
    """Of every study but those that a command made as a step of its own.

    Where one has to be read that is not what was stored, it is left out, or StudyDamaged or TrialsDamaged is
    raised. `before`: what was found before, in a store that may not be written. Raises StoreError.
    """
    own = store.studies_of_commands()
    states = {
        number: state
        for number, state in store.study_states().items()
        if own.get(number, "") in _IN_HISTORIES
    }
    numbers = StoredNumbers(store, states)
    facts: dict[int, StudyFacts] = {}
    if before:
        same = {number for number, state in states.items() if before.states.get(number) == state}
        numbers.made.update({number: before.made[number] for number in before.made.keys() & same})
        facts.update({number: before.facts[number] for number in before.facts.keys() & same})
    with garbage_kept():
        for number, summary in store.summaries().items():
            if number not in facts and states.get(number) == summary.state:
                facts[number] = unpacked_facts(summary.content)
    if stale := states.keys() - facts.keys():
        facts |= _made_now(numbers, stale, tell, leave_out=leave_out)
    numbers.facts.update(sorted(facts.items()))
    return numbers


def _made_now(
    numbers: StoredNumbers, stale: Set[int], tell: Tell, *, leave_out: bool
) -> dict[int, StudyFacts]:
    """What is said of studies whose trials have to be read; it is kept as they are read."""
    store = numbers.store
    readable, damaged = store.readable_studies(stale)
    if damaged and not leave_out:
        store.find(damaged[0].id)  # it raises what is the matter with it
    numbers.left_out.extend(LeftOut(f"study {study.id}, {study.name}", None) for study in damaged)
    total = sum(study.finished for study in readable)
    if total >= _MANY_TRIALS:
        tell(f"{store.name}: {total:,} trials are read, once, for the histories of their workloads")
    facts: dict[int, StudyFacts] = {}
    waiting: list[StudySummaries] = []
    waiting_trials = 0
    for stored in readable:
        try:
            trials = store.trials(stored.id, counted=False)
        except TrialsDamaged:
            if not leave_out:
                raise
            labels = frozenset(use.label for use in stored.study.workloads)
            numbers.left_out.append(LeftOut(f"study {stored.id}, {stored.study.name}", labels))
            continue
        summary = summaries_of(stored.id, stored.study, trials, numbers.states[stored.id])
        numbers.made[stored.id] = summary.by_workload
        facts[stored.id] = unpacked_facts(summary.by_workload[OF_STUDY])
        waiting.append(summary)
        waiting_trials += stored.finished
        if waiting_trials >= _AT_ONCE:
            store.keep_summaries(waiting)
            waiting, waiting_trials = [], 0
    if waiting:
        store.keep_summaries(waiting)
    return facts


def summaries_of(number: int, study: Study, trials: Sequence[Trial], state: str) -> StudySummaries:
    """What is kept of a study for histories. `state`: the study's, from before its trials were read."""
    by_workload = {OF_STUDY: packed(facts_of(number, study, trials))}
    for label in dict.fromkeys(use.label for use in study.workloads):
        by_workload[label] = packed(numbers_of(number, study, trials, label))
    return StudySummaries(number, state, by_workload)


_OTHER_SYSTEM, _HOST = "ssh", "host="
"""The machine that is another system, and what says which among its arguments."""
_LEVEL = 1
"""Of compression: ten times smaller, and quick."""


def facts_of(number: int, study: Study, trials: Iterable[Trial]) -> StudyFacts:
    """From a study's trials."""
    seen: dict[str, str] = {}
    for provenance in (trial.provenance for trial in trials):
        seen[provenance.kernel] = provenance.kernel_release or seen.get(provenance.kernel, "")
    uses = tuple(NamedWorkload(use.name, use.label) for use in study.workloads)
    return StudyFacts(number, study.name, study.margin, uses, seen)


def numbers_of(number: int, study: Study, trials: Sequence[Trial], workload: str) -> StudyNumbers:
    """The workload's numbers in a study's trials, but for those that were refused."""
    by_treatment: dict[str, list[tuple[Trial, Sample]]] = {}
    metrics: dict[str, None] = {}
    for trial in trials:
        for sample in trial.samples:
            if sample.workload == workload:
                metrics[sample.metric] = None
                if trial.outcome is not Outcome.REFUSED:
                    by_treatment.setdefault(trial.planned.treatment.key, []).append((trial, sample))

    def place(treatment: Treatment) -> tuple[int, ...]:
        # Where the study names it: by its levels, of which any may be the baseline.
        return tuple(factor.levels.index(treatment.levels[factor.name]) for factor in study.factors)

    command = next((use.command for use in study.workloads if use.label == workload), None)
    every: list[Numbers] = []
    for treatment in sorted(treatments(study), key=place):
        if measured := by_treatment.get(treatment.key):
            settings = settings_in_words(study, treatment)
            every += _of_treatment(treatment, settings, digest(command) if command else "", measured)
    return StudyNumbers(number, study.name, tuple(metrics), tuple(every))


def _of_treatment(
    treatment: Treatment, settings: str, command: str, measured: Sequence[tuple[Trial, Sample]]
) -> Iterator[Numbers]:
    """One for each kernel, machine and set of programs that its trials had: all have the same ones, unless
    something was exchanged while the study ran.
    """
    names = (sample.metric for _, sample in measured)
    first = next((name for name in names if name != STRING_BYTES.name), None)
    by_facts: dict[tuple[str, str], list[tuple[Trial, Sample]]] = {}
    for trial, sample in measured:
        key = (_facts(settings, trial.provenance, sample), _kernel(treatment, trial.provenance))
        by_facts.setdefault(key, []).append((trial, sample))
    for (facts, kernel), of_facts in by_facts.items():
        metric = _tuple_in(facts)[0]
        pairs = ((programs_of(pair[0].provenance, metric, command), pair) for pair in of_facts)
        for programs, of_programs in with_same_programs(pairs):
            in_order = sorted(of_programs, key=lambda pair: pair[0].planned.block)
            yield Numbers(
                facts_text=facts,
                is_first=metric == first,
                kernel_text=kernel,
                programs_text=_text(dict(sorted(programs.items()))),
                treatment=treatment.label,
                started=min(trial.started for trial, _ in of_programs).isoformat(),
                perturbations_text=_as_text(tuple(trial.planned.perturbation for trial, _ in in_order)),
                values=tuple(sample.value for _, sample in in_order),
            )


def _kernel(treatment: Treatment, provenance: Provenance) -> str:
    return _text((provenance.kernel or treatment.label, provenance.kernel_release, provenance.kernel_digest))


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
    arguments = provenance.machine_arguments if provenance.machine == _OTHER_SYSTEM else ()
    hosts = [argument.removeprefix(_HOST) for argument in arguments if argument.startswith(_HOST)]
    return f"{provenance.machine} {hosts[0].rpartition('@')[2]}" if hosts else provenance.machine


def _text(plain: object) -> str:
    return json.dumps(plain, separators=(",", ":"))


@lru_cache(maxsize=4096)
def _as_text(perturbations: tuple[Perturbation, ...]) -> str:
    return _text(
        [perturbation.model_dump(mode="json", exclude_defaults=True) for perturbation in perturbations]
    )


@lru_cache(maxsize=4096)
def _perturbations_in(text: str) -> tuple[Perturbation, ...]:
    return tuple(map(Perturbation.model_validate, json.loads(text)))


@lru_cache(maxsize=4096)
def _is_exact(facts: str) -> bool:
    return Mode(_tuple_in(facts)[3]) in EXACT_MODES


@lru_cache(maxsize=4096)
def _tuple_in(text: str) -> tuple[Any, ...]:
    return tuple(json.loads(text))


def packed(content: StudyNumbers | StudyFacts) -> bytes:
    """As the store keeps it. What many numbers of a study share is written once."""
    plain: dict[str, Any] = content._asdict()
    if isinstance(content, StudyNumbers):
        texts = (text for numbers in content.every for text in numbers[:_SHARED])
        shared = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        plain["shared"] = list(shared)
        plain["every"] = [
            (*(shared[text] for text in numbers[:_SHARED]), *numbers[_SHARED:]) for numbers in content.every
        ]
    return zlib.compress(_text(plain).encode(), _LEVEL)


def unpacked_facts(content: bytes) -> StudyFacts:
    """What `packed` packed."""
    plain = from_json(zlib.decompress(content))
    plain["workloads"] = tuple(NamedWorkload(*workload) for workload in plain["workloads"])
    return StudyFacts(**plain)


def unpacked_numbers(content: bytes) -> StudyNumbers:
    """What `packed` packed."""
    plain = from_json(zlib.decompress(content))
    shared = plain["shared"]
    every = [
        Numbers(*map(shared.__getitem__, numbers[:_SHARED]), *numbers[_SHARED:]) for numbers in plain["every"]
    ]
    return StudyNumbers(plain["study_id"], plain["study"], tuple(plain["metrics"]), every)


# How a study sets its machine, in words: numbers under other settings stand in other lines of a history.

_OF_THE_KERNEL = BUILD_KINDS | {FactorKind.KERNEL}
_MILLISECOND, _SECOND = 1_000_000, 1_000_000_000


def settings_in_words(study: Study, treatment: Treatment) -> str:
    """Memory, CPUs, boot parameters, disk, and the treatment's levels but for those of the kernel itself.

    Not which system it is: that is the machine's name.
    """
    kinds = {factor.name: factor.kind for factor in study.factors}
    levels = [
        f"{name}={level}" for name, level in treatment.levels.items() if kinds[name] not in _OF_THE_KERNEL
    ]
    return ", ".join((*_machine_settings(study.machine), *sorted(levels)))


def is_plain(words: str) -> bool:
    """Whether these are the settings of a machine that nobody set."""
    return words == ", ".join(_machine_settings(MachineSettings()))


def _machine_settings(machine: MachineSettings) -> Iterator[str]:
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
        if machine.cgroup.cpus:
            yield f"the time of {machine.cgroup.cpus:g} CPUs for the programs"
        if machine.cgroup.memory_mib:
            yield f"{machine.cgroup.memory_mib} MiB for the programs"
        yield from (f"io.max {line}" for line in machine.cgroup.io)
    if machine.disk:
        yield _disk(machine.disk)
    if machine.swap_mib:
        yield f"{machine.swap_mib} MiB of swap"
    usual = MachineSettings()
    if machine.settle_ns != usual.settle_ns:
        yield f"settled for {machine.settle_ns / _SECOND:g} s"
    if machine.files:
        yield f"with {' '.join(machine.files)}"
    if machine.quantum_ns != usual.quantum_ns:
        yield f"rounds of {machine.quantum_ns} ns"
    if machine.topology:
        nodes = (
            f", nodes of {', '.join(map(str, sizes))} MiB" if (sizes := machine.topology.nodes_mib) else ""
        )
        yield f"{machine.topology}{nodes}"
    if machine.memory_model != usual.memory_model:
        yield f"memory model {machine.memory_model.value}"


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
