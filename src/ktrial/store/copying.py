"""One store's studies into another one, of any kind, with their digests; what is there is skipped.

Trials are copied some at a time, each time in one transaction: what was interrupted is gone on with.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, RowMapping, Table, insert, select, text

from ktrial.fault_points import fault_point
from ktrial.store import integrity, study_rows
from ktrial.store.errors import NotItsCopy, StoreDamaged
from ktrial.store.integrity import STUDY, StudyDigests
from ktrial.store.part_files import Fill, Placed, rows_to_insert
from ktrial.store.postgresql import is_postgresql
from ktrial.store.schema import counters, digests, profiles, samples, series, studies, trials
from ktrial.store.store import Store
from ktrial.store.study_rows import STUDY_PARTS
from ktrial.store.transactions import Conflict
from ktrial.store.trial_rows import TrialRows, differing_parts, digest_row, note_trials, noted_digests

AT_ONCE = 50
"""Trials in one transaction; with a profile of each of 25 workloads they take some 25 MB."""
_ATTEMPTS = 5
"""Where another process stores the same trials meanwhile."""
_LARGE = (profiles, series)
"""What may lie in files, of either store: it is the same."""
_TABLES_OF_TRIALS = (samples, counters, *_LARGE)
"""In the order of TrialRows."""
_NEXT_NUMBER = "SELECT setval(pg_get_serial_sequence('studies', 'id'), (SELECT max(id) FROM studies))"


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


class _StoredTrial(NamedTuple):
    """A stored trial, before it is read."""

    id: int
    digests: RowMapping | None
    """None where they are lost."""


class _SortedKeys(NamedTuple):
    """Keys of trials, by what becomes of them."""

    new: list[str]
    same: list[str]
    damaged: list[str]
    differing: list[str]


class StudyRows(NamedTuple):
    """All rows of a study, apart from its trials."""

    row: RowMapping
    parts: Mapping[str, list[RowMapping]]
    """By table."""
    noted: StudyDigests


def copy_study(
    source: Store,
    target: Store,
    number: int,
    *,
    keeps_number: bool,
    tell: Callable[[int], object] = lambda trials_so_far: None,
) -> Copied:
    """Copy the study with all that belongs to it, or what of it is missing there. `tell`: trials so far.

    `keeps_number`: then trials keep their digests, of which it is a part; otherwise they are compared with
    them, and digests are made anew. Raises NotItsCopy, where the number is taken; StoreError.
    """
    study = source.transactions.read(lambda connection: _read_study(connection, number))
    new_number = target.transactions.write(
        lambda connection: _insert_study(
            connection, study, source.name, target.name, keeps_number=keeps_number
        )
    )
    for attempt in range(_ATTEMPTS):
        try:
            keys = _copy_trials(source, target, number, new_number, tell)
            break
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
    missing = source.missing_trials(number)
    damaged, differing = target.transactions.write(
        lambda connection: _insert_parts(connection, study, new_number)
    )
    return Copied(
        new_number,
        study.row["name"],
        len(keys.new),
        len(keys.same),
        (*keys.damaged, *damaged, *filter(None, [missing])),
        (*keys.differing, *differing),
    )


def check_is_copy(source: Store, target: Store) -> None:
    """Raises NotItsCopy where the target has studies that the source has not, under the same numbers."""
    in_source, in_target = (store.transactions.read(_study_numbers) for store in (source, target))
    for number, (digest, name) in in_target.items():
        if in_source.get(number, ("", ""))[0] != digest:
            raise NotItsCopy(target.name, source.name, number, name)


def _study_numbers(connection: Connection) -> dict[int, tuple[str, str]]:
    """Number → digest and name, of every study."""
    names = dict(integrity.study_names(connection))
    rows = connection.execute(select(studies.c.id, studies.c.digest))
    return {number: (digest, names[number]) for number, digest in rows}


def _read_study(connection: Connection, number: int) -> StudyRows:
    """Raises NotAsStored where the study's own row is not what was stored."""
    row = study_rows.study_row(connection, number)
    noted = integrity.noted_study_digests(connection, number)
    parts = {}
    for part in STUDY_PARTS:
        query = select(part.table).where(part.table.c.study_id == number).order_by(part.table.c.id)
        parts[part.table.name] = list(connection.execute(query).mappings())
    return StudyRows(row, parts, noted)


