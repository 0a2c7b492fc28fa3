"""What `ktrial show` printed before: comparing and explaining takes seconds, and printing it again does not.

An output is kept under the digest of all that it rests on: what the store has of the study, this ktrial and
the packages that it computes with, the kernels in the cache and what is known of them. An output that rests
on anything else (another package's plugin, a program of this system) is not kept. The directory may be
deleted at any time.
"""

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrial.installation import VERSION, cache_directory, package_directory
from ktrial.kernels.cache.location import kernels_state
from ktrial.store.quick_reader import NoQuickReading, QuickReader, quick_reader
from ktrial.store.study_row import StudyRow

if TYPE_CHECKING:
    from ktrial.model.study_record import StudyRecord

_MOST = 100
"""Outputs that are kept; those used longest ago go first."""
_PACKAGE = re.compile(r".*\.(dist|egg)-info")
_OF_THIS_SYSTEM = re.compile(r".*/|path:")
"""In a kernel's name: what it stands for is not in the cache alone."""


def key_of(location: str, study: str | None, form: str) -> str | None:
    """The key of an output of `ktrial show`: of a study by its name or number, or of the latest.

    None where nothing may be kept: it would not be known when it is out of date.
    """
    return _key(location, lambda studies: _named(studies, study), form)


def keep_result(location: str, record: "StudyRecord", text: str) -> None:
    """Keep what `ktrial show` will print of a result, unless the store has more by now."""

    def is_still_so(row: StudyRow) -> bool:
        failed = sum(trial.outcome.value != "completed" for trial in record.trials)
        return (row.id, row.finished, row.failed) == (record.id, len(record.trials), failed)

    trials = {(trial.planned.key, trial.started) for trial in record.trials}
    key = _key(location, lambda studies: next(filter(is_still_so, studies), None), "text", trials)
    if key:
        put(key, text)


def _key(
    location: str,
    choose: Callable[[Sequence[StudyRow]], StudyRow | None],
    form: str,
    trials: set[tuple[str, datetime]] | None = None,
) -> str | None:
    """The key; None also where the study's trials are others than these."""
    try:
        with quick_reader(location) as reader:
            row = choose(reader.studies())
            if row is None or row.is_search or not _rests_on_what_is_known(row, reader):
                return None
            if trials is not None and trials != reader.trials(row.id):
                return None
            of_store = [reader.name, row.id, reader.content_digest(row.id)]
        return _digest([form, VERSION, of_store, _program(), kernels_state(), os.uname().release])
    except (NoQuickReading, OSError):
        return None


def get(key: str) -> str | None:
    """What was printed; None where nothing was, or where what was kept is damaged."""
    file = _file(key)
    try:
        digest, _, text = file.read_bytes().partition(b"\n")
    except OSError:
        return None
    if digest != hashlib.sha256(text).hexdigest().encode():
        return None
    with suppress(OSError):  # a cache of somebody else's
        os.utime(file)
    return text.decode()


def put(key: str, text: str) -> None:
    """Keep what was printed; where it cannot be, it is worked out again next time."""
    from importlib.metadata import entry_points

    if any(group.startswith("ktrial.") for group in entry_points().groups):
        return  # a plugin's code may change, and its version stay
    content = text.encode()
    with suppress(OSError):
        file = _file(key)
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f"{file.name}.{os.getpid()}.partial")
        partial.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
        partial.replace(file)
        _forget_the_oldest(file.parent)


def _forget_the_oldest(directory: Path) -> None:
    by_age = sorted(directory.iterdir(), key=lambda one: one.stat().st_mtime, reverse=True)
    for old in by_age[_MOST:]:
        old.unlink(missing_ok=True)


def _file(key: str) -> Path:
    return cache_directory() / "shown" / key


def _named(studies: Sequence[StudyRow], wanted: str | None) -> StudyRow | None:
    """As `Store.find`; None for a study file, which has to be read first."""
    if wanted is None:
        return studies[-1] if studies else None
    by_name = [one for one in studies if one.name == wanted]
    by_number = [one for one in studies if str(one.id) == wanted]
    return next(reversed(by_name or by_number), None)


def _rests_on_what_is_known(row: StudyRow, reader: QuickReader) -> bool:
    """Whether an explanation of the study looks at nothing but the store and the kernels in the cache."""
    if not reader.has_profiles(row.id):
        return True  # and so nothing is explained
    spec = row.spec
    own = {one["name"] for one in json.loads(_own_workloads().read_bytes())}
    return (
        all(use["name"] in own and not use["command"] for use in spec["workloads"])
        and not spec["machine"]["files"]
        and not any(factor["kind"] == "scheduler" for factor in spec["factors"])
        and not any(_OF_THIS_SYSTEM.match(name) for name in _kernel_names(spec))
    )


def _own_workloads() -> Path:
    """The list of what the program `work` does in a guest."""
    return package_directory() / "_guest" / "x86_64" / "workloads.json"


def _kernel_names(spec: dict[str, Any]) -> Iterator[str]:
    yield spec["machine"]["kernel"]
    for factor in spec["factors"]:
        if factor["kind"] == "kernel":
            yield from factor["levels"]


def _program() -> list[Any]:
    """The state of this ktrial's files, and what else is installed beside it."""
    files = sorted(_states(package_directory()))
    packages = sorted(
        entry.name
        for directory in sys.path
        if Path(directory).is_dir()
        for entry in os.scandir(directory or ".")
        if _PACKAGE.fullmatch(entry.name)
    )
    return [sys.version, files, packages]


def _states(directory: Path) -> Iterator[tuple[str, int, int]]:
    """Each file's path, size, and when it was changed: the time of which no program can choose."""
    for entry in os.scandir(directory):
        if entry.name == "__pycache__":
            continue
        if entry.is_dir():
            yield from _states(Path(entry.path))
        else:
            status = entry.stat()
            yield entry.path, status.st_size, status.st_ctime_ns


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()
