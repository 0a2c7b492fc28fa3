"""What `ktrial show` printed before: comparing and explaining takes seconds, and printing it again does not.

An output is kept under the digest of all that it rests on: what the store has of the study, this ktrial and
the packages that it computes with, the kernels in the cache and what is known of them. An output that rests
on anything else (another package's plugin, a program of this system) is not kept.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrial.cli import output_cache
from ktrial.installation import package_directory
from ktrial.kernels import kernels_state
from ktrial.store.quick_reader import NoQuickReading, QuickReader, StudyRow, quick_reader

if TYPE_CHECKING:
    from ktrial.model.study import StudyRecord

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
        output_cache.put(key, text)


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
        return output_cache.key_of(form, of_store, kernels_state(), os.uname().release)
    except (NoQuickReading, OSError):
        return None


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
