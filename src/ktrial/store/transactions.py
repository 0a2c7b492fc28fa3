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
from ktrial.store import integrity, postgresql, sqlite
from ktrial.store.errors import ServerAway, StoreDamaged, StoreError, StoreGone, StudyDamaged
from ktrial.store.location import masked

WAIT_SECONDS = 600.0
"""How long a transaction waits for a server that was there: that restarts, say, or whose network is lost."""


T = TypeVar("T")


_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0


def tell(text: str) -> None:
    """On standard error, as a message of ktrial's."""
    print(f"ktrial: {text}", file=sys.stderr, flush=True)


class Transactions:
    """Reads and writes of one database, each in a transaction of its own, from any number of threads."""

    def __init__(self, engine: Engine, name: str, file: Path | None) -> None:
        self.name, self.engine, self.file = name, engine, file
        self.say: Callable[[str], None] = tell
        """Is told when the server is away, and when it is there again."""
        self._opened = _file_number(file)
        self._away = _Away()

    def write(self, work: Callable[[Connection], T]) -> T:
        """What `work` returns, once all that it wrote is stored. It may be called again after it failed."""
        return self._waiting(lambda: self._written(work))

    def try_write(self, work: Callable[[Connection], object]) -> bool:
        """Whether `work` wrote: what may as well be lost. No test can kill inside it, nothing is waited for
        but a lock, and an error is not told.
        """
        try:
            with self._told(), self.engine.execution_options(ktrial_writes=True).begin() as connection:
                work(connection)
        except (StoreError, _NotNow):
            return False
        return True

    def read(self, work: Callable[[Connection], T]) -> T:
        """What `work` returns: all that it reads was true at one moment. It may be called again."""
        return self._waiting(lambda: self._read(work))

    def _written(self, work: Callable[[Connection], T]) -> T:
        options = {"ktrial_writes": True}
        with self._told(), self.engine.execution_options(**options).begin() as connection:
            fault_point("store: transaction begun")
            result = work(connection)
            fault_point("store: transaction about to be committed")
        fault_point("store: transaction committed")
        self._check_there()
        return result

    def _read(self, work: Callable[[Connection], T]) -> T:
        at_one_moment = {"isolation_level": "REPEATABLE READ"} if self._on_postgresql else {}
        with self._told(), self.engine.execution_options(**at_one_moment).begin() as connection:
            return work(connection)

    @property
    def _on_postgresql(self) -> bool:
        return postgresql.is_postgresql(self.engine)

    def _waiting(self, transaction: Callable[[], T]) -> T:
        """Do it until it is done. Raises ServerAway after WAIT_SECONDS."""
        deadline, pause = time.monotonic() + WAIT_SECONDS, _FIRST_PAUSE
        while True:
            try:
                result = transaction()
            except _NotNow as error:
                self._wait(error.told, deadline, is_new=pause == _FIRST_PAUSE)
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                self._away.ended(self.name, self.say)
                return result

    def _wait(self, error: StoreError, deadline: float, *, is_new: bool) -> None:
        if time.monotonic() >= deadline:
            waited = f"{error.facts['problem']} (waited {WAIT_SECONDS:.0f} s)"
            raise type(error)(store=self.name, problem=waited) from error
        if not isinstance(error, ServerAway):
            return
        if interruption.is_asked_for():
            raise error
        if not is_new:  # a connection from before a restart fails once, and there is nothing to wait for
            self._away.began(self.name, error, self.say)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what a database's driver raises into a StoreError. Raises StoreGone."""
        self._check_there()
        try:
            yield
        except integrity.NotAsStored as error:
            facts = {"what": error.what, "study": error.study_id}
            raise StudyDamaged(store=self.name, **facts) from None
        except integrity.TrialsNotThere as error:
            raise StoreDamaged(
                f"Store {self.name}: of study {error.study_id}, {error.problem}: no verdict comes from "
                "the others.",
                hint=(
                    f"put a copy of the store back if there is one; or ktrial store verify {error.study_id} "
                    "--remove-damaged takes those that are there for all, and the command that ran the "
                    "study runs the others again"
                ),
            ) from None
        except IntegrityError as error:
            raise Conflict(store=self.name, problem=str(error.orig)) from error
        except ValidationError as error:
            raise StoreDamaged(store=self.name, problem=f"a row cannot be read ({error.title})") from error
        except ValueError as error:  # what the types for JSON and for dates raise
            raise StoreDamaged(store=self.name, problem=f"a row cannot be read ({error})") from error
        except zlib.error as error:
            raise StoreDamaged(
                store=self.name, problem=f"what was compressed cannot be read ({error})"
            ) from error
        except SQLAlchemyError as error:
            told = failure(error, self.name, self.file)
            if self._on_postgresql and (postgresql.is_away(error) or postgresql.is_to_be_done_again(error)):
                raise _NotNow(told) from error
            raise told from error

    def _check_there(self) -> None:
        """SQLite goes on with a file that has no name any more, and all of it is gone with the process."""
        now = _file_number(self.file)
        if now != self._opened:
            raise StoreGone(store=self.name, what="replaced" if now else "deleted")


class _NotNow(Exception):
    """The same transaction may succeed later."""

    def __init__(self, told: StoreError) -> None:
        super().__init__(str(told))
        self.told = told


class _Away:
    """Since when the server is away; told once, whichever thread finds it out."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._since: float | None = None

    def began(self, name: str, error: ServerAway, say: Callable[[str], None]) -> None:
        with self._lock:
            if self._since is None:
                self._since = time.monotonic()
                say(f"store {name}: waiting for its server, {WAIT_SECONDS:.0f} s: {error.facts['problem']}")

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


# What goes wrong in a database's driver, as errors of the store.


class Conflict(StoreError):
    """Store `store`: `problem`"""

    text = "Store {store}: {problem}"


def failure(error: SQLAlchemyError | sqlite3.Error, name: str, file: Path | None) -> StoreError:
    """The StoreError for an error of SQLAlchemy's, or of SQLite's driver."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if file and isinstance(cause, sqlite3.Error):
        return sqlite.failure(cause, name, file)
    if isinstance(error, DBAPIError) and postgresql.is_its_own(error):
        return postgresql.failure(error, name)
    return StoreError(store=name, problem=masked(str(cause)))
