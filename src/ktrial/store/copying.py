"""One store's studies into another one, of any kind, with their digests; what is there is skipped.

Trials are copied some at a time, each time in one transaction: what was interrupted is gone on with.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, RowMapping, Table, insert, select

from ktrial.fault_points import fault_point
from ktrial.store import copying_study, trial_digests, trial_sets
from ktrial.store.errors import NotItsCopy, StoreDamaged
from ktrial.store.existing_tables import has
from ktrial.store.failures import Conflict
from ktrial.store.part_files import Fill, Placed, kept
from ktrial.store.schema import counters, digests, profiles, samples, series, trials
from ktrial.store.store import Store
from ktrial.store.trial_digests import TrialRows

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
    study = source.transactions.read(lambda connection: copying_study.read(connection, number))
    own = target.transactions.write(
        lambda connection: copying_study.put(
            connection, study, source.name, target.name, keeps_number=keeps_number
        )
    )
    for attempt in range(_ATTEMPTS):
        try:
            trials_copied = _trials(source, target, number, own, tell)
            break
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
    missing = source.missing_trials(number)
    damaged, differing = target.transactions.write(
        lambda connection: copying_study.put_parts(connection, study, own)
    )
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
    own, there = (store.transactions.read(copying_study.numbers) for store in (source, target))
    for number, (digest, name) in there.items():
        if own.get(number, ("", ""))[0] != digest:
            raise NotItsCopy(store=target.name, source=source.name, number=number, study=name)


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
    noted = trial_digests.noted_digests(connection, study_id)
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
    return noted.digests is None or not any(trial_digests.differing(parts, noted.digests))


def _fits(parts: TrialRows, study_id: int, there: _Noted) -> bool:
    """Whether the trial is what the other store has, where that can be told."""
    return there.digests is None or not any(
        trial_digests.differing(_of_study(parts, study_id), there.digests)
    )


def _of_study(parts: TrialRows, study_id: int) -> TrialRows:
    return parts._replace(trial={**parts.trial, "study_id": study_id})


def _put(
    connection: Connection, placed: Placed, study_id: int, read: Sequence[tuple[TrialRows, _Noted]]
) -> None:
    """Insert trials with all that belongs to them."""
    moved = [(_of_study(parts, study_id), noted) for parts, noted in read]
    before = trial_sets.before_change(connection, study_id)
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
    made = (trial_digests.digest_row(number, parts) for number, (parts, noted) in numbered if noted.digests)
    _insert(connection, digests, made)
    added = trial_sets.members(connection, trials.c.id.in_(numbers))
    trial_sets.note(connection, study_id, before.changed(added=added))


def _insert(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    if listed := list(rows):
        connection.execute(insert(table), listed)


def _without_id(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "id"}
