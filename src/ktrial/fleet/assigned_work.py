"""What one call on a worker is for."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ktrial.errors import KtrialError
from ktrial.experiment.jobs import Job, Steps
from ktrial.fleet.messages import Bench, Gone, Order, Several
from ktrial.fleet.repeated_trials import Check
from ktrial.fleet.trial_queue import Entry, Member
from ktrial.machines import Machine
from ktrial.model.design import PlannedTrial
from ktrial.model.machine import Boot
from ktrial.model.trial import Trial
from ktrial.model.warnings import DataWarning


@dataclass(frozen=True)
class Work:
    """Trials, a second performance of one, or a system that is prepared."""

    member: Member
    entries: tuple[Entry, ...] = ()
    """The trials that are performed, one after another."""
    check: Check | None = None
    """The trial is performed once more."""
    boot: Boot | None = None
    """The system that is prepared."""
    begun: float = field(default_factory=time.monotonic)

    def parts(self, answer: object) -> "Iterator[tuple[Work, object]]":
        """Each trial of it, with its own answer; what the worker did not come to is answered with Gone."""
        if not isinstance(answer, Several):
            yield self, answer
            return
        replies: list[object] = [*answer.replies]
        replies += [Gone()] * (len(self.entries) - len(replies))
        for entry, reply in zip(self.entries, replies, strict=True):
            yield replace(self, entries=(entry,)), reply


def order_for(bench: Bench, entry: Entry) -> Order:
    """What a worker is told, to perform the trial."""
    return Order(bench, entry.package.digest, entry.planned, entry.steps)


def steps_of(job: Job, machine: Machine, planned: PlannedTrial) -> Steps | None:
    """None: the worker finds out why there are none."""
    try:
        return job.with_steps(machine.mode, planned.perturbation).said
    except KtrialError:
        return None


def by_worker(trial: Trial, worker: str, warnings: tuple[DataWarning, ...]) -> Trial:
    """The trial, with who performed it."""
    provenance = trial.provenance.model_copy(update={"worker": worker})
    return trial.model_copy(update={"provenance": provenance, "warnings": (*trial.warnings, *warnings)})
