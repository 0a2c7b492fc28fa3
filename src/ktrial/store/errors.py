"""Errors about the store that keeps trials."""

from ktrial.errors import KtrialError


class StoreError(KtrialError):
    """Store {store}: {problem}"""


class NewerStore(StoreError):
    """Store {store} was written by a newer ktrial (its schema is {found}, this ktrial knows {known}).

    Nothing in it was changed.
    """

    hint = "use that newer ktrial, or another store: --store FILE"


class NotAStore(StoreError):
    """Store {store} is not a ktrial store: {problem}."""

    hint = "name another file (--store FILE or KTRIAL_STORE); one that is not there is made"


class NoStoreThere(StoreError):
    """There is no store {store}{similar}."""

    hint = "name one that is there; `ktrial run STUDY.toml --store FILE` makes one"
    exit_code = 2


class StoreLocked(StoreError):
    """Store {store} is locked{holder}: waited {seconds} s for it."""

    hint = "wait for that process to end, or end it, then run the same command again: no trial is lost"


class StoreFull(StoreError):
    """Store {store}: its disk is full ({free} bytes free). The trials stored before are safe."""

    hint = "free some space, or use another disk (--store FILE), then run the same command again"


class ServerFull(StoreError):
    """Store {store}: the server's disk is full: {problem}. The trials stored before are safe."""

    hint = "free some space on the server, then run the same command again"


class ServerAway(StoreError):
    """Store {store}: its server cannot be used: {problem}."""

    hint = (
        "is the server running, and are host, port, user, password (in the URL, PGPASSWORD or ~/.pgpass) and "
        "database right (createdb NAME makes one)? Then run the same command again"
    )


class StoreGone(StoreError):
    """Store {store} is gone: its file was {what} while ktrial had it open, and what was in it is lost."""

    hint = "put a copy back if there is one; then run the same command again: without one it begins anew"


class StoreForbidden(StoreError):
    """Store {store} cannot be {action}: {problem}."""

    hint = "check the rights on the file and on its directory, or name another store: --store FILE"


class StoreDamaged(StoreError):
    """Store {store} is damaged: {problem}."""

    hint = "keep a copy; `sqlite3 FILE .recover` may save what is in it; start a new one with --store FILE"


class FilesAway(StoreError):
    """Store {store}: the files of its large parts, {files}, cannot be used: {problem}"""

    hint = (
        "are they there, and may this user read and write them? (pip install fsspec, and what it asks for: "
        "s3fs, gcsfs, paramiko.) Trials stored before are safe: then run the same command again. "
        "`ktrial store files` says where they are, and names another place after a move"
    )


class FilesAreAnothers(StoreError):
    """Store {store}: the files of its large parts, {files}, belong to {owner}: one is a copy of the other.

    Each would take away what only the other names: nothing was written there.
    """

    hint = (
        "if there is no other store any more, ktrial store files --take-over; else ktrial store copy makes a "
        "copy that has its own"
    )


class FilesMissing(StoreError):
    """Store {store}: {missing} of the files that it names are not in {files}, among them {example}.

    Nothing was changed.
    """

    hint = "bring them there first, with their directory; ktrial store files says where they are now"


class FilesInUse(StoreError):
    """Store {store} has profiles or series in files: it needs their place."""

    hint = "ktrial store copy makes a store that has all of it inside"


class PartLost(StoreDamaged):
    """Store {store}: the {part} of trial {trial} of study {study} is lost: {problem}. Numbers are whole."""

    hint = (
        "put the file back from a backup, under its name; or ktrial store verify {study} --remove-damaged "
        "takes the trial away, and the command that ran the study runs it again"
    )


class TrialsDamaged(StoreDamaged):
    """Store {store}: {trials} of study {study} {differ} from what was stored: no verdict comes from them."""

    hint = (
        "which ones: ktrial store verify {study}; with --remove-damaged they are taken away, and the command "
        "that ran the study runs them again"
    )


class TrialsMissing(StoreDamaged):
    """Store {store}: of study {study}, {problem}: no verdict comes from the others."""

    hint = (
        "put a copy of the store back if there is one; or ktrial store verify {study} --remove-damaged takes "
        "those that are there for all, and the command that ran the study runs the others again"
    )


class StudyDamaged(StoreDamaged):
    """Store {store}: the {what} of study {study} is not what was stored: nothing is said from it."""

    hint = (
        "ktrial store verify names all that is damaged; the command that ran the study puts what it asks for "
        "right, and --remove-damaged takes an answer away, which is then made again of the stored trials"
    )


class NotItsCopy(StoreError):
    """Store {store} is no copy of {source}: it has another study under the number {number}, {study}."""

    hint = "ktrial store merge puts studies into a store that has others, under new numbers"


class StudyNotStored(StoreError):
    """Store {store} has no study {study}{similar}."""

    hint = "what is there: ktrial list"


class NoSuchBackend(StoreError):
    """Store {store}: {problem}."""

    hint = (
        "a store is a file's path, sqlite:///FILE or postgresql://USER@HOST/DATABASE, with the driver for it "
        "installed: pip install ktrial[postgresql]"
    )
