"""Transactions of a store: what a driver raises becomes a StoreError; a server that is away is waited for."""

import sqlite3
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TypeVar

from pydantic import ValidationError
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from ktrial import interruption
from ktrial.fault_points import fault_point
from ktrial.store import log, postgresql, sqlite
from ktrial.store.errors import LogDamaged, ServerAway, StoreDamaged, StoreError, StoreGone, StudyDamaged
from ktrial.store.head_file import HeadFile
from ktrial.store.integrity import NotAsStored, TrialsNotThere
from ktrial.store.location import masked

WAIT_SECONDS = 600.0
"""How long a transaction waits for a server that was there: that restarts, say, or whose network is lost."""
Result = TypeVar("Result")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0


class Conflict(StoreError):
    """Another process stored the same in between."""


def print_message(text: str) -> None:
    """On standard error, as a message of ktrial's."""
    print(f"ktrial: {text}", file=sys.stderr, flush=True)


class Transactions:
    """Reads and writes of one database, each in a transaction of its own, from any number of threads."""

    def __init__(self, engine: Engine, name: str, file: Path | None, head_file: HeadFile) -> None:
        self.name, self.engine, self.file, self.head_file = name, engine, file, head_file
        self.say: Callable[[str], None] = print_message
        """Gets a line when the server is away, and when it is there again."""
        self._file_number = _file_number(file)
        self._absence = _Absence()

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` returns, once all that it wrote is stored. It may be called again after it failed."""

        def written() -> Result:
            with self._as_store_errors(), self._begin_writing() as connection:
                fault_point("store: transaction begun")
                log.forget_noted(connection)
                result = work(connection)
                head = log.append_noted(connection)
                fault_point("store: transaction about to be committed")
            fault_point("store: transaction committed")
            if head:
                self.head_file.keep(head)
                fault_point("store: head kept")
            self._check_file()
            return result

        return self._until_it_succeeds(written)

    def try_write(self, work: Callable[[Connection], object]) -> bool:
        """Whether `work` wrote: what may as well be lost. No test can kill inside it, nothing is waited for
        but a lock, and an error is not told.
        """
        try:
            with self._as_store_errors(), self._begin_writing() as connection:
                work(connection)
        except (StoreError, _TryAgain):
            return False
        return True

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` returns: all that it reads was true at one moment. It may be called again."""

        def read() -> Result:
            at_one_moment = {"isolation_level": "REPEATABLE READ"} if self._on_postgresql else {}
            with (
                self._as_store_errors(),
                self.engine.execution_options(**at_one_moment).begin() as connection,
            ):
                return work(connection)

        return self._until_it_succeeds(read)

    @contextmanager
    def _begin_writing(self) -> Iterator[Connection]:
        with self.engine.execution_options(ktrial_writes=True).begin() as connection:
            yield connection

    @property
    def _on_postgresql(self) -> bool:
        return postgresql.is_postgresql(self.engine)

    def _until_it_succeeds(self, transaction: Callable[[], Result]) -> Result:
        """Raises ServerAway after WAIT_SECONDS."""
        deadline, pause = time.monotonic() + WAIT_SECONDS, _FIRST_PAUSE
        while True:
            try:
                result = transaction()
            except _TryAgain as refusal:
                error = refusal.error
                if time.monotonic() >= deadline:
                    if isinstance(error, ServerAway):
                        waited = f"{error.problem} (waited {WAIT_SECONDS:.0f} s)"
                        raise ServerAway(self.name, waited) from error
                    raise error from refusal
                if isinstance(error, ServerAway):
                    if interruption.is_asked_for():
                        raise error from refusal
                    # A connection from before a restart fails once, and there is nothing to wait for.
                    if pause > _FIRST_PAUSE:
                        self._absence.began(self.name, error, self.say)
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                self._absence.ended(self.name, self.say)
                return result

    @contextmanager
    def _as_store_errors(self) -> Iterator[None]:
        """Turn what a database's driver raises into a StoreError. Raises StoreGone."""
        self._check_file()
        try:
            yield
        except NotAsStored as error:
            raise StudyDamaged(
                f"Store {self.name}: the {error.part} of study {error.study_id} is not what was stored: "
                "no result is shown from it.",
                hint=(
                    "ktrial store verify names all that is damaged; the command that ran the study "
                    "repairs its definition, and --remove-damaged removes an answer, which is then made "
                    "again from the stored trials"
                ),
            ) from None
        except TrialsNotThere as error:
            raise StoreDamaged(
                f"Store {self.name}: of study {error.study_id}, {error.problem}: no verdict comes from the "
                "others.",
                hint=(
                    "restore a copy of the store if there is one; or accept the loss: ktrial store verify "
                    f"{error.study_id} --remove-damaged, after which the command that ran the study runs "
                    "the missing trials again"
                ),
            ) from None
        except log.LogNotWhole as error:
            raise LogDamaged(self.name, str(error)) from None
        except log.StudiesNotThere as error:
            raise StoreDamaged(
                f"Store {self.name} is damaged: the number of its studies is {error.there}, and should be "
                f"{error.logged}, as its log says.",
                hint="ktrial store verify names what is missing, and how to go on",
            ) from None
        except IntegrityError as error:
            raise Conflict(f"Store {self.name}: {error.orig}") from error
        except ValidationError as error:
            raise self._damaged(f"a row cannot be read ({error.title})") from error
        except ValueError as error:  # what the types for JSON and for dates raise
            raise self._damaged(f"a row cannot be read ({error})") from error
        except zlib.error as error:
            raise self._damaged(f"what was compressed cannot be read ({error})") from error
        except SQLAlchemyError as error:
            failure = store_error(error, self.name, self.file)
            if self._on_postgresql and (postgresql.is_away(error) or postgresql.is_to_be_done_again(error)):
                raise _TryAgain(failure) from error
            raise failure from error

    def _damaged(self, problem: str) -> StoreDamaged:
        return StoreDamaged(f"Store {self.name} is damaged: {problem}.")

    def _check_file(self) -> None:
        """SQLite goes on with a file that has no name any more, and all of it is gone with the process."""
        number = _file_number(self.file)
        if number != self._file_number:
            raise StoreGone(self.name, "replaced" if number else "deleted")


def store_error(error: SQLAlchemyError | sqlite3.Error, name: str, file: Path | None) -> StoreError:
    """The StoreError for an error of SQLAlchemy's, or of SQLite's driver."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if file and isinstance(cause, sqlite3.Error):
        return sqlite.failure(cause, name, file)
    if isinstance(error, DBAPIError) and postgresql.is_its_own(error):
        return postgresql.failure(error, name)
    return StoreError(f"Store {name}: {masked(str(cause))}")


class _TryAgain(Exception):
    """The same transaction may succeed later."""

    def __init__(self, error: StoreError) -> None:
        super().__init__(str(error))
        self.error = error


class _Absence:
    """Since when the server is away; told once, whichever thread finds it out."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._since: float | None = None

    def began(self, name: str, error: ServerAway, say: Callable[[str], None]) -> None:
        with self._lock:
            if self._since is None:
                self._since = time.monotonic()
                say(f"store {name}: waiting for its server, {WAIT_SECONDS:.0f} s: {error.problem}")

    def ended(self, name: str, say: Callable[[str], None]) -> None:
        if self._since is None:  # nearly always
            return
        with self._lock:
            if self._since is not None:
                say(f"store {name}: its server is there again, after {time.monotonic() - self._since:.0f} s")
                self._since = None


def _file_number(file: Path | None) -> tuple[int, int] | None:
    """What tells a file from another of its name; None where it is not there, or the store is on a server."""
    if file is None:
        return None
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
