"""Rows of the store's tables to and from the model."""

import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import RowMapping

from ktrial.model.base import digest
from ktrial.model.kernel_diff import KernelDifference
from ktrial.model.profile import Profile
from ktrial.model.proof import Proof
from ktrial.model.time_series import Sampled
from ktrial.model.trial import CounterDelta, Trial
from ktrial.model.tuning import Tuned
from ktrial.model.workload import Sample

Row = dict[str, Any]


def trial_row(study_id: int, trial: Trial) -> Row:
    """The row in `trials`, without samples, counters, profiles and series."""
    apart = {"samples", "counters", "profiles", "sampled", "started"}
    plain = trial.model_dump(mode="json", exclude=apart)
    provenance = trial.provenance
    return plain | {
        "study_id": study_id,
        "key": trial.planned.key,
        "run_order": trial.planned.order,
        "kernel": provenance.kernel,
        "kernel_digest": provenance.kernel_digest,
        "started": to_utc(trial.started),
    }


def sample_rows(trial_id: int, trial: Trial) -> list[Row]:
    """The rows in `samples`."""
    return [{"trial_id": trial_id, **sample.model_dump()} for sample in trial.samples]


def counter_rows(trial_id: int, trial: Trial) -> list[Row]:
    """The rows in `counters`."""
    return [{"trial_id": trial_id, **counter.model_dump()} for counter in trial.counters]


def profile_rows(trial: Trial) -> list[Row]:
    """The rows in `profiles`, without the trial's number."""
    return [{"workload": each.workload, "content": compressed(each)} for each in trial.profiles]


def compressed(profile: Profile) -> bytes:
    """A profile as the store keeps it: without each operation's own count, which nothing asks for later."""
    large = {"region": {"operations": {"vector"}}}
    text = profile.model_dump_json(exclude=large, exclude_defaults=True)
    return zlib.compress(text.encode())


def profile_of(content: bytes) -> Profile:
    """The profile in a row of `profiles`. Raises zlib.error, pydantic.ValidationError."""
    return Profile.model_validate_json(zlib.decompress(content))


def series_rows(trial: Trial) -> list[Row]:
    """The rows in `series`, without the trial's number."""
    return [
        {"workload": each.workload, "content": zlib.compress(each.model_dump_json().encode())}
        for each in trial.sampled
    ]


def sampled_of(content: bytes) -> Sampled:
    """The series in a row of `series`. Raises zlib.error, pydantic.ValidationError."""
    return Sampled.model_validate_json(zlib.decompress(content))


def kernel_difference_row(study_id: int, difference: KernelDifference) -> Row:
    """The row in `kernel_differences`."""
    text = difference.model_dump_json(exclude_defaults=True)
    sides = {"before": difference.before.digest, "after": difference.after.digest}
    return {"study_id": study_id, **sides, "content": zlib.compress(text.encode())}


def kernel_difference_of(content: bytes) -> KernelDifference:
    """The difference in a row of `kernel_differences`. Raises zlib.error, pydantic.ValidationError."""
    return KernelDifference.model_validate_json(zlib.decompress(content))


def answer_row(study_id: int, tuned: Tuned) -> Row:
    """The row in `answers`."""
    return {"study_id": study_id, "content": zlib.compress(tuned.model_dump_json().encode())}


def answer_of(content: bytes) -> Tuned:
    """The answer in a row of `answers`. Raises zlib.error, pydantic.ValidationError."""
    return Tuned.model_validate_json(zlib.decompress(content))


def proof_row(study_id: int, proof: Proof) -> Row:
    """The row in `proofs`."""
    difference = digest(proof.difference_key)
    content = zlib.compress(proof.model_dump_json(exclude_defaults=True).encode())
    return {"study_id": study_id, "difference": difference, "content": content}


def proof_of(content: bytes) -> Proof:
    """The proof in a row of `proofs`. Raises zlib.error, pydantic.ValidationError."""
    return Proof.model_validate_json(zlib.decompress(content))


def trial_of(row: RowMapping, samples: Iterable[RowMapping], counters: Iterable[RowMapping]) -> Trial:
    """The trial in a row of `trials` and its rows in the other tables. Raises pydantic.ValidationError."""
    fields = ("planned", "outcome", "reason", "settings", "warnings", "console", "provenance", "seconds")
    parts = {name: row[name] for name in fields}
    parts["started"] = from_utc(row["started"])
    parts["samples"] = [_fields(row, set(Sample.model_fields)) for row in samples]
    parts["counters"] = [_fields(row, set(CounterDelta.model_fields)) for row in counters]
    return Trial.model_validate(parts)


def _fields(row: Mapping[Any, Any], names: set[str]) -> Row:
    return {name: row[name] for name in names}


def to_utc(moment: datetime) -> datetime:
    """`moment` as the store keeps it: UTC, without saying so (SQLite has no time zones)."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def from_utc(moment: datetime) -> datetime:
    """A moment from the store, with its time zone."""
    return moment.replace(tzinfo=UTC)
