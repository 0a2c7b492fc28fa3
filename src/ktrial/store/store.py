"""The store: studies and the trials that ended, and how it is opened.

Every trial is written in one transaction as it ends. A store is looked at before it is touched, made if it is
not there, and refused where it is not ours or too new.
"""

import contextlib
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import URL, ColumnElement, Connection, Engine, create_engine, insert, inspect, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ktrial.fault_points import fault_point
from ktrial.model.attribution import Proof
from ktrial.model.base import digest
from ktrial.model.kernel import KernelDifference
from ktrial.model.machine import Activity, MachineLease
from ktrial.model.notation import nearest
from ktrial.model.profile import Profile
from ktrial.model.regression import Regression
from ktrial.model.study import Study
from ktrial.model.trial import Outcome, SampleSeries, Trial
from ktrial.model.tuning import Tuned
from ktrial.store import completeness, integrity, leases, log, postgresql, sqlite, study_rows, trial_rows
from ktrial.store.completeness import KeptHead, StoreCheck, StudyGaps
from ktrial.store.errors import (
    NoStoreThere,
    NotAStore,
    StoreDamaged,
    StoreError,
    StoreForbidden,
    StudyNotStored,
    TrialsDamaged,
)
from ktrial.store.head_file import Head, HeadFile, check_log, head_file_of
from ktrial.store.integrity import StudyCheck, StudyName
from ktrial.store.leases import StoredLease, Taking
from ktrial.store.location import default_location, file_of, shown, url_of
from ktrial.store.part_files import PartFiles
from ktrial.store.quick_reader import SCHEMA_VERSION
from ktrial.store.schema import compressed, metadata, schema_table, sqlite_tables, studies, to_utc, trials
from ktrial.store.study_rows import (
    ANSWERS,
    KERNEL_DIFFERENCES,
    OF_STUDY,
    PROOFS,
    REGRESSIONS,
    StoredStudy,
    StudySummaries,
    Summary,
)
from ktrial.store.transactions import Conflict, Transactions, print_message, store_error
from ktrial.store.trial_rows import TrialCheck

NOTHING_REPLACED: frozenset[Outcome] = frozenset()
_LARGEST_ID = 2**63 - 1
_SECONDS_FOR_THE_MOMENT = 30.0
"""How long a store is not opened whose server says that it is starting, or has too many connections."""


