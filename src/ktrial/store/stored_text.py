"""Trials from the text that their rows have, without a model of what is the same again and again.

A store of a million trials says the same few things a million times: which kernel, which QEMU, settings. JSON
is kept as the text that the database has; what the same text means is worked out once. The digest of a trial
is made of that text, too: it is that of `trial_digests.content_digest`.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, RowMapping, Select, String, select, type_coerce

from ktrial.model.design import PlannedTrial
from ktrial.model.trial import CounterDelta, Outcome, Provenance, Trial
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import Direction, Mode, Sample
from ktrial.store import row_conversion
from ktrial.store.column_types import Json
from ktrial.store.schema import samples as samples_table
from ktrial.store.schema import trials
from ktrial.store.trial_digests import OF_SAMPLE, OF_TRIAL

_KEPT = 2048
"""Texts of which the meaning is remembered: some 10 MB."""
_JSON = frozenset(column.name for column in trials.columns if isinstance(column.type, Json))
TRIALS: Select[Any] = select(
    trials.c.id,
    *(
        type_coerce(column, String).label(column.name) if column.name in _JSON else column
        for column in (trials.c[name] for name in OF_TRIAL)
    ),
)
"""Trials' rows, with JSON as text; after the number, columns as the digest has them."""
_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode
_WARNINGS = TypeAdapter(tuple[DataWarning, ...])
_DIRECTIONS = {one.value: one for one in Direction}
_MODES = {one.value: one for one in Mode}
_WORKLOAD = OF_SAMPLE.index("workload")


def samples(connection: Connection, of_trials: Select[Any]) -> dict[int, list[tuple[Any, ...]]]:
    """The samples of trials (a selection of numbers), by trial, in the order of storing; as OF_SAMPLE."""
    columns = [samples_table.c[name] for name in OF_SAMPLE]
    query = select(samples_table.c.trial_id, *columns).where(samples_table.c.trial_id.in_(of_trials))
    grouped: dict[int, list[tuple[Any, ...]]] = {}
    for trial_id, *values in connection.execute(query.order_by(samples_table.c.id)):
        grouped.setdefault(trial_id, []).append(tuple(values))
    return grouped


def content_digest(row: Row[Any], of_trial: Sequence[tuple[Any, ...]]) -> str:
    """As `trial_digests.content_digest`."""
    values: tuple[Any, ...] = tuple(row)[1:]
    pieces = [
        _canonical(value) if name in _JSON else _ENCODE(value)
        for name, value in zip(OF_TRIAL, values, strict=True)
    ]
    rows = [f"[{','.join(pieces)}]", *([_ENCODE(of_trial)[1:-1]] if of_trial else [])]
    return hashlib.sha256(f"[{','.join(rows)}]".encode()).hexdigest()


def trial(
    row: Row[Any],
    of_trial: Sequence[tuple[Any, ...]],
    rose: Sequence[RowMapping],
    workload: str | None,
    is_as_stored: bool,
) -> Trial:
    """The trial, with samples of one workload or of all. Raises pydantic.ValidationError.

    `is_as_stored`: what fits its digest was a Trial when it was stored, and need not be looked at again.
    """
    wanted = [one for one in of_trial if workload is None or one[_WORKLOAD] == workload]
    plain = [dict(zip(OF_SAMPLE, one, strict=True)) for one in wanted]
    make: Callable[..., Any] = Trial.model_construct if is_as_stored else Trial
    made: Trial = make(
        planned=_planned(row.planned),
        outcome=Outcome(row.outcome),
        reason=row.reason,
        samples=tuple(map(_sample if is_as_stored else Sample.model_validate, plain)),
        counters=tuple(_counter(one) for one in rose),
        profiles=(),
        sampled=(),
        settings=dict(_settings(row.settings)),
        warnings=_warnings(row.warnings),
        console=row.console,
        provenance=_provenance(row.provenance),
        started=row_conversion.from_utc(row.started),
        seconds=row.seconds,
    )
    return made


def _sample(plain: dict[str, Any]) -> Sample:
    plain["direction"], plain["mode"] = _DIRECTIONS[plain["direction"]], _MODES[plain["mode"]]
    return Sample.model_construct(**plain)


def _counter(row: RowMapping) -> CounterDelta:
    return CounterDelta(workload=row["workload"], name=row["name"], delta=row["delta"])


@lru_cache(_KEPT)
def _canonical(text: str) -> str:
    return _ENCODE(json.loads(text))


@lru_cache(_KEPT)
def _planned(text: str) -> PlannedTrial:
    return PlannedTrial.model_validate(json.loads(text))


@lru_cache(_KEPT)
def _provenance(text: str) -> Provenance:
    return Provenance.model_validate(json.loads(text))


@lru_cache(_KEPT)
def _settings(text: str) -> dict[str, str]:
    settings: dict[str, str] = json.loads(text)
    return settings


@lru_cache(_KEPT)
def _warnings(text: str) -> tuple[DataWarning, ...]:
    return _WARNINGS.validate_python(json.loads(text))