def _insert_study(
    connection: Connection, study: StudyRows, source: str, target: str, *, keeps_number: bool
) -> int:
    """The study's number in the other store, where it is inserted if it is missing. Raises NotItsCopy."""
    number = study.row["id"]
    same = connection.scalar(select(studies.c.id).where(studies.c.digest == study.row["digest"]))
    is_taken = connection.scalar(select(studies.c.id).where(studies.c.id == number)) is not None
    if keeps_number and (same != number if same is not None else is_taken):
        raise NotItsCopy(target, source, number, study.row["name"])
    if same is not None:
        return int(same)
    values = {name: study.row[name] for name in ("name", "digest", "spec", "created", "made_by")}
    values |= {"id": number} if keeps_number else {}
    inserted = connection.execute(insert(studies).values(**values)).inserted_primary_key
    assert inserted is not None, "every table has one integer as its key"
    new_number = int(inserted[0])
    fault_point("store: copied study inserted")
    if keeps_number and is_postgresql(connection):
        connection.execute(text(_NEXT_NUMBER))
    integrity.note_new_study(connection, new_number, values["name"], study.noted[number, STUDY])
    return new_number


def _insert_parts(connection: Connection, study: StudyRows, number: int) -> tuple[list[str], list[str]]:
    """Insert the parts that are missing. Which are damaged, and which are there and say something else."""
    damaged, differing = [], []
    for part in STUDY_PARTS:
        for row in study.parts[part.table.name]:
            name, digest = integrity.part_of(part.kind, row), integrity.digest_of_content(row["content"])
            same = [part.table.c.study_id == number, *(part.table.c[key] == row[key] for key in part.keys)]
            content = connection.scalar(select(part.table.c.content).where(*same))
            if study.noted.get((study.row["id"], name)) != digest:
                damaged.append(name)
            elif content is None:
                connection.execute(insert(part.table).values(**_without_id(row) | {"study_id": number}))
                integrity.note_part(connection, number, name, digest)
            elif content != row["content"]:
                differing.append(name)
    fault_point("store: copied parts of a study inserted")
    return damaged, differing


def _copy_trials(
    source: Store, target: Store, number: int, new_number: int, tell: Callable[[int], object]
) -> _SortedKeys:
    in_source = source.transactions.read(lambda connection: _stored_trials(connection, number))
    in_target = target.transactions.read(lambda connection: _stored_trials(connection, new_number))
    keys_of_all = _SortedKeys([], [], [], [])
    for keys in _some_at_a_time(list(in_source)):
        alike = [
            key
            for key in keys
            if key in in_target
            and new_number == number
            and _have_same_digests(in_source[key], in_target[key])
        ]
        unlike = [key for key in keys if key not in alike]
        rows = _read_all(source, [in_source[key].id for key in unlike])
        keys_of_some = _sorted_keys(unlike, rows, in_source, in_target, new_number)
        if new := [rows[in_source[key].id] for key in keys_of_some.new]:
            contents = (row["content"] for trial in new for row in (*trial.profiles, *trial.series))
            target.files.stored(contents, partial(_insert_trials, study_id=new_number, copied=new))
        for all_keys, some_keys in zip(
            keys_of_all, keys_of_some._replace(same=keys_of_some.same + alike), strict=True
        ):
            all_keys.extend(some_keys)
        tell(sum(map(len, keys_of_all)))
    return keys_of_all


def _stored_trials(connection: Connection, study_id: int) -> dict[str, _StoredTrial]:
    """Key → trial, in the order of storing."""
    noted = noted_digests(connection, study_id)
    query = select(trials.c.id, trials.c.key).where(trials.c.study_id == study_id).order_by(trials.c.id)
    return {key: _StoredTrial(number, noted.get(number)) for number, key in connection.execute(query)}