class Store:
    """An open store. Safe to use from several threads and from several processes at once.

    Every method raises a StoreError: StoreFull, StoreForbidden, StoreDamaged, where it is locked; and
    ServerAway, after it has waited for a server (transactions.WAIT_SECONDS). So does what has to do with
    profiles and series where these lie in files (`part_files`).
    """

    def __init__(self, engine: Engine, name: str, file: Path | None, head_file: HeadFile) -> None:
        self.name = name
        """The path, or the URL without its password: for messages."""
        self.transactions = Transactions(engine, name, file, head_file)
        self.files = PartFiles(self.transactions)

    def study(self, study: Study) -> int:
        """The study's id; a new one is stored. The same study (by digest) has the same id: resumption."""
        key = digest(study)
        values = {
            "name": study.name,
            "digest": key,
            "spec": study.model_dump(mode="json"),
            "created": to_utc(datetime.now(UTC)),
            "made_by": study.made_by,
        }
        try:
            return self.transactions.write(lambda connection: study_rows.store_study(connection, values))
        except Conflict:
            # On a server another process can come in between; then the study is there.
            same = select(studies.c.id).where(studies.c.digest == key)
            return self.transactions.read(lambda connection: int(connection.execute(same).scalar_one()))

    def finished_keys(self, study_id: int, *, apart_from: frozenset[Outcome] = NOTHING_REPLACED) -> set[str]:
        """PlannedTrial.key of every stored trial, apart from those with one of the outcomes."""
        query = select(trials.c.key).where(
            trials.c.study_id == study_id, trials.c.outcome.not_in([outcome.value for outcome in apart_from])
        )
        return self.transactions.read(lambda connection: set(connection.scalars(query)))

    def add_trial(
        self, study_id: int, trial: Trial, *, replaces: frozenset[Outcome] = NOTHING_REPLACED
    ) -> bool:
        """Store a trial that ended, with all that belongs to it, in one transaction.

        A stored trial of the same key is kept (False is returned), unless its outcome is in `replaces`.
        """
        return self.add_trials(study_id, (trial,), replaces=replaces)[0]

    def add_trials(
        self, study_id: int, ended: Sequence[Trial], *, replaces: frozenset[Outcome] = NOTHING_REPLACED
    ) -> tuple[bool, ...]:
        """As `add_trial`, several in one transaction: what takes long is a transaction's end."""
        prepared = trial_rows.prepared_trials(ended)
        try:
            return self.files.stored(
                trial_rows.large_contents(prepared),
                lambda connection, placed: trial_rows.add_trials(
                    connection, study_id, prepared, replaces, placed
                ),
            )
        except Conflict:
            if len(ended) > 1:  # the same as one of them was stored meanwhile
                return tuple(self.add_trial(study_id, trial, replaces=replaces) for trial in ended)
            if ended[0].planned.key not in self.finished_keys(study_id):
                raise
            return (False,)

    def studies(self, numbers: Collection[int] | None = None) -> tuple[StoredStudy, ...]:
        """Every study, or those of these that are there; the newest last."""
        if numbers is not None:
            return self.transactions.read(lambda connection: study_rows.some_studies(connection, numbers))
        return self.transactions.read(study_rows.every_study)

    def readable_studies(
        self, numbers: Collection[int] | None = None
    ) -> tuple[tuple[StoredStudy, ...], tuple[StudyName, ...]]:
        """The studies that are as they were stored, and those that are not; the newest last.

        `numbers`: of these studies only.
        """
        return self.transactions.read(lambda connection: study_rows.readable_studies(connection, numbers))

    def names(self) -> frozenset[str]:
        """What the users' studies are called."""
        own = self.studies_of_commands()
        names = self.transactions.read(integrity.study_names)
        return frozenset(study.name for study in names if study.id not in own)

    def studies_of_commands(self) -> dict[int, str]:
        """The studies that commands made for themselves, with the command (Study.made_by)."""
        return self.transactions.read(study_rows.studies_of_commands)

    def newest(self, *, digest: str | None = None) -> StoredStudy | None:
        """The user's study stored last, one that has trials if there is any; or the one with this digest
        (model.base.digest). None: there is none.
        """
        if digest is None:
            return self._newest_of_user()
        stored = self._newest(studies.c.digest == digest)
        if stored is not None and digest is not None and stored.digest != digest:
            raise self._index_damaged("digests")
        return stored

    def find(self, study: int | str) -> StoredStudy:
        """The study with this id, or the user's newest with this name, one that has trials if there is any.

        Raises StudyNotStored.
        """
        text = str(study)
        stored = self._newest_of_user(studies.c.name == study) if isinstance(study, str) else None
        if stored is not None and stored.study.name != study:
            raise self._index_damaged("names")
        if stored is None and text.isascii() and text.isdigit() and int(text) <= _LARGEST_ID:
            stored = self._newest(studies.c.id == int(text))
        if stored is not None:
            return stored
        raise StudyNotStored(self.name, study, nearest(text, self.names(), 1))

    def _index_damaged(self, column: str) -> StoreDamaged:
        return StoreDamaged(f"Store {self.name} is damaged: its index of studies' {column} is not whole.")

    def _newest_of_user(self, *which: ColumnElement[bool]) -> StoredStudy | None:
        which = (studies.c.made_by == "", *which)
        return self._newest(*which, study_rows.HAS_TRIALS) or self._newest(*which)

    def _newest(self, *which: ColumnElement[bool]) -> StoredStudy | None:
        return self.transactions.read(lambda connection: study_rows.newest_study(connection, *which))

    def remove_if_empty(self, study_id: int) -> bool:
        """Take a study away of which no trial ended, unless a run of it is told; whether that was done."""
        return self.transactions.write(lambda connection: study_rows.remove_if_empty(connection, study_id))

    def delete(self, study_id: int) -> None:
        """Remove the study and its trials. Raises StudyNotStored."""

        if not self.transactions.write(lambda connection: integrity.remove_study(connection, study_id)):
            raise StudyNotStored(self.name, study_id)

    def trials(
        self, study_id: int, *, counted: bool = True, workload: str | None = None
    ) -> tuple[Trial, ...]:
        """The study's trials that ended, in run order. `counted=False`: without their event counters, which
        are most of what is read. `workload`: with the samples of this one only (its label).
        """
        ended, damaged = self.transactions.read(
            lambda connection: trial_rows.read_trials(
                connection, study_id, counted=counted, workload=workload
            )
        )
        if damaged:
            raise self._trials_damaged(study_id, damaged)
        return ended

    def profile(self, study_id: int, trial_key: str, workload: str) -> Profile | None:
        """What the plugin counted by function in one trial (PlannedTrial.key), in one workload (its label).

        None where nothing was: a trial of another mode, or without symbols.
        """
        with self._telling_damage(study_id, trial_key):
            return self.transactions.read(
                lambda connection: trial_rows.read_profile(
                    connection, study_id, trial_key, workload, self.files.fill
                )
            )

    def profiled(self, study_id: int) -> frozenset[str]:
        """Workloads (their labels) of which at least one trial of the study has a profile."""
        return self.transactions.read(lambda connection: trial_rows.profiled_workloads(connection, study_id))

    def sampled(self, study_id: int, trial_key: str) -> tuple[SampleSeries, ...]:
        """What monitors read over time in one trial (PlannedTrial.key), one a workload."""
        with self._telling_damage(study_id, trial_key):
            return self.transactions.read(
                lambda connection: trial_rows.read_series(connection, study_id, trial_key, self.files.fill)
            )

    @contextlib.contextmanager
    def _telling_damage(self, study_id: int, trial_key: str) -> Iterator[None]:
        """Raises StoreDamaged where a profile or series is not what was stored."""
        try:
            yield
        except trial_rows.BlobDamaged:
            raise self._trials_damaged(study_id, 1) from None
        except trial_rows.BlobLost as error:
            raise StoreDamaged(
                f"Store {self.name}: the {error.part} of trial {trial_key} of study {study_id} is lost: "
                f"{error.problem}. Numbers are whole.",
                hint=(
                    "restore the file from a backup, under its name; or remove the trial: ktrial store "
                    f"verify {study_id} --remove-damaged; the command that ran the study then runs it again"
                ),
            ) from None

    def _trials_damaged(self, study_id: int, count: int) -> TrialsDamaged:
        differ = "1 trial of study {} differs" if count == 1 else f"{count} trials of study {{}} differ"
        return TrialsDamaged(
            f"Store {self.name}: {differ.format(study_id)} from what was stored: no verdict comes from them.",
            hint=(
                f"ktrial store verify {study_id} names them; with --remove-damaged it removes them, and "
                "the command that ran the study runs them again"
            ),
        )

    def check_trials(self, study_id: int) -> tuple[TrialCheck, ...]:
        """Compare every trial of the study, and all that belongs to it, with its digest."""
        return self.transactions.read(
            lambda connection: trial_rows.check_trials(connection, study_id, self.files.fill)
        )

    def check_whole(self, kept_elsewhere: Sequence[KeptHead] = ()) -> StoreCheck:
        """Look at the store as a whole: the database, the log, and what is missing."""
        return completeness.check_store(self.transactions, kept_elsewhere)

    def head_of_study(self, study_id: int) -> Head | None:
        """The newest entry of the study's in the log: to be kept elsewhere, and given to `check_whole`."""
        return self.transactions.read(lambda connection: log.head_of_study(connection, study_id))

    def gaps(self, study_id: int) -> StudyGaps:
        """Where the study is not what its log says."""
        return self.transactions.read(lambda connection: completeness.study_gaps(connection, study_id))

    def accept(self, check: StoreCheck, gaps: Mapping[int, StudyGaps]) -> None:
        """Take what there is for all that there should be."""
        self.transactions.write(lambda connection: completeness.accept(connection, check, gaps))
        head = self.transactions.read(log.newest_head) if check.of_log or check.of_head else None
        if head:
            self.transactions.head_file.replace(head)

    def missing_studies(self) -> tuple[StudyName, ...]:
        """Studies that the log has, and the store has not."""
        return tuple(self.transactions.read(study_rows.missing_studies))

    def missing_trials(self, study_id: int) -> str:
        """That the study does not have the trials that it had: `2 trials are missing`; empty where it has."""
        return self.transactions.read(lambda connection: integrity.missing_trials(connection, study_id))

    def accept_missing_trials(self, study_id: int) -> None:
        """Take the trials that are there for all that the study has."""
        self.transactions.write(lambda connection: trial_rows.accept_missing_trials(connection, study_id))

    def check_studies(self) -> tuple[StudyCheck, ...]:
        """Compare what is stored of every study, apart from its trials, with its digests."""
        return self.transactions.read(lambda connection: tuple(integrity.check_studies(connection)))

    def remove_damaged(self, check: StudyCheck) -> None:
        """Take away what `check_studies` found damaged."""
        self.transactions.write(lambda connection: integrity.remove_damaged_parts(connection, check))

    def remove_trials(self, numbers: Collection[int]) -> None:
        """Take trials away (TrialCheck.trial_id), with all that belongs to them."""
        self.transactions.write(
            lambda connection: trial_rows.remove_trials(connection, trials.c.id.in_(numbers))
        )

    def remove_trials_of(self, study_id: int, keys: Collection[str]) -> None:
        """Take trials of a study away (PlannedTrial.key), with all that belongs to them."""
        which = (trials.c.study_id == study_id, trials.c.key.in_(keys))
        self.transactions.write(lambda connection: trial_rows.remove_trials(connection, *which))

    def add_kernel_difference(self, study_id: int, difference: KernelDifference) -> None:
        """Store what differs between two kernels of the study, by their digests; an older one is replaced."""
        sides = {"before": difference.before.digest, "after": difference.after.digest}
        content = compressed(difference, without_defaults=True)
        self._add_part(study_rows.KERNEL_DIFFERENCES, {"study_id": study_id, **sides, "content": content})

    def kernel_differences(self, study_id: int) -> tuple[KernelDifference, ...]:
        """What is known about the differences between the study's kernels, in the order of storing."""
        return self.transactions.read(
            lambda connection: study_rows.read_parts(
                connection, KERNEL_DIFFERENCES, study_id, KernelDifference
            )
        )

    def add_answer(self, study_id: int, tuned: Tuned) -> None:
        """Store what a search came to; an older answer is replaced."""
        self._add_part(ANSWERS, {"study_id": study_id, "content": compressed(tuned)})

    def answer(self, study_id: int) -> Tuned | None:
        """What the search came to; None where it has not ended, or no search was."""
        answers = self.transactions.read(
            lambda connection: study_rows.read_parts(connection, ANSWERS, study_id, Tuned)
        )
        return answers[0] if answers else None

    def add_proof(self, study_id: int, proof: Proof) -> None:
        """Store which causes were proved of one difference of the study; an older proof of it is replaced."""
        difference, content = digest(proof.difference_key), compressed(proof, without_defaults=True)
        self._add_part(PROOFS, {"study_id": study_id, "difference": difference, "content": content})

    def proofs(self, study_id: int) -> tuple[Proof, ...]:
        """What was proved about the study's differences, in the order of storing."""
        return self.transactions.read(
            lambda connection: study_rows.read_parts(connection, PROOFS, study_id, Proof)
        )

    def proved(self) -> frozenset[int]:
        """Studies that have a proof."""
        return self.transactions.read(study_rows.studies_with_proofs)

    def add_regression(self, study_id: int, regression: Regression) -> None:
        """Store what is known of a regression, with the study that was the first to measure it; what was
        stored of it there is replaced.
        """
        content = compressed(regression)
        self._add_part(REGRESSIONS, {"study_id": study_id, "regression": regression.id, "content": content})

    def regressions(self) -> tuple[tuple[int, Regression], ...]:
        """Each regression that was stored, with the study that was the first to measure it."""
        return tuple(self.transactions.read(study_rows.every_regression))

    def regressions_state(self) -> str:
        """What changes when anything changes that is stored of regressions."""
        return self.transactions.read(study_rows.regressions_state)

    def _add_part(self, part: study_rows.StudyPart, row: dict[str, object]) -> None:
        with contextlib.suppress(Conflict):  # another process stored it in between
            self.transactions.write(lambda connection: study_rows.store_part(connection, part, row))

    def tell_activity(self, study_id: int, activity: Activity) -> bool:
        """Say what a run of the study is doing, in place of what it said before. False where that could not
        be written: the run goes on without.
        """
        return self.transactions.try_write(
            lambda connection: leases.tell_activity(connection, study_id, activity)
        )

    def forget_activities(self, *keys: str) -> bool:
        """Runs (Activity.key) have ended. False where that could not be written."""
        return self.transactions.try_write(lambda connection: leases.forget_activities(connection, *keys))

    def activities(self) -> tuple[tuple[int, Activity], ...]:
        """What runs said last that have not said that they ended, each with its study's number."""
        return self.transactions.read(leases.every_activity)

    def take_machine(self, request: MachineLease) -> Taking:
        """Have a real machine for oneself, unless somebody has it who is there."""
        while True:
            try:
                return self.transactions.write(lambda connection: leases.take_machine(connection, request))
            except Conflict:  # on a server somebody else took it in between, who is found now
                continue

    def renew_machine(self, lease: MachineLease) -> bool | None:
        """Say that its holder is there. False: it is another's by now. None: that could not be written."""
        renewed: list[bool] = []
        is_written = self.transactions.try_write(
            lambda connection: renewed.append(leases.renew_machine(connection, lease))
        )
        return renewed[-1] if is_written else None

    def give_machine_back(self, lease: MachineLease) -> bool:
        """Others may have it. False where that could not be written: they have it after a while."""
        return self.transactions.try_write(lambda connection: leases.give_machine_back(connection, lease))

    def machine_leases(self) -> tuple[StoredLease, ...]:
        """Who has which real machine."""
        return self.transactions.read(leases.every_machine)

    def study_states(self, number: int | None = None) -> dict[int, str]:
        """Every study's number (or this one's), with what changes when anything changes that is stored of
        it: no trial is read for that.
        """
        return self.transactions.read(lambda connection: study_rows.study_states(connection, number))

    def summaries(self, workload: str = OF_STUDY) -> dict[int, Summary]:
        """Study → what was kept of its numbers in the workload (its label), of it as a whole (OF_STUDY), or
        of what it came to (OF_RESULT).
        """
        return self.transactions.read(lambda connection: study_rows.workload_summaries(connection, workload))

    def keep_summaries(self, of_studies: Sequence[StudySummaries]) -> bool:
        """Keep them in place of older ones. False where that could not be written: they are made again."""
        return self.transactions.try_write(
            lambda connection: study_rows.keep_summaries(connection, of_studies)
        )

    def close(self) -> None:
        """Close all connections."""
        self.transactions.engine.dispose()
        self.transactions.head_file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_store(
    location: str | Path | None = None,
    *,
    read_only: bool = False,
    existing: bool = False,
    followed: bool = False,
    unchecked: bool = False,
) -> Store:
    """The store at a path or a database's URL; None: `KTRIAL_STORE`, else the user's own.

    A file that is not there is made, with its directory, unless it has to be `existing`; with `read_only`
    that is an error, and nothing is ever written, so that a store on a read-only file system can be shown;
    `followed` as well where it stays open while others write to it. `unchecked`: even if it is no more what
    it was, to see what of it is whole. Raises StoreError: NotAStore, LogDamaged, OlderCopy, NoStoreThere,
    StoreForbidden, NoSuchBackend, where its schema is a later one (it is left as it is), locked, full.
    """
    url = url_of(location if location is not None else default_location())
    file = file_of(url)
    if file is None:
        return _open_on_server(url, read_only=read_only, existing=existing, unchecked=unchecked)
    if existing and not file.exists():
        raise NoStoreThere(file, _similar_beside(file))
    head_file = head_file_of(file, str(file))
    kept = head_file.read()
    version = sqlite.look(file)
    _check_version(version, str(file))
    if version is None:
        _check_is_new(file, kept, head_file)
    elif not unchecked:
        _check_file(file, kept, head_file)
    if read_only:
        if version is None:
            raise NotAStore(file, "there is nothing in it", hint="run a study first")
        return Store(_sqlite_engine(file, read_only=True, followed=followed), str(file), file, head_file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreForbidden(file, "made", error.strerror) from error
    fault_point("store: directory made")
    engine = _sqlite_engine(file, read_only=False)
    try:
        sqlite.enter_wal(engine)
        fault_point("store: write-ahead log in use")
        if version is None:
            if kept:
                head_file.forget()
            fault_point("store: older head forgotten")
            kept = _make_tables(engine)
            fault_point("store: schema up to date")
        _hold(engine, head_file, file, kept, unchecked=unchecked)
    except (SQLAlchemyError, sqlite3.Error) as error:
        engine.dispose()
        raise store_error(error, str(file), file) from error
    return Store(engine, str(file), file, head_file)


def _check_is_new(file: Path, kept: Head | None, head_file: HeadFile) -> None:
    """A store is about to be made. Raises StoreDamaged where one was there, and its file lost all of it."""
    if kept is None or kept.number == 1:
        return
    if not file.exists():
        print_message(
            f"store {file} is not there any more; {head_file.path} says that its log had {kept.number} "
            "entries. A new one is made"
        )
        return
    raise StoreDamaged(
        f"Store {file} is damaged: nothing is in its file, and {head_file.path} says that its log had "
        f"{kept.number} entries.",
        hint="restore a copy if there is one; after rm " + str(head_file.path) + " a new store is made",
    )


def _check_file(file: Path, kept: Head | None, head_file: HeadFile) -> None:
    """Raises StoreError where the store is not the one whose head was kept, or its file is damaged."""
    try:
        with contextlib.closing(sqlite.connect_read_only(file)) as connection:
            check_log(lambda query: connection.execute(query).fetchone(), kept, str(file), head_file.path)
            if sqlite.was_left_open(file, head_file):
                sqlite.check_quickly(connection, str(file))
    except sqlite3.Error as error:
        raise sqlite.failure(error, str(file), file) from error


def _hold(
    engine: Engine, head_file: HeadFile, file: Path | None, kept: Head | None, *, unchecked: bool
) -> None:
    """Keep the head from now on, also of a store that came without."""
    head_file.hold(file)
    if kept is None and not unchecked:
        with engine.begin() as connection:
            kept = log.newest_head(connection)
    if kept is not None:
        head_file.keep(kept)


def _similar_beside(file: Path) -> str:
    """A word on a store beside it whose name is nearly the same."""
    try:
        names = [path.name for path in file.parent.iterdir() if path.suffix == file.suffix]
    except OSError:
        return ""
    return nearest(file.name, names)


def _sqlite_engine(file: Path, *, read_only: bool, followed: bool = False) -> Engine:
    url = URL.create("sqlite", database=str(file))
    engine = (
        create_engine(url, creator=lambda: sqlite.connect_read_only(file, followed=followed))
        if read_only
        else create_engine(url)
    )
    sqlite.prepare_engine(engine)
    return engine


def _open_on_server(url: URL, *, read_only: bool, existing: bool, unchecked: bool) -> Store:
    name = shown(url)
    engine = postgresql.engine_for(url, read_only=read_only)
    head_file = head_file_of(None, name)
    try:
        kept = head_file.read()
        version = _version_on_server(engine, name)
        _check_version(version, name)
        if version is None and read_only:
            raise NotAStore(name, "there is nothing in it", hint="run a study first")
        if version is None and existing:
            raise NoStoreThere(name, ": its database is empty")
        if version is None:
            if kept:
                head_file.forget()
            kept = _make_tables(engine)
        elif not unchecked:
            with engine.begin() as connection:
                check_log(lambda query: _first_row(connection, query), kept, name, head_file.path)
        if not read_only:
            _hold(engine, head_file, None, kept, unchecked=unchecked)
    except SQLAlchemyError as error:
        engine.dispose()
        raise store_error(error, name, None) from error
    except StoreError:
        engine.dispose()
        raise
    return Store(engine, name, None, head_file)


def _first_row(connection: Connection, query: str) -> tuple[object, ...] | None:
    row = connection.exec_driver_sql(query).first()
    return tuple(row) if row else None


def _version_on_server(engine: Engine, name: str) -> int | None:
    """None: there is no store. A server that says that it will be there soon is waited for."""
    deadline = time.monotonic() + _SECONDS_FOR_THE_MOMENT
    while True:
        try:
            with engine.begin() as connection:
                if postgresql.is_postgresql(connection):
                    return postgresql.look(connection, name)
                has_schema = inspect(connection).has_table(schema_table.name)
                return connection.scalar(select(schema_table.c.version)) if has_schema else None
        except DBAPIError as error:
            if not postgresql.is_away_for_the_moment(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _check_version(version: int | None, name: str) -> None:
    if version is not None and version > SCHEMA_VERSION:
        raise StoreError(
            f"Store {name} has the schema {version}, and this ktrial knows {SCHEMA_VERSION}: another version "
            "wrote it.",
            hint="use the ktrial that wrote it (a newer one, or one from before the first release, whose "
            "stores no other reads), or another store: --store FILE",
        )
    if version is not None and version < 1:
        raise StoreDamaged(f"Store {name} is damaged: its schema version is {version}.")


def _make_tables(engine: Engine) -> Head | None:
    """Make the tables that are not there, once: another process may be at it too. The head of the log."""
    head = None
    with engine.execution_options(ktrial_writes=True).begin() as connection:
        if postgresql.is_postgresql(connection):
            postgresql.lock_schema(connection)
            metadata.create_all(connection)
        else:
            for statement in sqlite_tables():
                connection.exec_driver_sql(statement)
        fault_point("store: tables made")
        if connection.scalar(select(schema_table.c.version)) is None:
            head = log.begin(connection)
            connection.execute(insert(schema_table).values(version=SCHEMA_VERSION))
        fault_point("store: schema version written")
    return head
