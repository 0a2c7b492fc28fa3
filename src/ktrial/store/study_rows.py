"""What is stored of a study beside its trials: written with its digest, compared with it when it is read."""

from typing import Any

from sqlalchemy import Connection, RowMapping, Select, delete, insert, select, update
from sqlalchemy.schema import CreateIndex

from ktrial.fault_points import fault_point
from ktrial.model.kernel_diff import KernelDifference
from ktrial.model.proof import Proof
from ktrial.model.tuning import Tuned
from ktrial.store import row_conversion, study_digests, trial_sets
from ktrial.store.existing_tables import has
from ktrial.store.postgresql import is_postgresql
from ktrial.store.schema import answers, kernel_differences, proofs, studies, trials_by_outcome
from ktrial.store.study_digests import ANSWER, PROOF, STUDY, NotAsStored
from ktrial.store.text_damage import undecodable_text


def store(connection: Connection, values: row_conversion.Row) -> int:
    """The id of the study with this digest (model.base.digest); a new one is inserted.

    One whose row is not what was stored is put right: what it asks for is known again.
    """
    if not is_postgresql(connection):  # where it was made with the tables, and this would wait for writers
        # A file that an older ktrial made does not have it.
        connection.execute(CreateIndex(trials_by_outcome, if_not_exists=True))
    number = connection.scalar(select(studies.c.id).where(studies.c.digest == values["digest"]))
    if number is None:
        inserted = connection.execute(insert(studies).values(**values)).inserted_primary_key
        assert inserted is not None, "every table has one integer as its key"
        number = int(inserted[0])
        fault_point("store: study inserted")
        study_digests.note(connection, number, STUDY, study_digests.of_study(values))
        trial_sets.note(connection, number, trial_sets.TrialSet())
        return number
    try:
        row_of(connection, number)
    except (NotAsStored, *study_digests.UNREADABLE):
        connection.execute(update(studies).where(studies.c.id == number).values(**values))
        study_digests.note(connection, number, STUDY, study_digests.of_study(values))
    return int(number)


def row_of(connection: Connection, number: int, query: Select[Any] | None = None) -> RowMapping:
    """The study's row. Raises NotAsStored where it is not what was stored, or has a text that is none.

    `query`: which reads it; without, all columns and nothing else.
    """
    query = select(studies).where(studies.c.id == number) if query is None else query
    try:
        with undecodable_text():
            row = connection.execute(query).mappings().one()
    except UnicodeError as error:
        raise NotAsStored(STUDY, number) from error
    check(study_digests.noted(connection, number), row)
    return row


def check(noted: dict[tuple[int, str], str], row: RowMapping) -> None:
    """Raises NotAsStored where a row of `studies` is not."""
    if not study_digests.fits(noted, row["id"], STUDY, study_digests.of_study(row)):
        raise NotAsStored(STUDY, row["id"])


def store_answer(connection: Connection, study_id: int, tuned: Tuned) -> None:
    """In place of an older one."""
    connection.execute(delete(answers).where(answers.c.study_id == study_id))
    fault_point("store: older answer removed")
    row = row_conversion.answer_row(study_id, tuned)
    connection.execute(insert(answers).values(**row))
    study_digests.note(connection, study_id, ANSWER, study_digests.of_content(row["content"]))


def answer(connection: Connection, study_id: int) -> Tuned | None:
    """None where there is none. Raises NotAsStored, zlib.error, pydantic.ValidationError."""
    if not has(connection, answers):
        return None
    content = connection.scalar(select(answers.c.content).where(answers.c.study_id == study_id))
    if content is None:
        return None
    made = study_digests.of_content(content)
    if not study_digests.fits(study_digests.noted(connection, study_id), study_id, ANSWER, made):
        raise NotAsStored(ANSWER, study_id)
    return row_conversion.answer_of(content)


def store_proof(connection: Connection, study_id: int, proof: Proof) -> None:
    """In place of an older one of the same difference."""
    row = row_conversion.proof_row(study_id, proof)
    same = [proofs.c[name] == row[name] for name in ("study_id", "difference")]
    connection.execute(delete(proofs).where(*same))
    fault_point("store: older proof removed")
    connection.execute(insert(proofs).values(**row))
    what = study_digests.proof(row["difference"])
    study_digests.note(connection, study_id, what, study_digests.of_content(row["content"]))


def proofs_of(connection: Connection, study_id: int) -> tuple[Proof, ...]:
    """In the order of storing. Raises NotAsStored, zlib.error, pydantic.ValidationError."""
    if not has(connection, proofs):
        return ()
    query = select(proofs).where(proofs.c.study_id == study_id).order_by(proofs.c.id)
    records = connection.execute(query).mappings().all()
    noted = study_digests.noted(connection, study_id) if records else {}
    for row in records:
        what = study_digests.proof(row["difference"])
        if not study_digests.fits(noted, study_id, what, study_digests.of_content(row["content"])):
            raise NotAsStored(PROOF, study_id)
    return tuple(row_conversion.proof_of(row["content"]) for row in records)


def proved(connection: Connection) -> frozenset[int]:
    """Studies of which something was proved."""
    there = has(connection, proofs)
    return frozenset(connection.scalars(select(proofs.c.study_id).distinct())) if there else frozenset()


def store_difference(connection: Connection, study_id: int, difference: KernelDifference) -> None:
    """In place of an older one between the same kernels."""
    table, row = kernel_differences, row_conversion.kernel_difference_row(study_id, difference)
    same = [table.c[name] == row[name] for name in ("study_id", "before", "after")]
    connection.execute(delete(table).where(*same))
    fault_point("store: older kernel difference removed")
    connection.execute(insert(table).values(**row))
    what = study_digests.difference(row["before"], row["after"])
    study_digests.note(connection, study_id, what, study_digests.of_content(row["content"]))


def differences(connection: Connection, study_id: int) -> tuple[KernelDifference, ...]:
    """In the order of storing. Raises NotAsStored, zlib.error, pydantic.ValidationError."""
    table = kernel_differences
    if not has(connection, table):
        return ()
    query = select(table).where(table.c.study_id == study_id).order_by(table.c.id)
    records = connection.execute(query).mappings().all()
    noted = study_digests.noted(connection, study_id) if records else {}
    for row in records:
        what = study_digests.difference(row["before"], row["after"])
        if not study_digests.fits(noted, study_id, what, study_digests.of_content(row["content"])):
            raise NotAsStored("difference between kernels", study_id)
    return tuple(row_conversion.kernel_difference_of(row["content"]) for row in records)
