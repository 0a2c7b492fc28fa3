"""The store's tables, in SQLAlchemy Core: no SQL of one database's own."""

from sqlalchemy import (
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

from ktrial.store.column_types import POSTGRESQL, AnyNumber, AnyText, Json, whole_number

metadata = MetaData()

schema = Table("ktrial_schema", metadata, Column("version", Integer, nullable=False))

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
