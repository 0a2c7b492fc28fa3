"""The store's tables, in SQLAlchemy Core, and what their columns hold: no SQL of one database's own."""

import json
import math
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel
from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    create_mock_engine,
)
from sqlalchemy.dialects.sqlite.pysqlite import dialect as sqlite_dialect
from sqlalchemy.types import TypeEngine

POSTGRESQL, SQLITE = "postgresql", "sqlite"

# What columns hold is the same in every database: text with any character, numbers that are none, JSON.
# SQLite keeps what it is given. PostgreSQL takes no NUL in text, holds numbers to 32 bits and names to their
# length unless told otherwise, and its own JSON knows neither NaN nor infinity: there JSON is kept as text.

whole_number = Integer().with_variant(BigInteger(), POSTGRESQL)
"""64 bits; in SQLite also what a table's rows are numbered by."""
_ESCAPE = "\x1a"
_ESCAPED = {"\x1a": "\x1aS", "\x00": "\x1a0"}
_NOT_A_NUMBER = "nan"
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
        return _with_nul if dialect.name == POSTGRESQL else None


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


def _without_nul(text: str | None) -> str | None:
    if text is None or (_ESCAPE not in text and "\x00" not in text):
        return text
    return "".join(_ESCAPED.get(character, character) for character in text)


def _with_nul(text: str | None) -> str | None:
    """What was stored as `text` in PostgreSQL."""
    if text is None or _ESCAPE not in text:
        return text
    return text.replace("\x1a0", "\x00").replace("\x1aS", "\x1a")


def _nan_as_text(value: float | None) -> float | str | None:
    return _NOT_A_NUMBER if value is not None and math.isnan(value) else value


def _nan_of_text(value: Any) -> Any:
    return math.nan if value == _NOT_A_NUMBER else value


metadata = MetaData()

schema_table = Table("ktrial_schema", metadata, Column("version", Integer, nullable=False))

studies = Table(
    "studies",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("name", AnyText(255), nullable=False, index=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("spec", Json, nullable=False),
    Column("created", DateTime, nullable=False),
    Column("made_by", AnyText(32), nullable=False),
)
"""`created` is in UTC; `spec` is model.study.Study; `made_by` repeats a field of it, for queries."""

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
"""`key` is PlannedTrial.key; `kernel` and `kernel_digest` repeat two fields of `provenance`, for queries."""
trials_by_outcome = Index("trials_by_outcome", trials.c.study_id, trials.c.outcome)
"""How many trials of a study ended, and how, without reading them."""

trials_by_number = Index(
    "trials_by_number", trials.c.study_id, trials.c.outcome, trials.c.id, trials.c.started
).ddl_if(dialect=POSTGRESQL)
"""In PostgreSQL an index has no row's number unless it is told to; in SQLite each has it."""

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
"""`content` is model.profile.Profile as JSON, compressed by zlib: some 20 KB a profile."""

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
"""`before`, `after`: the kernels' digests; `content` is model.kernel.KernelDifference as JSON,
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
"""`content` is model.trial.SampleSeries as JSON, compressed by zlib: about 100 KB for 500
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
"""One row at most: where profiles and series of more than `above` bytes lie (`part_files.FilePlace`). It has
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
model.attribution.Proof as JSON, compressed by zlib: some 2 KB."""

regressions = Table(
    "regressions",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("study_id", ForeignKey("studies.id", ondelete="CASCADE"), nullable=False),
    Column("regression", String(64), nullable=False),
    Column("content", LargeBinary, nullable=False),
    UniqueConstraint("study_id", "regression"),
)
"""Regressions that a study was the first to measure. `regression`: its id; `content` is
model.regression.Regression as JSON, compressed by zlib: below 1 KB."""

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
"""SHA-256 of what stands in a trial's rows (`trial_rows`): of its own and its samples', of its counters',
and of each profile and series by workload."""

study_digests = Table(
    "study_digests",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("study_id", ForeignKey("studies.id", ondelete="CASCADE"), nullable=False),
    Column("what", String(255), nullable=False),
    Column("digest", String(64), nullable=False),
    UniqueConstraint("study_id", "what"),
)
"""SHA-256 of a study's own row, of its answer and of each difference between its kernels (`integrity`),
and which trials it has (`integrity`)."""

log_entries = Table(
    "log_entries",
    metadata,
    Column("number", whole_number, primary_key=True, autoincrement=False),
    Column("kind", String(32), nullable=False),
    Column("study_id", whole_number, nullable=False),
    Column("subject", AnyText, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("studies", whole_number, nullable=False),
    Column("head", String(64), nullable=False),
    Index("log_of_study", "study_id"),
)
"""What was stored and taken away, in order, each entry chained to the one before (`log`). `study_id` names a
study that may be there no more; `studies`: how many there are from then on. Never copied: another store has a
log of its own."""

activities = Table(
    "activities",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("study_id", ForeignKey("studies.id", ondelete="CASCADE"), nullable=False),
    Column("key", String(64), nullable=False, unique=True),
    Column("heard", DateTime, nullable=False),
    Column("content", Json, nullable=False),
)
"""Who runs a study now, and what of it: `content` is model.machine.Activity. It has no digest and is never
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
(`study_rows.study_states`) is `state`, and is made again from the trials otherwise; a study has two rows
more, of no workload: what is said of it as a whole, and what it came to, whose `state` is a digest of the
study's and of the rules for verdicts (analysis.brief_results). Never copied."""

machine_leases = Table(
    "machine_leases",
    metadata,
    Column("id", whole_number, primary_key=True),
    Column("machine", AnyText(255), nullable=False, unique=True),
    Column("key", String(64), nullable=False),
    Column("heard", DateTime, nullable=False),
    Column("content", Json, nullable=False),
)
"""Who has a real machine: `content` is model.machine.MachineLease; `heard`, by the clock of the
database, is written again as long as its holder lives. It has no digest and is never copied."""


@cache
def sqlite_tables() -> tuple[str, ...]:
    """What makes the tables in a file, where they are not there: SQLAlchemy puts it into words once."""
    dialect, statements = sqlite_dialect(), list[str]()

    def keep(made: Any, *_: object, **__: object) -> None:
        made.if_not_exists = True
        statements.append(str(made.compile(dialect=dialect)))

    metadata.create_all(create_mock_engine(f"{SQLITE}://", keep), checkfirst=False)
    return tuple(statements)


Compressible = TypeVar("Compressible", bound=BaseModel)


def compressed(data: BaseModel, *, exclude: Any = None, without_defaults: bool = False) -> bytes:
    """Plain data as columns `content` keep it: JSON, compressed by zlib."""
    return zlib.compress(data.model_dump_json(exclude=exclude, exclude_defaults=without_defaults).encode())


def decompressed(kind: type[Compressible], content: bytes) -> Compressible:
    """What `compressed` made. Raises zlib.error, pydantic.ValidationError."""
    return kind.model_validate_json(zlib.decompress(content))


def to_utc(moment: datetime) -> datetime:
    """`moment` as the store keeps it: UTC, without saying so (SQLite has no time zones)."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def from_utc(moment: datetime) -> datetime:
    """A moment from the store, with its time zone."""
    return moment.replace(tzinfo=UTC)
