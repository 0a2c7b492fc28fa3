"""What the trials ran on: everything in their provenance, each distinct value once."""

from collections.abc import Callable
from typing import NamedTuple

from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Provenance, Trial
from ktrial.report.text.comparisons import treatments


class KernelFacts(NamedTuple):
    """One kernel that trials ran on."""

    name: str
    release: str
    package: str
    digest: str
    config_digest: str


class Fact(NamedTuple):
    """One property of the machine, with the treatments it holds for (empty: all of them)."""

    name: str
    value: str
    treatments: tuple[str, ...] = ()


def kernels(record: StudyRecord) -> tuple[KernelFacts, ...]:
    """The kernels, in the order of the treatments."""
    met = (trial.provenance for trial in _in_order(record) if trial.provenance.kernel)
    return tuple(
        dict.fromkeys(
            KernelFacts(
                one.kernel, one.kernel_release, one.kernel_package, one.kernel_digest, one.config_digest
            )
            for one in met
        )
    )


_PROPERTIES: tuple[tuple[str, Callable[[Provenance], str]], ...] = (
    ("ktrial", lambda one: one.ktrial),
    ("Machine", lambda one: one.machine),
    ("QEMU", lambda one: one.qemu),
    ("CPU model", lambda one: one.cpu_model),
    ("QEMU arguments", lambda one: " ".join(one.machine_arguments)),
    ("Kernel command line", lambda one: one.command_line),
    ("Guest agent", lambda one: one.agent_digest),
    ("Seed", lambda one: str(one.seed) if one.machine else ""),
    ("Snapshot", lambda one: one.snapshot),
)


def machine(record: StudyRecord) -> tuple[Fact, ...]:
    """The machine's properties; one that differs between trials comes once a value, with its treatments."""
    return tuple(fact for name, read in _PROPERTIES for fact in _facts(name, read, _in_order(record)))


def _in_order(record: StudyRecord) -> list[Trial]:
    """The trials by treatment: the order in which they ran is random."""
    places = {label: place for place, label in enumerate(treatments(record))}
    return sorted(record.trials, key=lambda trial: places[trial.planned.treatment.label])


def _facts(name: str, read: Callable[[Provenance], str], trials: list[Trial]) -> list[Fact]:
    held: dict[str, tuple[str, ...]] = {}
    for trial in trials:
        value = read(trial.provenance)
        label = trial.planned.treatment.label
        if value and label not in held.setdefault(value, ()):
            held[value] = (*held[value], label)
    if len(held) == 1:
        return [Fact(name, value) for value in held]
    return [Fact(name, value, treatments) for value, treatments in held.items()]
