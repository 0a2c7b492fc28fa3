"""What the store that a command names knows of counted changes and time."""

from ktrial.analysis.fidelity_citation import known
from ktrial.model.fidelity import FidelityTable
from ktrial.store import default_location, open_store
from ktrial.store.errors import StoreError


def stored_tables(location: str | None) -> tuple[FidelityTable, ...]:
    """The tables that may be cited; none where there is no store, or where it cannot be read."""
    try:
        with open_store(location or default_location(), existing=True) as store:
            return known(store)
    except StoreError:
        return ()