def _some_at_a_time(keys: list[str]) -> Iterator[list[str]]:
    return (keys[first : first + AT_ONCE] for first in range(0, len(keys), AT_ONCE))


def _have_same_digests(first: _StoredTrial, second: _StoredTrial) -> bool:
    names = ("content", "counters", "profiles", "series")
    return bool(
        first.digests
        and second.digests
        and all(first.digests[name] == second.digests[name] for name in names)
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
        if len(numbers) == 1:
            return {}
        middle = len(numbers) // 2
        return _read_all(store, numbers[:middle]) | _read_all(store, numbers[middle:])


def trials_by_number(connection: Connection, numbers: Sequence[int], fill: Fill) -> dict[int, TrialRows]:
    """All rows of the trials with these numbers, with what lies in files in place."""
    grouped: list[dict[int, list[Mapping[Any, Any]]]] = []
    for table in _TABLES_OF_TRIALS:
        query = select(table).where(table.c.trial_id.in_(numbers)).order_by(table.c.id)
        rows: Sequence[Mapping[Any, Any]] = connection.execute(query).mappings().all()
        by_trial: dict[int, list[Mapping[Any, Any]]] = {}
        for row in fill(connection, table.name, rows) if table in _LARGE else rows:
            by_trial.setdefault(row["trial_id"], []).append(row)
        grouped.append(by_trial)
    trial_rows = connection.execute(select(trials).where(trials.c.id.in_(numbers))).mappings().all()
    return {
        row["id"]: TrialRows(row, *(by_trial.get(row["id"], []) for by_trial in grouped))
        for row in trial_rows
    }


def _sorted_keys(
    keys: list[str],
    rows: Mapping[int, TrialRows],
    in_source: Mapping[str, _StoredTrial],
    in_target: Mapping[str, _StoredTrial],
    new_number: int,
) -> _SortedKeys:
    result = _SortedKeys([], [], [], [])
    for key in keys:
        trial = rows.get(in_source[key].id)
        noted = in_source[key].digests
        if trial is None or noted is None or any(differing_parts(trial, noted)):
            result.damaged.append(key)
        elif key not in in_target:
            result.new.append(key)
        else:
            noted = in_target[key].digests
            is_same = noted is not None and not any(differing_parts(_of_study(trial, new_number), noted))
            (result.same if is_same else result.differing).append(key)
    return result


def _of_study(rows: TrialRows, study_id: int) -> TrialRows:
    return rows._replace(trial={**rows.trial, "study_id": study_id})


def _insert_trials(
    connection: Connection, placed: Placed, study_id: int, copied: Sequence[TrialRows]
) -> None:
    """Insert trials with all that belongs to them."""
    moved = [_of_study(rows, study_id) for rows in copied]
    before = integrity.trial_set_before_change(connection, study_id)
    query = insert(trials).returning(trials.c.id, sort_by_parameter_order=True)
    numbers = connection.scalars(query, [_without_id(rows.trial) for rows in moved]).all()
    fault_point("store: copied trials inserted")
    for place, table in enumerate(_TABLES_OF_TRIALS, start=1):
        table_rows = [
            {**_without_id(row), "trial_id": number}
            for number, rows in zip(numbers, moved, strict=True)
            for row in rows[place]
        ]
        if table in _LARGE:
            table_rows = rows_to_insert(connection, table.name, table_rows, placed)
        _insert(connection, table, table_rows)
    fault_point("store: what belongs to copied trials inserted")
    digest_rows = [digest_row(number, rows) for number, rows in zip(numbers, moved, strict=True)]
    _insert(connection, digests, digest_rows)
    note_trials(connection, study_id, (rows.trial["key"] for rows in moved), digest_rows)
    added = integrity.trial_set_members(connection, trials.c.id.in_(numbers))
    integrity.note_trial_set(connection, study_id, before.changed(added=added))


def _insert(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    if listed := list(rows):
        connection.execute(insert(table), listed)


def _without_id(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "id"}
