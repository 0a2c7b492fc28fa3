"""Which studies run now, and who runs them: by what runs told the store, and by whether they still can."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ktrial.model.activity import Activity
from ktrial.process_identity import born, same_boot
from ktrial.store import Store


@dataclass(frozen=True)
class RunningStudy:
    """A study that at least one process runs, or was running when it was last heard of."""

    study_id: int
    runs: tuple[Activity, ...]
    """Those that run, the oldest first; of a study without any those that ended without a word."""
    is_alive: bool
    """Whether any of them runs."""


def running_studies(store: Store, now: datetime | None = None) -> tuple[RunningStudy, ...]:
    """By their numbers. Raises StoreError."""
    moment = now or datetime.now(UTC)
    by_study: dict[int, list[Activity]] = {}
    for study_id, activity in store.activities():
        by_study.setdefault(study_id, []).append(activity)
    return tuple(_running(study_id, runs, moment) for study_id, runs in sorted(by_study.items()))


def _running(study_id: int, runs: Sequence[Activity], now: datetime) -> RunningStudy:
    alive = [one for one in runs if is_alive(one, now)]
    shown = sorted(alive or runs, key=lambda one: (one.started, one.key))
    return RunningStudy(study_id, tuple(shown), bool(alive))


def is_alive(one: Activity, now: datetime) -> bool:
    """Whether the process runs: on this host it is looked for, else it was heard of not too long ago."""
    if one.host == socket.gethostname() and same_boot(one.born, born(os.getpid())):
        return born(one.process) == one.born
    return abs((now - one.heard).total_seconds()) <= one.silence_seconds
