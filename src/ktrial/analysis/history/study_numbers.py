"""What the trials of one study say of one workload, as a history asks for it: made once, kept as JSON."""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic_core import from_json

from ktrial.analysis.history.machine_label import settings_in_words
from ktrial.model.design import Perturbation, Treatment
from ktrial.model.plan import treatments
from ktrial.model.study import Study
from ktrial.model.trial import Outcome, Provenance, Trial
from ktrial.model.workload import STRING_BYTES, Sample

Facts = tuple[str, str, str, str, str, str, str, str, int, str]
"""What numbers share that may stand in one line: metric, unit, direction, mode, machine, QEMU, CPU model,
agent's digest, seed, settings."""
_OTHER_SYSTEM, _HOST = "ssh", "host="
"""The machine that is another system, and what says which among its arguments."""
_LEVEL = 1
"""Of compression: ten times smaller, and quick."""


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
