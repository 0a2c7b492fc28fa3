"""At the end of a run what histories and sites ask of its study is kept: while its trials are at hand."""

from ktrial.analysis.brief_results import summary_of
from ktrial.analysis.history.stored_numbers import summaries_of
from ktrial.analysis.result import record
from ktrial.model.study_record import StudyRecord
from ktrial.store import Store


def record_kept(store: Store, number: int) -> StudyRecord:
    """The study's record, from which the store keeps what else would be read from all its trials again.

    Where that cannot be written it is made when it is asked for. Raises StoreError, as `record`.
    """
    state = store.study_states(number).get(number)  # from before: trials of another run may come in between
    made = record(store, number)
    if state is not None:
        store.keep_summaries([summaries_of(made, state), summary_of(made, state)])
    return made
