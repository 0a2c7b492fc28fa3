"""The studies that run now, as the browser is told: how far they are, what they say so far, who runs them."""

import json
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from ktrial.analysis.result import record_of
from ktrial.analysis.store_queries import RunningStudy, is_alive, running_studies
from ktrial.format import number_format
from ktrial.format.labels import VERDICTS
from ktrial.format.sanitize import printable
from ktrial.model.machine import Activity
from ktrial.report import study_summary
from ktrial.store.errors import StoreError, StoreGone
from ktrial.store.store import Store

_SECONDS_BETWEEN = 0.5
_SHARE = 5
"""After a look that took long the next one waits so many times as long: most of a processor is the run's."""
_LONGEST_ANSWER = 600


@dataclass(frozen=True)
class _SoFar:
    """What a study's trials say."""

    state: str
    name: str
    finished: int
    failed: int
    planned: int
    verdicts: list[dict[str, Any]]
    answer: str


class Live:
    """What runs. Safe to use from several threads: however many look on, the store is asked once."""

    def __init__(self, opener: Callable[[], Store]) -> None:
        self._opener = opener
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._known: dict[int, _SoFar] = {}
        self._text = ""
        self._next = -math.inf

    def text(self) -> str:
        """All that runs, as one line of JSON. Where the store cannot be read that stands in `problem`."""
        with self._lock:
            if monotonic() >= self._next:
                before = monotonic()
                self._text = json.dumps(self._looked(), ensure_ascii=True)
                took = monotonic() - before
                self._next = monotonic() + max(_SECONDS_BETWEEN, _SHARE * took)
            return self._text

    def close(self) -> None:
        """Close the store."""
        with self._lock:
            if self._store:
                self._store.close()
            self._store = None

    def _looked(self) -> dict[str, Any]:
        try:
            if self._store is None:
                self._store = self._opener()
            return {"running": self._running(self._store), "problem": ""}
        except StoreError as error:
            if isinstance(error, StoreGone) and self._store:
                self._store.close()
                self._store = None
            return {"running": [], "problem": printable(error.message)}

    def _running(self, store: Store) -> list[dict[str, Any]]:
        studies = running_studies(store)
        states = store.study_states() if studies else {}
        shown = [one for one in studies if one.study_id in states]
        self._known = {one.study_id: self._so_far(store, one.study_id, states[one.study_id]) for one in shown}
        return [_told(one, self._known[one.study_id]) for one in shown]

    def _so_far(self, store: Store, number: int, state: str) -> _SoFar:
        known = self._known.get(number)
        if known and known.state == state:
            return known
        stored = store.find(number)
        record = record_of(store, stored, store.trials(number, counted=False))
        counts = study_summary.verdict_counts(record)
        return _SoFar(
            state=state,
            name=printable(stored.study.name),
            finished=len(record.trials),
            failed=stored.failed,
            planned=record.planned,
            verdicts=[
                {
                    "name": one.value,
                    "count": count,
                    "symbol": VERDICTS[one].symbol,
                    "word": VERDICTS[one].word,
                }
                for one, count in counts
            ],
            answer=printable(record.result.answer)[:_LONGEST_ANSWER] if record.trials else "",
        )


def _told(one: RunningStudy, so_far: _SoFar) -> dict[str, Any]:
    now = datetime.now(UTC)
    left = [each.seconds_left for each in one.runs if each.seconds_left is not None]
    finished = max(so_far.finished, *(each.finished for each in one.runs))
    return {
        "id": one.study_id,
        "name": so_far.name,
        "page": f"results/{one.study_id}.html",
        "alive": one.is_alive,
        "finished": finished,
        "failed": so_far.failed,
        "planned": max(finished, so_far.planned, *(each.planned for each in one.runs)),
        "left": number_format.duration(max(1, math.ceil(max(left)))) if left and one.is_alive else "",
        "verdicts": so_far.verdicts,
        "answer": so_far.answer,
        "runs": [_run(each, now) for each in one.runs],
    }


def _run(one: Activity, now: datetime) -> dict[str, Any]:
    return {
        "user": printable(one.user),
        "host": printable(one.host),
        "process": one.process,
        "alive": is_alive(one, now),
        "stopping": one.stopping,
        "started": one.started.isoformat(),
        "heard": "" if is_alive(one, now) else one.heard.isoformat(timespec="seconds"),
        "doing": [
            {
                "what": printable(each.what),
                "where": printable(each.where),
                "since": each.since.isoformat(timespec="seconds"),
            }
            for each in one.doing
        ],
    }
