"""The store's tables, in SQLAlchemy Core: no SQL of one database's own."""

import json
import math
import zlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Connection,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    RowMapping,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    inspect,
)
from sqlalchemy.types import TypeEngine

from ktrial.model.attribution import Proof
from ktrial.model.base import digest
from ktrial.model.kernel import KernelDifference
from ktrial.model.profile import Profile
from ktrial.model.trial import CounterDelta, Sampled, Trial
from ktrial.model.tuning import Tuned
from ktrial.model.workload import Sample

metadata = MetaData()


schema_table = Table("ktrial_schema", metadata, Column("version", Integer, nullable=False))


_Processor = Callable[[Any], Any] | None


class AnyText(TypeDecorator[str]):
    """Text of any length, in which NUL may stand: PostgreSQL keeps it as two other characters (U+001A, 0)."""

    impl = Text
    cache_ok = True

    def __init__(self, usual: int | None = None) -> None:
        """`usual`: how long it usually is; nothing longer is refused."""
        super().__init__()
        self.usual = usual

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Without a length in PostgreSQL, which would hold to it."""
        plain = self.usual is None or dialect.name == POSTGRESQL
        return dialect.type_descriptor(Text() if plain else String(self.usual))

    def bind_processor(self, dialect: Dialect) -> _Processor:
        """None where nothing has to be done."""
        return _without_nul if dialect.name == POSTGRESQL else None

    def result_processor(self, dialect: Dialect, coltype: object) -> _Processor:
        """None where nothing has to be done."""
        return with_nul if dialect.name == POSTGRESQL else None


class Json(TypeDecorator[Any]):
    """A value as JSON text, NaN and infinity included (as Python's `json` writes them)."""

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Text in PostgreSQL."""
        return dialect.type_descriptor(Text() if dialect.name == POSTGRESQL else JSON())

    def bind_processor(self, dialect: Dialect) -> _Processor:
        """What turns a value into text."""
        return json.dumps if dialect.name == POSTGRESQL else super().bind_processor(dialect)

    def result_processor(self, dialect: Dialect, coltype: object) -> _Processor:
        """What turns text into a value."""
        return json.loads if dialect.name == POSTGRESQL else super().result_processor(dialect, coltype)


# What columns hold, the same in every database: text with any character, numbers that are none, JSON.
#
# SQLite keeps what it is given. PostgreSQL takes no NUL in text, holds numbers to 32 bits and names to
# their length unless told otherwise, and its own JSON knows neither NaN nor infinity: there JSON is kept as
# text.

POSTGRESQL = "postgresql"


whole_number = Integer().with_variant(BigInteger(), POSTGRESQL)
"""64 bits; in SQLite also what a table's rows are numbered by."""


studies = Table(
    "studies",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("name", AnyText(255), nullable=False, index=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("spec", Json, nullable=False),
    Column("created", DateTime, nullable=False),
)
"""`created` is in UTC; `spec` is model.study.Study."""


trials = Table(
    "trials",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("study_id", ForeignKey("studies.id", ondelete="CASCADE"), nullable=False),
    Column("key", AnyText(255), nullable=False),
    Column("run_order", whole_number, nullable=False),
    Column("planned", Json, nullable=False),
    Column("outcome", String(32), nullable=False),
    Column("reason", AnyText, nullable=False),
    Column("settings", Json, nullable=False),
    Column("warnings", Json, nullable=False),
    Column("console", AnyText, nullable=False),
    Column("kernel", AnyText(255), nullable=False),
    Column("kernel_digest", String(64), nullable=False),
    Column("provenance", Json, nullable=False),
    Column("started", DateTime, nullable=False),
    Column("seconds", Float, nullable=False),
    UniqueConstraint("study_id", "key"),
)


trials_by_outcome = Index("trials_by_outcome", trials.c.study_id, trials.c.outcome)
"""How many trials of a study ended, and how, without reading them. It changes nothing that is kept: an older
ktrial keeps it up to date without knowing it, and where it is missing the same is read from the table."""


trials_by_number = Index(
    "trials_by_number", trials.c.study_id, trials.c.outcome, trials.c.id, trials.c.started
).ddl_if(dialect=POSTGRESQL)
"""In PostgreSQL an index has no row's number unless it is told to; in SQLite each has it."""


"""`key` is PlannedTrial.key; `kernel` and `kernel_digest` repeat two fields of `provenance`, for queries."""


class AnyNumber(TypeDecorator[float]):
    """A float of 64 bits, NaN included: SQLite, which makes NULL of it, keeps it as the text `nan`."""

    impl = Float
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> _Processor:
        """None where nothing has to be done."""
        return None if dialect.name == POSTGRESQL else _nan_as_text

    def result_processor(self, dialect: Dialect, coltype: object) -> _Processor:
        """None where nothing has to be done."""
        return None if dialect.name == POSTGRESQL else _nan_of_text


samples = Table(
    "samples",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("trial_id", ForeignKey("trials.id", ondelete="CASCADE"), nullable=False),
    Column("workload", AnyText, nullable=False),
    Column("metric", AnyText(255), nullable=False),
    Column("unit", AnyText(64), nullable=False),
    Column("direction", String(16), nullable=False),
    Column("mode", String(32), nullable=False),
    Column("value", AnyNumber, nullable=False),
    Column("operations", whole_number, nullable=False),
    Column("minimum", AnyNumber),
    Column("median", AnyNumber),
    Column("mean", AnyNumber),
    Index("samples_of_trial", "trial_id"),
)


counters = Table(
    "counters",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("trial_id", ForeignKey("trials.id", ondelete="CASCADE"), nullable=False),
    Column("workload", AnyText, nullable=False),
    Column("name", AnyText(255), nullable=False),
    Column("delta", Float, nullable=False),
    Index("counters_of_trial", "trial_id"),
)


profiles = Table(
    "profiles",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("trial_id", ForeignKey("trials.id", ondelete="CASCADE"), nullable=False),
    Column("workload", AnyText, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Index("profiles_of_trial", "trial_id"),
)
"""`content` is model.kernel_profile.Profile as JSON, compressed by zlib: some 20 KB a profile."""


kernel_differences = Table(
    "kernel_differences",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("study_id", ForeignKey("studies.id", ondelete="CASCADE"), nullable=False),
    Column("before", String(64), nullable=False),
    Column("after", String(64), nullable=False),
    Column("content", LargeBinary, nullable=False),
    UniqueConstraint("study_id", "before", "after"),
)
"""`before`, `after`: the kernels' digests; `content` is model.kernel_difference.KernelDifference as JSON,
compressed by zlib: 1 to 60 KB."""


series = Table(
    "series",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("trial_id", ForeignKey("trials.id", ondelete="CASCADE"), nullable=False),
    Column("workload", AnyText, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Index("series_of_trial", "trial_id"),
)
"""`content` is model.series.Sampled as JSON, compressed by zlib: about 100 KB for 500
moments."""


file_place = Table(
    "file_place",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("url", AnyText, nullable=False),
    Column("directory", String(64), nullable=False),
    Column("above", whole_number, nullable=False),
    Column("collections", whole_number, nullable=False),
)
"""One row at most: where profiles and series of more than `above` bytes lie (`file_place.FilePlace`). It has
no digest and is never copied: another store has files of its own."""


part_files = Table(
    "part_files",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("trial_id", ForeignKey("trials.id", ondelete="CASCADE"), nullable=False),
    Column("part", String(16), nullable=False),
    Column("workload", AnyText, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("size", whole_number, nullable=False),
    Index("part_files_of_trial", "trial_id"),
    Index("part_files_by_digest", "digest"),
)
"""Which parts lie in files: the row of `part` (`profiles`, `series`) of that trial and workload has an empty
`content`; `digest`, the file's name, is the content's SHA-256, `size` its bytes."""


answers = Table(
    "answers",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("study_id", ForeignKey("studies.id", ondelete="CASCADE"), nullable=False, unique=True),
    Column("content", LargeBinary, nullable=False),
)
"""What a search came to; `content` is model.tuning.Tuned as JSON, compressed by zlib: some 10 KB."""


proofs = Table(
    "proofs",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("study_id", ForeignKey("studies.id", ondelete="CASCADE"), nullable=False),
    Column("difference", String(64), nullable=False),
    Column("content", LargeBinary, nullable=False),
    UniqueConstraint("study_id", "difference"),
)
"""Which causes were proved. `difference`: SHA-256 of the workload and the two treatments; `content` is
model.proof.Proof as JSON, compressed by zlib: some 2 KB."""


digests = Table(
    "digests",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("trial_id", ForeignKey("trials.id", ondelete="CASCADE"), nullable=False, unique=True),
    Column("content", String(64), nullable=False),
    Column("counters", String(64), nullable=False),
    Column("profiles", Json, nullable=False),
    Column("series", Json, nullable=False),
)
"""SHA-256 of what stands in a trial's rows (`trial_digests`): of its own and its samples', of its counters',
and of each profile and series by workload. Trials that an older ktrial stored have none."""


study_digests = Table(
    "study_digests",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("study_id", ForeignKey("studies.id", ondelete="CASCADE"), nullable=False),
    Column("what", String(255), nullable=False),
    Column("digest", String(64), nullable=False),
    UniqueConstraint("study_id", "what"),
)
"""SHA-256 of a study's own row, of its answer and of each difference between its kernels (`study_digests`),
and which trials it has (`trial_sets`). What an older ktrial stored has none."""


activities = Table(
    "activities",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("study_id", ForeignKey("studies.id", ondelete="CASCADE"), nullable=False),
    Column("key", String(64), nullable=False, unique=True),
    Column("heard", DateTime, nullable=False),
    Column("content", Json, nullable=False),
)
"""Who runs a study now, and what of it: `content` is model.activity.Activity. It has no digest and is never
copied; a run takes its row away when it ends."""


summaries = Table(
    "summaries",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("study_id", ForeignKey("studies.id", ondelete="CASCADE"), nullable=False),
    Column("workload", AnyText, nullable=False),
    Column("state", String(64), nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("digest", String(64), nullable=False),
    UniqueConstraint("study_id", "workload"),
    Index("summaries_of_workload", "workload"),
)
"""What a study's trials say of one workload, as a history asks for it, so that it need not read them:
`content` is compressed JSON (analysis.history), `digest` its SHA-256. It is true as long as the study's state
(`study_states`) is `state`, and is made again from the trials otherwise; a study has two rows more, of no
workload: what is said of it as a whole, and what it came to, whose `state` is a digest of the study's and of
the rules for verdicts (analysis.brief_results). Never copied."""


machine_leases = Table(
    "machine_leases",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("machine", AnyText(255), nullable=False, unique=True),
    Column("key", String(64), nullable=False),
    Column("heard", DateTime, nullable=False),
    Column("content", Json, nullable=False),
)
"""Who has a real machine: `content` is model.machine_lease.MachineLease; `heard`, by the clock of the
database, is written again as long as its holder lives. It has no digest and is never copied."""


_ESCAPE = "\x1a"


_ESCAPED = {"\x1a": "\x1aS", "\x00": "\x1a0"}


_NONE = "nan"


def _without_nul(text: str | None) -> str | None:
    if text is None or (_ESCAPE not in text and "\x00" not in text):
        return text
    return "".join(_ESCAPED.get(one, one) for one in text)


def with_nul(text: str | None) -> str | None:
    """What was stored as `text` in PostgreSQL."""
    if text is None or _ESCAPE not in text:
        return text
    return text.replace("\x1a0", "\x00").replace("\x1aS", "\x1a")


def _nan_as_text(value: float | None) -> float | str | None:
    return _NONE if value is not None and math.isnan(value) else value


def _nan_of_text(value: Any) -> Any:
    return math.nan if value == _NONE else value


# Which tables a store has: one of an older schema that may only be read does not have all.

_KNOWN = "ktrial tables"


def has(connection: Connection, table: Table) -> bool:
    """Whether the table is there; one that was is not looked for again by the same connection."""
    known: set[str] = connection.info.setdefault(_KNOWN, set())
    if table.name not in known and inspect(connection).has_table(table.name):
        known.add(table.name)
    return table.name in known


# Which schema this ktrial writes: apart from the tables, so that a look at it loads no SQLAlchemy.

SCHEMA_VERSION = 14
"""1: trials, samples, counters. 2: profiles; `count` in a study's machine. 3: kernel_differences; builds in a
study, and factors that change them. 4: series; `sample_ns` in a study's machine. 5: `search` in a study,
`purpose` of a planned trial, `discarded` in a command. 6: answers.
7: digests; `executed` in a trial's provenance. 8: study_digests; `in_force` in an order between knobs.
9: proofs. 10: activities. 11: summaries. 12: machine_leases. 13: file_place, part_files.
14: which trials a study has, in study_digests: an older ktrial would add some, and not note them.

Raise it with every change to a table (`schema`), and with every field added to a model that is stored as JSON
(Study, PlannedTrial, Provenance, DataWarning, Tuned): an older ktrial must refuse what it cannot read.
`opening` brings older stores up to it, and `quick_reader` reads no others."""


# Rows of the store's tables to and from the model.

RowValues = dict[str, Any]


def trial_row(study_id: int, trial: Trial) -> RowValues:
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


def sample_rows(trial_id: int, trial: Trial) -> list[RowValues]:
    """The rows in `samples`."""
    return [{"trial_id": trial_id, **sample.model_dump()} for sample in trial.samples]


def counter_rows(trial_id: int, trial: Trial) -> list[RowValues]:
    """The rows in `counters`."""
    return [{"trial_id": trial_id, **counter.model_dump()} for counter in trial.counters]


def profile_rows(trial: Trial) -> list[RowValues]:
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


def series_rows(trial: Trial) -> list[RowValues]:
    """The rows in `series`, without the trial's number."""
    return [
        {"workload": each.workload, "content": zlib.compress(each.model_dump_json().encode())}
        for each in trial.sampled
    ]


def sampled_of(content: bytes) -> Sampled:
    """The series in a row of `series`. Raises zlib.error, pydantic.ValidationError."""
    return Sampled.model_validate_json(zlib.decompress(content))


def kernel_difference_row(study_id: int, difference: KernelDifference) -> RowValues:
    """The row in `kernel_differences`."""
    text = difference.model_dump_json(exclude_defaults=True)
    sides = {"before": difference.before.digest, "after": difference.after.digest}
    return {"study_id": study_id, **sides, "content": zlib.compress(text.encode())}


def kernel_difference_of(content: bytes) -> KernelDifference:
    """The difference in a row of `kernel_differences`. Raises zlib.error, pydantic.ValidationError."""
    return KernelDifference.model_validate_json(zlib.decompress(content))


def answer_row(study_id: int, tuned: Tuned) -> RowValues:
    """The row in `answers`."""
    return {"study_id": study_id, "content": zlib.compress(tuned.model_dump_json().encode())}


def answer_of(content: bytes) -> Tuned:
    """The answer in a row of `answers`. Raises zlib.error, pydantic.ValidationError."""
    return Tuned.model_validate_json(zlib.decompress(content))


def proof_row(study_id: int, proof: Proof) -> RowValues:
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


def _fields(row: Mapping[Any, Any], names: set[str]) -> RowValues:
    return {name: row[name] for name in names}


def to_utc(moment: datetime) -> datetime:
    """`moment` as the store keeps it: UTC, without saying so (SQLite has no time zones)."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def from_utc(moment: datetime) -> datetime:
    """A moment from the store, with its time zone."""
    return moment.replace(tzinfo=UTC)
