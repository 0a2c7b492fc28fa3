"""One store's studies into another one, of any kind, with their digests; what is there is skipped.

Trials are copied some at a time, each time in one transaction: what was interrupted is gone on with.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, RowMapping, Table, insert, select, text

from ktrial.fault_points import fault_point
from ktrial.store import integrity, study_rows, trial_rows
from ktrial.store.errors import StoreDamaged, StoreError
from ktrial.store.integrity import ANSWER, STUDY
from ktrial.store.part_files import Fill, Placed, kept
from ktrial.store.postgresql import is_postgresql
from ktrial.store.schema import (
    answers,
    counters,
    digests,
    has,
    kernel_differences,
    profiles,
    proofs,
    samples,
    series,
    studies,
    trials,
)
from ktrial.store.store import Store
from ktrial.store.transactions import Conflict
from ktrial.store.trial_rows import TrialRows

AT_ONCE = 50
"""Trials in one transaction; with a profile of each of 25 workloads they take some 25 MB."""


_ATTEMPTS = 5
"""Where another process stores the same trials meanwhile."""


_LARGE = (profiles, series)
"""What may lie in files, of either store: it is the same."""


_BELONGING = (samples, counters, *_LARGE)


class Copied(NamedTuple):
    """What became of one study."""

    number: int
    """In the store that it was copied to."""
    name: str
    copied: int
    """Trials that are there now, and were not."""
    there: int
    """Trials that were there, the same."""
    damaged: tuple[str, ...]
    """What is not as it was stored, and was not copied: keys of trials, `answer`…"""
    differing: tuple[str, ...]
    """What is there already, and says something else: it stays."""


class _Noted(NamedTuple):
    """A stored trial, before it is read."""

    id: int
    digests: RowMapping | None


def copy_study(
    source: Store,
    target: Store,
    number: int,
    *,
    keeps_number: bool,
    tell: Callable[[int], object] = lambda done: None,
) -> Copied:
    """Copy the study with all that belongs to it, or what of it is missing there. `tell`: trials so far.

    `keeps_number`: then trials keep their digests, of which it is a part; otherwise they are compared with
    them, and digests are made anew. Raises NotItsCopy, where the number is taken; StoreError.
    """
    study = source.transactions.read(lambda connection: read_study(connection, number))
    own = target.transactions.write(
        lambda connection: put_study(connection, study, source.name, target.name, keeps_number=keeps_number)
    )
    for attempt in range(_ATTEMPTS):
        try:
            trials_copied = _trials(source, target, number, own, tell)
            break
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
    missing = source.missing_trials(number)
    damaged, differing = target.transactions.write(lambda connection: put_parts(connection, study, own))
    copied, there, odd, other = trials_copied
    return Copied(
        own,
        study.row["name"],
        copied,
        there,
        (*odd, *damaged, *filter(None, [missing])),
        (*other, *differing),
    )


def check_is_copy(source: Store, target: Store) -> None:
    """Raises NotItsCopy where the other store has studies that this one has not, under the same numbers."""
    own, there = (store.transactions.read(study_numbers) for store in (source, target))
    for number, (digest, name) in there.items():
        if own.get(number, ("", ""))[0] != digest:
            raise StoreError(
                f"Store {target.name} is no copy of {source.name}: it has another study under the "
                f"number {number}, {name}.",
                hint="ktrial store merge puts studies into a store that has others, under new numbers",
            )


class _Judged(NamedTuple):
    """Keys of trials, by what becomes of them."""

    fresh: list[str]
    same: list[str]
    damaged: list[str]
    differing: list[str]


def _trials(
    source: Store, target: Store, number: int, own: int, tell: Callable[[int], object]
) -> tuple[int, int, list[str], list[str]]:
    """How many were copied, how many were there; keys of damaged and of differing ones."""
    mine = source.transactions.read(lambda connection: _noted(connection, number))
    theirs = target.transactions.read(lambda connection: _noted(connection, own))
    in_all = _Judged([], [], [], [])
    for keys in _some(list(mine)):
        alike = [key for key in keys if key in theirs and own == number and _alike(mine[key], theirs[key])]
        rest = [key for key in keys if key not in alike]
        read = _read_all(source, [mine[key].id for key in rest])
        judged = _judged(rest, read, mine, theirs, own)
        parts = [(read[mine[key].id], mine[key]) for key in judged.fresh]
        if parts:
            contents = (row["content"] for rows, _ in parts for row in (*rows.profiles, *rows.series))
            target.files.stored(contents, partial(_put, study_id=own, read=parts))
        for every, some in zip(in_all, judged._replace(same=judged.same + alike), strict=True):
            every.extend(some)
        tell(sum(map(len, in_all)))
    return len(in_all.fresh), len(in_all.same), in_all.damaged, in_all.differing


def _judged(
    keys: list[str],
    read: Mapping[int, TrialRows],
    mine: Mapping[str, _Noted],
    theirs: Mapping[str, _Noted],
    own: int,
) -> _Judged:
    judged = _Judged([], [], [], [])
    for key in keys:
        parts = read.get(mine[key].id)
        if parts is None or not _is_sound(parts, mine[key]):
            judged.damaged.append(key)
        elif key not in theirs:
            judged.fresh.append(key)
        else:
            (judged.same if _fits(parts, own, theirs[key]) else judged.differing).append(key)
    return judged


def _some(keys: list[str]) -> Iterator[list[str]]:
    return (keys[first : first + AT_ONCE] for first in range(0, len(keys), AT_ONCE))


def _noted(connection: Connection, study_id: int) -> dict[str, _Noted]:
    """Key → trial, in the order of storing."""
    noted = trial_rows.noted_digests(connection, study_id)
    query = select(trials.c.id, trials.c.key).where(trials.c.study_id == study_id).order_by(trials.c.id)
    return {key: _Noted(number, noted.get(number)) for number, key in connection.execute(query)}


def _alike(one: _Noted, other: _Noted) -> bool:
    """Whether both were stored with the same digests."""
    names = ("content", "counters", "profiles", "series")
    return bool(
        one.digests and other.digests and all(one.digests[name] == other.digests[name] for name in names)
    )


def _read_all(store: Store, numbers: Sequence[int]) -> dict[int, TrialRows]:
    """Trials by number, without those of which a row cannot be read at all."""
    if not numbers:
        return {}
    try:
        return store.transactions.read(
            lambda connection: trials_by_number(connection, numbers, store.files.fill)
        )
    except StoreDamaged:
        halves = (numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :])
        return {k: v for half in halves for k, v in _read_all(store, half).items()} if numbers[1:] else {}


def trials_by_number(connection: Connection, numbers: Sequence[int], fill: Fill) -> dict[int, TrialRows]:
    """All rows of the trials with these numbers, with what lies in files in place."""
    rows = connection.execute(select(trials).where(trials.c.id.in_(numbers))).mappings().all()
    grouped = [_by_trial(connection, table, numbers, fill) for table in _BELONGING]
    return {row["id"]: TrialRows(row, *(of.get(row["id"], []) for of in grouped)) for row in rows}


def _by_trial(
    connection: Connection, table: Table, numbers: Sequence[int], fill: Fill
) -> dict[int, list[Mapping[Any, Any]]]:
    if not has(connection, table):
        return {}
    grouped: dict[int, list[Mapping[Any, Any]]] = {}
    query = select(table).where(table.c.trial_id.in_(numbers)).order_by(table.c.id)
    rows: Sequence[Mapping[Any, Any]] = connection.execute(query).mappings().all()
    for row in fill(connection, table.name, rows) if table in _LARGE else rows:
        grouped.setdefault(row["trial_id"], []).append(row)
    return grouped


def _is_sound(parts: TrialRows, noted: _Noted) -> bool:
    return noted.digests is None or not any(trial_rows.differing_parts(parts, noted.digests))


def _fits(parts: TrialRows, study_id: int, there: _Noted) -> bool:
    """Whether the trial is what the other store has, where that can be told."""
    return there.digests is None or not any(
        trial_rows.differing_parts(_of_study(parts, study_id), there.digests)
    )


def _of_study(parts: TrialRows, study_id: int) -> TrialRows:
    return parts._replace(trial={**parts.trial, "study_id": study_id})


def _put(
    connection: Connection, placed: Placed, study_id: int, read: Sequence[tuple[TrialRows, _Noted]]
) -> None:
    """Insert trials with all that belongs to them."""
    moved = [(_of_study(parts, study_id), noted) for parts, noted in read]
    before = integrity.trial_set_before_change(connection, study_id)
    query = insert(trials).returning(trials.c.id, sort_by_parameter_order=True)
    numbers = connection.scalars(query, [_without_id(parts.trial) for parts, _ in moved]).all()
    fault_point("store: copied trials inserted")
    numbered = list(zip(numbers, moved, strict=True))
    for place, table in enumerate(_BELONGING, start=1):
        rows = [
            {**_without_id(row), "trial_id": number}
            for number, (parts, _) in numbered
            for row in parts[place]
        ]
        _insert(connection, table, kept(connection, table.name, rows, placed) if table in _LARGE else rows)
    fault_point("store: what belongs to copied trials inserted")
    made = (trial_rows.digest_row(number, parts) for number, (parts, noted) in numbered if noted.digests)
    _insert(connection, digests, made)
    added = integrity.trial_set_members(connection, trials.c.id.in_(numbers))
    integrity.note_trial_set(connection, study_id, before.changed(added=added))


def _insert(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    if listed := list(rows):
        connection.execute(insert(table), listed)


def _without_id(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "id"}


# What is stored of a study beside its trials, from one store to another, with its digests.

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
    """`integrity.noted_study_digests`."""


def study_numbers(connection: Connection) -> dict[int, tuple[str, str]]:
    """Number → digest and name, of every study."""
    names = dict(integrity.study_names(connection))
    rows = connection.execute(select(studies.c.id, studies.c.digest))
    return {number: (digest, names[number]) for number, digest in rows}


def read_study(connection: Connection, number: int) -> StudyRows:
    """Raises NotAsStored where the study's own row is not what was stored."""
    row = study_rows.study_row(connection, number)
    noted = integrity.noted_study_digests(connection, number)
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


