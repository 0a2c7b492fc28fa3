"""What a stored study's differences are made of: loaded when there is a difference that profiles explain."""

from collections.abc import Iterable, Sequence

from ktrial.model.attribution import Attribution
from ktrial.model.comparison import Comparison
from ktrial.model.study import StudyRecord
from ktrial.store.store import Store


def explain(
    store: Store, record: StudyRecord, comparisons: Sequence[Comparison]
) -> Iterable[Attribution | None]:
    """Explain by the trials' profiles, with what the kernels in the cache tell. Raises StoreError."""
    from ktrial.experiment.explain import stored_explanations  # machines and kernels take their time to load

    return stored_explanations(store, record, comparisons)
