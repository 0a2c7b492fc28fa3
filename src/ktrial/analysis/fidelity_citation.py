"""What a fidelity result in the store says of changes as large as one that exact mode has counted."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ktrial.model.base import digest
from ktrial.model.fidelity import CountBands, FidelityCitation, FidelityResult, FidelityTable
from ktrial.store.errors import StoreError
from ktrial.store.store import Store
from ktrial.store.study_rows import OF_FIDELITY, StudySummaries

if TYPE_CHECKING:  # what makes such results reads scipy, which takes a second
    from ktrial.analysis.fidelity import Both


def table_of(result: FidelityResult, studies: "Sequence[Both]") -> FidelityTable:
    """What of a result may be cited; `studies` are those that it was made of."""
    timed = [record for _, record in studies]
    cpus = (trial.provenance.cpu_model for record in timed for trial in record.trials)
    return FidelityTable(
        studies=result.studies,
        names=tuple(dict.fromkeys(record.study.name for record in timed)),
        machine=result.timed_machine,
        cpu_models=tuple(dict.fromkeys(cpu for cpu in cpus if cpu)),
        counts=tuple(CountBands(count=fidelity.count, bands=fidelity.bands) for fidelity in result.all),
    )


def keep(store: Store, table: FidelityTable) -> bool:
    """Keep it beside its studies, in place of an older one. False where the store cannot be written."""
    state = _state(store.study_states(), table)
    content = table.model_dump_json().encode()
    return store.keep_summaries([StudySummaries(table.studies[0][1], state, {OF_FIDELITY: content})])


def kept(store: Store) -> tuple[FidelityTable, ...]:
    """The tables whose studies are as they were. Raises StoreError."""
    summaries = store.summaries(OF_FIDELITY)
    if not summaries:
        return ()
    states = store.study_states()
    tables = (
        (FidelityTable.model_validate_json(summary.content), summary.state) for summary in summaries.values()
    )
    return tuple(table for table, state in tables if _state(states, table) == state)


def known(store: Store) -> tuple[FidelityTable, ...]:
    """The same; none where the store cannot say: what is cited is beside the point of the command."""
    try:
        return kept(store)
    except StoreError:
        return ()


def cite(tables: Iterable[FidelityTable], count: str, ratio: float | None) -> FidelityCitation | None:
    """What the table with the most cases says of changes of this size by this count; None where none does."""
    if not ratio or ratio <= 0:
        return None
    size = max(ratio, 1 / ratio)
    citations = [
        FidelityCitation(
            count=count,
            band=band,
            machine=table.machine,
            cpu_models=table.cpu_models,
            names=table.names,
        )
        for table in tables
        for counted in table.counts
        if counted.count == count
        for band in counted.bands
        if band.low <= size and (band.high is None or size < band.high)
    ]
    return max(citations, key=lambda citation: citation.band.decided, default=None)


def _state(states: Mapping[int, str], table: FidelityTable) -> str:
    return digest([[states.get(number, "") for number in pair] for pair in table.studies])