def put_study(
    connection: Connection, study: StudyRows, source: str, target: str, *, keeps_number: bool
) -> int:
    """The study's number in the other store, where it is inserted if it is missing. Raises NotItsCopy."""
    number = study.row["id"]
    same = select(studies.c.id).where(studies.c.digest == study.row["digest"])
    there = connection.scalar(same)
    taken = connection.scalar(select(studies.c.id).where(studies.c.id == number)) is not None
    if keeps_number and (there != number if there is not None else taken):
        raise StoreError(
            f"Store {target} is no copy of {source}: it has another study under the number "
            f"{number}, {study.row['name']}.",
            hint="ktrial store merge puts studies into a store that has others, under new numbers",
        )
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
        integrity.note_study_digest(connection, int(inserted[0]), STUDY, digest)
    integrity.note_trial_set(connection, int(inserted[0]), integrity.TrialSet())
    return int(inserted[0])


def put_parts(connection: Connection, study: StudyRows, own: int) -> tuple[list[str], list[str]]:
    """Insert the parts that are missing. Which are damaged, and which are there and say something else."""
    damaged, differing = [], []
    for table, keys in _KEYS.items():
        for row in study.parts.get(table.name, []):
            what, made = _what(table, row), integrity.digest_of_content(row["content"])
            noted = study.noted.get((study.row["id"], what))
            same = [table.c.study_id == own, *(table.c[key] == row[key] for key in keys)]
            there = connection.scalar(select(table.c.content).where(*same))
            if noted not in {None, made}:
                damaged.append(what)
            elif there is None:
                values = {name: value for name, value in row.items() if name != "id"} | {"study_id": own}
                connection.execute(insert(table).values(**values))
                if noted:
                    integrity.note_study_digest(connection, own, what, noted)
            elif there != row["content"]:
                differing.append(what)
    fault_point("store: copied parts of a study inserted")
    return damaged, differing


def _what(table: Table, row: Mapping[Any, Any]) -> str:
    """What the part is noted as."""
    if table is kernel_differences:
        return integrity.difference_part(row["before"], row["after"])
    return ANSWER if table is answers else integrity.proof_part(row["difference"])
