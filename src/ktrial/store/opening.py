"""Open a store: look before touching, make it if it is not there, refuse what is not ours or too new."""

import sqlite3
import time
from pathlib import Path

from sqlalchemy import URL, Engine, create_engine, insert, inspect, select, update
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ktrial.fault_points import fault_point
from ktrial.model.suggestions import nearest
from ktrial.store import postgresql, sqlite
from ktrial.store.errors import (
    NewerStore,
    NoStoreThere,
    NotAStore,
    StoreDamaged,
    StoreError,
    StoreForbidden,
)
from ktrial.store.failures import failure
from ktrial.store.location import default_location, file_of, shown, url_of
from ktrial.store.schema import metadata, schema
from ktrial.store.schema_version import SCHEMA_VERSION
from ktrial.store.store import Store

_SECONDS_FOR_THE_MOMENT = 30.0
"""How long a store is not opened whose server says that it is starting, or has too many connections."""


def open_store(
    location: str | Path | None = None,
    *,
    read_only: bool = False,
    existing: bool = False,
    followed: bool = False,
) -> Store:
    """The store at a path or a database's URL; None: `KTRIAL_STORE`, else the user's own.

    A store of an older schema is brought up to date, and its trials stay as they are.
    A file that is not there is made, with its directory, unless it has to be `existing`; with `read_only`
    that is an error, and nothing is ever written, so that a store on a read-only file system can be shown;
    `followed` as well where it stays open while others write to it.
    Raises NewerStore (the file is left as it is), NotAStore, NoStoreThere, StoreForbidden, StoreLocked,
    StoreFull, NoSuchBackend.
    """
    url = url_of(location if location is not None else default_location())
    file = file_of(url)
    if file is None:
        return _on_server(url, read_only=read_only, existing=existing)
    if existing and not file.exists():
        raise NoStoreThere(store=file, similar=_similar(file))
    version = sqlite.look(file)
    _check_version(version, str(file))
    if read_only:
        if version is None:
            raise NotAStore(store=file, problem="there is nothing in it", hint="run a study first")
        return Store(_sqlite_engine(file, read_only=True, followed=followed), str(file), file)
    _make_directory(file)
    fault_point("store: directory made")
    engine = _sqlite_engine(file, read_only=False)
    try:
        sqlite.enter_wal(engine)
        fault_point("store: write-ahead log in use")
        if version is None or version < SCHEMA_VERSION:
            _bring_up_to_date(engine)
            fault_point("store: schema up to date")
    except (SQLAlchemyError, sqlite3.Error) as error:
        engine.dispose()
        raise failure(error, str(file), file) from error
    return Store(engine, str(file), file)


def _similar(file: Path) -> str:
    """A word on a store beside it whose name is nearly the same."""
    try:
        beside = [one.name for one in file.parent.iterdir() if one.suffix == file.suffix]
    except OSError:
        return ""
    return nearest(file.name, beside)


def _sqlite_engine(file: Path, *, read_only: bool, followed: bool = False) -> Engine:
    url = URL.create("sqlite", database=str(file))
    engine = (
        create_engine(url, creator=lambda: sqlite.connect_read_only(file, followed=followed))
        if read_only
        else create_engine(url)
    )
    sqlite.prepare_engine(engine)
    return engine


def _on_server(url: URL, *, read_only: bool, existing: bool) -> Store:
    name = shown(url)
    engine = postgresql.engine_for(url, read_only=read_only)
    try:
        version, is_of_today = _looked(engine, name)
        _check_version(version, name)
        if version is None and read_only:
            raise NotAStore(store=name, problem="there is nothing in it", hint="run a study first")
        if version is None and existing:
            raise NoStoreThere(store=name, similar=": its database is empty")
        if not read_only and (version is None or version < SCHEMA_VERSION or not is_of_today):
            _bring_up_to_date(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        raise failure(error, name, None) from error
    except StoreError:
        engine.dispose()
        raise
    return Store(engine, name, None)


def _looked(engine: Engine, name: str) -> tuple[int | None, bool]:
    """The schema version, and whether all columns are as this ktrial makes them."""
    deadline = time.monotonic() + _SECONDS_FOR_THE_MOMENT
    while True:
        try:
            with engine.begin() as connection:
                if postgresql.is_postgresql(connection):
                    return postgresql.look(connection, name), postgresql.is_of_today(connection)
                there = inspect(connection).has_table(schema.name)
                return connection.scalar(select(schema.c.version)) if there else None, True
        except DBAPIError as error:
            if not postgresql.is_away_for_the_moment(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _check_version(version: int | None, name: str) -> None:
    if version is not None and version > SCHEMA_VERSION:
        raise NewerStore(store=name, found=version, known=SCHEMA_VERSION)
    if version is not None and version < 1:
        raise StoreDamaged(store=name, problem=f"its schema version is {version}")


def _bring_up_to_date(engine: Engine) -> None:
    """Make the tables that are not there, once: another process may be at it too.

    Schemas 2, 3, 4 and 6 to 12 have one table more than the one before, 13 has two; 5, 7 and 8 new fields
    in JSON; 14 a row more a study, which is written with the next trial.
    """
    with engine.execution_options(ktrial_writes=True).begin() as connection:
        if postgresql.is_postgresql(connection):
            postgresql.lock_schema(connection)
            postgresql.widen(connection)
        metadata.create_all(connection)
        fault_point("store: tables made")
        version = connection.scalar(select(schema.c.version))
        if version is None:
            connection.execute(insert(schema).values(version=SCHEMA_VERSION))
        elif version < SCHEMA_VERSION:
            connection.execute(update(schema).values(version=SCHEMA_VERSION))
        fault_point("store: schema version written")


def _make_directory(file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreForbidden(store=file, action="made", problem=error.strerror) from error
