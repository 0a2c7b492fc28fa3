"""What is looked up in a store: the workload that a name means, and a treatment's profile."""

import os
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from ktrial.analysis.errors import AnalysisUsageError
from ktrial.model.design import Treatment
from ktrial.model.machine import Activity
from ktrial.model.profile import Profile
from ktrial.model.study import StudyRecord
from ktrial.process_identity import born, same_boot
from ktrial.store.store import Store


class _Workload(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...


class _Study(Protocol):
    @property
    def workloads(self) -> Sequence[_Workload]: ...


def label_of(studies: Iterable[_Study], name: str) -> str:
    """The label of the workload that is meant: just this one, else the only one with this name.

    `seq-read` stands for `seq-read(path=/mnt, size=8)` where no study has another one. What no study has is
    returned as it is. Raises AnalysisUsageError.
    """
    uses = [use for study in studies for use in study.workloads]
    labels = _labels(uses, name)
    if len(labels) > 1:
        raise AnalysisUsageError(
            f"{len(labels)} workloads are called {name}: {'; '.join(labels)}.",
            hint="give one as it is written there, in quotes",
        )
    return labels[0] if labels else name


def labels_of(studies: Sequence[_Study], names: Iterable[str]) -> list[str]:
    """`label_of` each, every label once. Raises AnalysisUsageError."""
    return list(dict.fromkeys(label_of(studies, name) for name in names))


def _labels(uses: Iterable[_Workload], name: str) -> list[str]:
    named = dict.fromkeys(use.label for use in uses if name in (use.label, use.name))
    return [name] if name in named else list(named)


def profile_of(store: Store, record: StudyRecord, treatment: Treatment, workload: str) -> Profile | None:
    """The treatment's profile of the workload (its label); None where no trial of it has one.

    Of the treatment's first trial, in the order of perturbations, that has one. Perturbation 0 changes
    nothing and has the tree of calls (`region.nodes`), the others have functions only. Raises StoreError.
    """
    of_treatment = [trial.planned for trial in record.trials if trial.planned.treatment.key == treatment.key]
    for planned in sorted(of_treatment, key=lambda planned_: planned_.perturbation.number):
        if profile := store.profile(record.id, planned.key, workload):
            return profile
    return None


# Which studies run now, and who runs them: by what runs told the store, and by whether they still can.


@dataclass(frozen=True)
class RunningStudy:
    """A study that at least one process runs, or was running when it was last heard of."""

    study_id: int
    runs: tuple[Activity, ...]
    """Those that run, the oldest first; of a study without any those that ended without a word."""
    is_alive: bool
    """Whether any of them runs."""


def running_studies(store: Store, at: datetime | None = None) -> tuple[RunningStudy, ...]:
    """By their numbers. Raises StoreError."""
    moment = at or datetime.now(UTC)
    by_study: dict[int, list[Activity]] = {}
    for study_id, activity in store.activities():
        by_study.setdefault(study_id, []).append(activity)
    return tuple(_running(study_id, runs, moment) for study_id, runs in sorted(by_study.items()))


def _running(study_id: int, runs: Sequence[Activity], at: datetime) -> RunningStudy:
    alive = [activity for activity in runs if is_alive(activity, at)]
    shown = sorted(alive or runs, key=lambda activity: (activity.started, activity.key))
    return RunningStudy(study_id, tuple(shown), bool(alive))


def is_alive(activity: Activity, at: datetime) -> bool:
    """Whether the process runs: on this host it is looked for, else it was heard of not too long ago."""
    if activity.host == socket.gethostname() and same_boot(activity.born, born(os.getpid())):
        return born(activity.process) == activity.born
    return abs((at - activity.heard).total_seconds()) <= activity.silence_seconds
