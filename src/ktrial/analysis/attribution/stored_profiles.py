"""What the QEMU plugin counted by function in a study's trials, found again in the store."""

from ktrial.model.design import Treatment
from ktrial.model.profile import Profile
from ktrial.model.study_record import StudyRecord
from ktrial.store import Store


def profile_of(store: Store, record: StudyRecord, treatment: Treatment, workload: str) -> Profile | None:
    """The treatment's profile of the workload (its label); None where no trial of it has one.

    Of the treatment's first trial, in the order of perturbations, that has one. Perturbation 0 changes
    nothing and has the tree of calls (`region.nodes`), the others have functions only. Raises StoreError.
    """
    own = [trial.planned for trial in record.trials if trial.planned.treatment.key == treatment.key]
    for planned in sorted(own, key=lambda one: one.perturbation.number):
        if found := store.profile(record.id, planned.key, workload):
            return found
    return None
