"""What tells one content of a study from another, from indexes alone: trials are not read."""

import hashlib
from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from ktrial.model.trial import Outcome
from ktrial.store.existing_tables import has
from ktrial.store.schema import studies, study_digests, trials


def of_all(connection: Connection, number: int | None = None) -> dict[int, str]:
    """A study's number → a digest that changes with its trials, its answer, proofs and kernel differences.
    `number`: of this one alone.

    A trial that is stored is never changed; only one that did not complete is ever replaced, by one that was
    started later.
    """
    numbers = connection.scalars(select(studies.c.id).where(*_only(studies.c.id, number)))
    made = {each: hashlib.sha256() for each in numbers}
    for row in _facts(connection, number):
        if row[0] in made:
            made[row[0]].update(repr(tuple(row)).encode())
    return {each: digest.hexdigest() for each, digest in made.items()}


def _only(column: ColumnElement[int], number: int | None) -> Iterable[ColumnElement[bool]]:
    return () if number is None else (column == number,)


def _facts(connection: Connection, number: int | None) -> Iterable[Any]:
    counts = select(trials.c.study_id, trials.c.outcome, func.count(trials.c.id), func.max(trials.c.id))
    counts = counts.where(*_only(trials.c.study_id, number))
    by_outcome = (trials.c.study_id, trials.c.outcome)
    yield from connection.execute(counts.group_by(*by_outcome).order_by(*by_outcome)).all()
    others = [one.value for one in Outcome if one is not Outcome.COMPLETED]
    # Each study by itself: the index begins with it.
    failed = select(trials.c.study_id, trials.c.id, trials.c.started).where(
        trials.c.study_id.in_(select(studies.c.id).where(*_only(studies.c.id, number))),
        trials.c.outcome.in_(others),
    )
    yield from connection.execute(failed.order_by(trials.c.id))
    if has(connection, study_digests):
        noted = select(study_digests.c.study_id, study_digests.c.what, study_digests.c.digest)
        noted = noted.where(*_only(study_digests.c.study_id, number))
        yield from connection.execute(noted.order_by(study_digests.c.study_id, study_digests.c.what)).all()
