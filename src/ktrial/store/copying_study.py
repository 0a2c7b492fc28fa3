"""What is stored of a study beside its trials, from one store to another, with its digests."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, RowMapping, Table, insert, select, text

from ktrial.fault_points import fault_point
from ktrial.store import study_digests, study_rows, trial_sets
from ktrial.store.errors import NotItsCopy
from ktrial.store.existing_tables import has
from ktrial.store.postgresql import is_postgresql
from ktrial.store.schema import answers, kernel_differences, proofs, studies
from ktrial.store.study_digests import ANSWER, STUDY

_KEYS: dict[Table, tuple[str, ...]] = {
    answers: (),
    kernel_differences: ("before", "after"),
    proofs: ("difference",),
}
"""Tables of a study's parts → what tells a part from others of its kind."""
_NEXT = "SELECT setval(pg_get_serial_sequence('studies', 'id'), (SELECT max(id) FROM studies))"


class StudyRows(NamedTuple):
    """All rows of a study, apart from its trials."""

    row: RowMapping
    parts: Mapping[str, list[RowMapping]]
    """By table."""
    noted: Mapping[tuple[int, str], str]
    """`study_digests.noted`."""


def numbers(connection: Connection) -> dict[int, tuple[str, str]]:
    """Number → digest and name, of every study."""
    names = dict(study_digests.named(connection))
    rows = connection.execute(select(studies.c.id, studies.c.digest))
    return {number: (digest, names[number]) for number, digest in rows}


def read(connection: Connection, number: int) -> StudyRows:
    """Raises NotAsStored where the study's own row is not what was stored."""
    row = study_rows.row_of(connection, number)
    noted = study_digests.noted(connection, number)
    parts = {
        table.name: list(
            connection.execute(
                select(table).where(table.c.study_id == number).order_by(table.c.id)
            ).mappings()
        )
        for table in _KEYS
        if has(connection, table)
    }
    return StudyRows(row, parts, noted)


def put(connection: Connection, study: StudyRows, source: str, target: str, *, keeps_number: bool) -> int:
    """The study's number in the other store, where it is inserted if it is missing. Raises NotItsCopy."""
    number = study.row["id"]
    same = select(studies.c.id).where(studies.c.digest == study.row["digest"])
    there = connection.scalar(same)
    taken = connection.scalar(select(studies.c.id).where(studies.c.id == number)) is not None
    if keeps_number and (there != number if there is not None else taken):
        raise NotItsCopy(store=target, source=source, number=number, study=study.row["name"])
    if there is not None:
        return int(there)
    values = {name: study.row[name] for name in ("name", "digest", "spec", "created")}
    values |= {"id": number} if keeps_number else {}
    inserted = connection.execute(insert(studies).values(**values)).inserted_primary_key
    assert inserted is not None, "every table has one integer as its key"
    fault_point("store: copied study inserted")
    if keeps_number and is_postgresql(connection):
        connection.execute(text(_NEXT))
    if digest := study.noted.get((number, STUDY)):
        study_digests.note(connection, int(inserted[0]), STUDY, digest)
    trial_sets.note(connection, int(inserted[0]), trial_sets.TrialSet())
    return int(inserted[0])


def put_parts(connection: Connection, study: StudyRows, own: int) -> tuple[list[str], list[str]]:
    """Insert the parts that are missing. Which are damaged, and which are there and say something else."""
    damaged, differing = [], []
    for table, keys in _KEYS.items():
        for row in study.parts.get(table.name, []):
            what, made = _what(table, row), study_digests.of_content(row["content"])
            noted = study.noted.get((study.row["id"], what))
            same = [table.c.study_id == own, *(table.c[key] == row[key] for key in keys)]
            there = connection.scalar(select(table.c.content).where(*same))
            if noted not in {None, made}:
                damaged.append(what)
            elif there is None:
                values = {name: value for name, value in row.items() if name != "id"} | {"study_id": own}
                connection.execute(insert(table).values(**values))
                if noted:
                    study_digests.note(connection, own, what, noted)
            elif there != row["content"]:
                differing.append(what)
    fault_point("store: copied parts of a study inserted")
    return damaged, differing


def _what(table: Table, row: Mapping[Any, Any]) -> str:
    """What the part is noted as."""
    if table is kernel_differences:
        return study_digests.difference(row["before"], row["after"])
    return ANSWER if table is answers else study_digests.proof(row["difference"])
