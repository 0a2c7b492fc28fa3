"""All that only PostgreSQL has: its errors, locks, and a look at a database that does not change it."""

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from ktrial.installation import how_to_add
from ktrial.store.errors import (
    NoSuchBackend,
    NotAStore,
    ServerAway,
    StoreDamaged,
    StoreError,
    StoreForbidden,
    StoreFull,
)
from ktrial.store.location import masked, shown
from ktrial.store.schema import POSTGRESQL, metadata, schema_table
from ktrial.text_lines import lines_of

CONNECT_SECONDS = 10
_LOCK = 0x6B747269616C
"""The number of the lock under which tables are made and changed: `ktrial`."""
_LOG_LOCK = _LOCK + 1
"""The same for entries of the log."""
_WAIT_FOR_LOCK = text("SELECT pg_advisory_xact_lock(:lock)")
_FORBIDDEN = {"42501", "25006"}
_FULL = "53100"
_DAMAGED = {"XX001", "XX002"}
_AGAIN = {"40001", "40P01"}
"""Two transactions stood in each other's way, and this one was undone: it is to be done again."""
_NO_CONNECTION = ("08", "57P", "53300")
"""How the codes begin of an ended or refused connection, of a server that stops or starts, or has no room for
another connection (https://www.postgresql.org/docs/current/errcodes-appendix.html)."""
_FOR_THE_MOMENT = (
    "starting up",
    "shutting down",
    "in recovery mode",
    "too many clients",
    "not yet accepting",
)
"""In what a server says that will take connections soon."""


def is_postgresql(connection: Connection | Engine) -> bool:
    """Whether it is one to PostgreSQL."""
    return connection.dialect.name == POSTGRESQL


def engine_for(url: URL, *, read_only: bool) -> Engine:
    """An engine for a database on a server. Raises NoSuchBackend."""
    name = shown(url)
    is_ours = url.get_backend_name() == POSTGRESQL
    defaults = {"fallback_application_name": "ktrial", "connect_timeout": CONNECT_SECONDS}
    arguments = {key: value for key, value in defaults.items() if is_ours and key not in url.query}
    try:
        engine = create_engine(url, connect_args=arguments, hide_parameters=True)
    except (NoSuchModuleError, ArgumentError) as error:
        raise NoSuchBackend(name, f"SQLAlchemy knows no {url.drivername}") from error
    except ModuleNotFoundError as error:
        problem = f"its driver is not installed ({error.name})"
        raise NoSuchBackend(name, problem, hint=how_to_add("postgresql") if is_ours else "") from error
    event.listen(engine, "handle_error", _mark_ended)
    return engine.execution_options(postgresql_readonly=True) if is_ours and read_only else engine


def _mark_ended(context: ExceptionContext) -> None:
    """A connection that the server ends takes all of the pool with it: it is asked for new ones."""
    state = getattr(context.original_exception, "sqlstate", None)
    context.is_disconnect = context.is_disconnect or bool(state and state.startswith(("08", "57P")))


def look(connection: Connection, name: str) -> int | None:
    """The schema version of the store in the database; None where it has none of the store's tables.

    Raises NotAStore for a database of another kind, StoreDamaged where the version is missing.
    """
    encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
    if encoding != "UTF8":
        hint = "make one that is: createdb --encoding=UTF8 --template=template0 NAME"
        raise NotAStore(name, f"its encoding is {encoding}, not UTF8", hint=hint)
    query = text("SELECT n FROM unnest(CAST(:names AS text[])) AS n WHERE to_regclass(n) IS NOT NULL")
    tables = set(connection.scalars(query, {"names": list(metadata.tables)}))
    if schema_table.name in tables:
        version = connection.exec_driver_sql("SELECT version FROM ktrial_schema").scalar()
        if version is None:
            raise StoreDamaged(f"Store {name} is damaged: it says no schema version.")
        return int(version)
    if tables:
        hint = "name another database, or another schema: ?options=-csearch_path%3DSCHEMA"
        raise NotAStore(name, f"there is another program's table {min(tables)} in it", hint=hint)
    return None


def lock_schema(connection: Connection) -> None:
    """Wait until no other process makes or changes the tables, until the transaction ends."""
    connection.execute(_WAIT_FOR_LOCK, {"lock": _LOCK})


def lock_log(connection: Connection) -> None:
    """Wait until no other process adds to the log, until the transaction ends. Nobody needs rights for it."""
    connection.execute(_WAIT_FOR_LOCK, {"lock": _LOG_LOCK})


def identity(connection: Connection) -> str:
    """What tells the database from its copies elsewhere, whoever asks and by whichever address."""
    query = text("SELECT system_identifier, current_database(), current_schema() FROM pg_control_system()")
    system, database, schema = connection.execute(query).one()
    return f"database {database}, schema {schema}, of PostgreSQL's server with system identifier {system}"


def is_its_own(error: DBAPIError) -> bool:
    """Whether its driver raised it, and not another database's."""
    return type(error.orig).__module__.split(".")[0] == "psycopg"


def is_away(error: BaseException) -> bool:
    """Whether the server, or the way to it, is away, so that the same may be tried later."""
    if not isinstance(error, DBAPIError) or not is_its_own(error):
        return False
    state = getattr(error.orig, "sqlstate", None)
    if state:
        return str(state).startswith(_NO_CONNECTION)
    return error.connection_invalidated or type(error.orig).__name__ in {"OperationalError", "InterfaceError"}


def is_away_for_the_moment(error: BaseException) -> bool:
    """Whether a server that is asked for the first time says that it will be there soon."""
    return is_away(error) and any(word in str(error) for word in _FOR_THE_MOMENT)


def is_to_be_done_again(error: BaseException) -> bool:
    """Whether the transaction stood in another one's way."""
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in _AGAIN


def failure(error: DBAPIError, name: str) -> StoreError:
    """The StoreError that says what PostgreSQL's error means."""
    state = getattr(error.orig, "sqlstate", None)
    problem = driver_message(error)
    if state in _FORBIDDEN:
        return StoreForbidden(
            name,
            "written",
            problem,
            hint="check the user's rights on the database: GRANT CREATE, USAGE ON SCHEMA …; or name another "
            "store",
        )
    if state == _FULL:
        return StoreFull(
            f"Store {name}: the server's disk is full: {problem}. The trials stored before are safe.",
            hint="free some space on the server, then run the same command again",
        )
    if state in _DAMAGED:
        return StoreDamaged(
            f"Store {name} is damaged: {problem}.",
            hint="keep a copy (pg_dump); a backup may have what is damaged; ktrial store verify says what "
            "is whole",
        )
    if is_away(error):
        return ServerAway(name, problem)
    return StoreError(f"Store {name}: {problem}")


def driver_message(error: DBAPIError) -> str:
    """What the driver says, on one line, without passwords."""
    lines = [line.strip().rstrip(".?") for line in lines_of(str(error.orig))]
    return masked("; ".join(line for line in lines if line.strip("^")))
