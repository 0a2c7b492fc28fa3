"""Errors about the store that keeps trials."""

from ktrial.errors import KtrialError


class StoreError(KtrialError):
    """Whatever goes wrong with a store; the message begins with its name."""


class NotAStore(StoreError):
    """What is there is no store of ktrial's, or nothing is in it."""

    hint = "name another file (--store FILE or KTRIAL_STORE); a file that does not exist is created"

    def __init__(self, store: object, problem: str, *, hint: str = "") -> None:
        super().__init__(f"Store {store} is not a ktrial store: {problem}.", hint=hint)


class NoStoreThere(StoreError):
    """A store was to be there already."""

    hint = "name an existing one; `ktrial run STUDY.toml --store FILE` makes one"
    exit_code = 2

    def __init__(self, store: object, remark: str) -> None:
        super().__init__(f"There is no store {store}{remark}.")


class NoSuchBackend(StoreError):
    """No database can be had by this location."""

    hint = "a store is a file's path, sqlite:///FILE or postgresql://USER@HOST/DATABASE"

    def __init__(self, store: object, problem: str, *, hint: str = "") -> None:
        super().__init__(f"Store {store}: {problem}.", hint=hint)


class StoreFull(StoreError):
    """There is no room for more: the hint says where some is to be made."""


class ServerAway(StoreError):
    """A database's server, or the way to it, cannot be used now."""

    hint = (
        "is the server running, and are host, port, user, password (in the URL, PGPASSWORD or ~/.pgpass) and "
        "database right (createdb NAME makes one)? Then run the same command again"
    )

    def __init__(self, store: str, problem: str) -> None:
        self.problem = problem
        super().__init__(f"Store {store}: its server cannot be used: {problem}.")


class StoreGone(StoreError):
    """SQLite's file was deleted or replaced while ktrial had it open."""

    hint = (
        "restore a copy if there is one; then run the same command again: without a copy it begins a new "
        "store"
    )

    def __init__(self, store: str, happened: str) -> None:
        super().__init__(
            f"Store {store} is gone: its file was {happened} while ktrial had it open, and what was in it "
            "is lost."
        )


class StoreForbidden(StoreError):
    """This user may not do that with the store."""

    hint = "check the rights on the file and on its directory, or name another store: --store FILE"

    def __init__(self, store: object, action: str, problem: object, *, hint: str = "") -> None:
        super().__init__(f"Store {store} cannot be {action}: {problem}.", hint=hint)


class StoreDamaged(StoreError):
    """Something in the store is not what was stored."""

    hint = "keep a copy; `sqlite3 FILE .recover` may save what is in it; start a new one with --store FILE"


class LogDamaged(StoreDamaged):
    """The log of what was stored is not whole."""

    hint = (
        "ktrial store verify says what is whole; with --remove-damaged a new log begins, of the trials that "
        "are whole; ktrial store copy brings them into another store"
    )

    def __init__(self, store: object, problem: str) -> None:
        super().__init__(f"Store {store} is damaged: its log of what was stored is not whole: {problem}.")


class OlderCopy(StoreDamaged):
    """The store lacks entries of its log that it had."""

    hint = (
        "restore the newest copy; or accept the loss: ktrial store verify says what is there, and "
        "--remove-damaged keeps that"
    )

    def __init__(self, store: object, newest: object, kept: int, place: object) -> None:
        super().__init__(
            f"Store {store} is an older copy of itself, or damaged: its log ends with entry {newest}, and "
            f"{place} has kept entry {kept}, which is not in that log."
        )


class TrialsDamaged(StoreDamaged):
    """Trials differ from what was stored: no verdict comes from them."""


class StudyDamaged(StoreDamaged):
    """A part of a study is not what was stored: nothing is said from it."""


class NotItsCopy(StoreError):
    """A store has another study under the same number as the one that is copied to it."""

    hint = "ktrial store merge puts studies into a store that has others, under new numbers"

    def __init__(self, store: str, source: str, number: int, study: str) -> None:
        super().__init__(
            f"Store {store} is not a copy of {source}: it has another study under the number {number}, "
            f"{study}."
        )


class StudyNotStored(StoreError):
    """The store has no such study."""

    hint = "ktrial list shows the studies"

    def __init__(self, store: str, study: object, similar: str = "", *, hint: str = "") -> None:
        super().__init__(f"Store {store} has no study {study}{similar}.", hint=hint)
