"""Errors about the store that keeps trials."""

from ktrial.errors import KtrialError


class StoreError(KtrialError):
    text = "Store {store}: {problem}"


class StoreUsageError(StoreError):
    """The command was given something that it cannot take."""

    exit_code = 2


class NotAStore(StoreError):
    text = "Store {store} is not a ktrial store: {problem}."
    hint = "name another file (--store FILE or KTRIAL_STORE); one that is not there is made"


class ServerAway(StoreError):
    text = "Store {store}: its server cannot be used: {problem}."
    hint = (
        "is the server running, and are host, port, user, password (in the URL, PGPASSWORD or ~/.pgpass) and "
        "database right (createdb NAME makes one)? Then run the same command again"
    )


class StoreGone(StoreError):
    text = "Store {store} is gone: its file was {what} while ktrial had it open, and what was in it is lost."
    hint = "put a copy back if there is one; then run the same command again: without one it begins anew"


class StoreForbidden(StoreError):
    text = "Store {store} cannot be {action}: {problem}."
    hint = "check the rights on the file and on its directory, or name another store: --store FILE"


class StoreDamaged(StoreError):
    text = "Store {store} is damaged: {problem}."
    hint = "keep a copy; `sqlite3 FILE .recover` may save what is in it; start a new one with --store FILE"


class FilesAway(StoreError):
    text = "Store {store}: the files of its large parts, {files}, cannot be used: {problem}"
    hint = (
        "are they there, and may this user read and write them? (pip install fsspec, and what it asks for: "
        "s3fs, gcsfs, paramiko.) Trials stored before are safe: then run the same command again. "
        "`ktrial store files` says where they are, and names another place after a move"
    )


class FilesMissing(StoreError):
    """Nothing was changed."""

    text = "Store {store}: {missing} of the files that it names are not in {files}, among them {example}."
    hint = "bring them there first, with their directory; ktrial store files says where they are now"


class PartLost(StoreDamaged):
    text = (
        "Store {store}: the {part} of trial {trial} of study {study} is lost: {problem}. Numbers are whole."
    )
    hint = (
        "put the file back from a backup, under its name; or ktrial store verify {study} --remove-damaged "
        "takes the trial away, and the command that ran the study runs it again"
    )


class TrialsDamaged(StoreDamaged):
    text = (
        "Store {store}: {trials} of study {study} {differ} from what was stored: no verdict comes from them."
    )
    hint = (
        "which ones: ktrial store verify {study}; with --remove-damaged they are taken away, and the command "
        "that ran the study runs them again"
    )


class StudyDamaged(StoreDamaged):
    text = "Store {store}: the {what} of study {study} is not what was stored: nothing is said from it."
    hint = (
        "ktrial store verify names all that is damaged; the command that ran the study puts what it asks for "
        "right, and --remove-damaged takes an answer away, which is then made again of the stored trials"
    )


class StudyNotStored(StoreError):
    text = "Store {store} has no study {study}{similar}."
    hint = "what is there: ktrial list"
