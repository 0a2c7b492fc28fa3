"""What is looked up in a store: the workload that a name means, and a treatment's profile."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from ktrial.analysis.errors import WorkloadAmbiguous
from ktrial.model.design import Treatment
from ktrial.model.profile import Profile
from ktrial.model.study_record import StudyRecord
from ktrial.store import Store


class _Workload(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...


class _Study(Protocol):
    @property
    def workloads(self) -> Sequence[_Workload]: ...


def label_of(studies: Iterable[_Study], wanted: str) -> str:
    """The label of the workload that is meant: just this one, else the only one with this name.

    `seq-read` stands for `seq-read(path=/mnt, size=8)` where no study has another one. What no study has is
    returned as it is. Raises WorkloadAmbiguous.
    """
    uses = [use for study in studies for use in study.workloads]
    labels = _labels(uses, wanted)
    if len(labels) > 1:
        raise WorkloadAmbiguous(workload=wanted, count=len(labels), matching="; ".join(labels))
    return labels[0] if labels else wanted


def labels_of(studies: Sequence[_Study], wanted: Iterable[str]) -> list[str]:
    """`label_of` each, every label once. Raises WorkloadAmbiguous."""
    return list(dict.fromkeys(label_of(studies, one) for one in wanted))


def _labels(uses: Iterable[_Workload], wanted: str) -> list[str]:
    named = dict.fromkeys(use.label for use in uses if wanted in (use.label, use.name))
    return [wanted] if wanted in named else list(named)


def profile_of(store: Store, record: StudyRecord, treatment: Treatment, workload: str) -> Profile | None:
    """The treatment's profile of the workload (its label); None where no trial of it has one.

    Of the treatment's first trial, in the order of perturbations, that has one. Perturbation 0 changes
    nothing and has the tree of calls (`region.nodes`), the others have functions only. Raises StoreError.
    """
    own = [trial.planned for trial in record.trials if trial.planned.treatment.key == treatment.key]
    for planned in sorted(own, key=lambda one: one.perturbation.number):
        if profile := store.profile(record.id, planned.key, workload):
            return profile
    return None
