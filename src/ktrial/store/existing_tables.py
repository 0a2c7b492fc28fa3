"""Which tables a store has: one of an older schema that may only be read does not have all."""

from sqlalchemy import Connection, Table, inspect

_KNOWN = "ktrial tables"


def has(connection: Connection, table: Table) -> bool:
    """Whether the table is there; one that was is not looked for again by the same connection."""
    known: set[str] = connection.info.setdefault(_KNOWN, set())
    if table.name not in known and inspect(connection).has_table(table.name):
        known.add(table.name)
    return table.name in known
