"""What studies' trials say of a workload, kept so that a history need not read the trials.

A summary can always be made again: one that is damaged, or whose study has changed, is not returned.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from ktrial.store.existing_tables import has
from ktrial.store.schema import summaries

OF_STUDY = ""
"""In place of a workload: what is said of a study as a whole."""
OF_RESULT = "(result)"
"""In place of a workload: what a study came to. No workload's label begins so."""

OF_FIDELITY = "(fidelity)"
"""The same: how far what was counted agrees with a study in real time."""


class Summary(NamedTuple):
    """What was kept of a study."""

    state: str
    """The study's then (`study_states`), or what else it is true for."""
    content: bytes


class StudySummaries(NamedTuple):
    """Summaries of a study, which are kept together."""

    study_id: int
    state: str
    by_workload: Mapping[str, bytes]


def of_workload(connection: Connection, workload: str) -> dict[int, Summary]:
    """Study → its summary of the workload (its label), where it has one that is as it was stored."""
    if not has(connection, summaries):
        return {}
    columns = (summaries.c.study_id, summaries.c.state, summaries.c.content, summaries.c.digest)
    rows = connection.execute(select(*columns).where(summaries.c.workload == workload)).all()
    return {
        number: Summary(state, content) for number, state, content, digest in rows if _of(content) == digest
    }


def keep(connection: Connection, made: Iterable[StudySummaries]) -> None:
    """In place of older ones of the same workloads."""
    for one in made:
        same = (summaries.c.study_id == one.study_id, summaries.c.workload.in_(list(one.by_workload)))
        connection.execute(delete(summaries).where(*same))
        rows = [
            {
                "study_id": one.study_id,
                "workload": workload,
                "state": one.state,
                "content": content,
                "digest": _of(content),
            }
            for workload, content in one.by_workload.items()
        ]
        connection.execute(insert(summaries), rows)


def _of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
