"""The studies that run now, as the browser is told: how far they are, what they say so far, who runs them."""

import json
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from ktrial.analysis.result import make_record
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
    counted: str
    """Of what the verdicts are."""
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
        shown = [study for study in studies if study.study_id in states]
        self._known = {
            study.study_id: self._progress(store, study.study_id, states[study.study_id]) for study in shown
        }
        return [_as_json(study, self._known[study.study_id]) for study in shown]

    def _progress(self, store: Store, number: int, state: str) -> _SoFar:
        before = self._known.get(number)
        if before and before.state == state:
            return before
        stored = store.find(number)
        record = make_record(store, stored, store.trials(number, counted=False))
        counts = study_summary.verdict_counts(record)
        return _SoFar(
            state=state,
            name=printable(stored.study.name),
            finished=len(record.trials),
            failed=stored.failed,
            planned=record.planned,
            verdicts=[
                {
                    "name": verdict.value,
                    "count": count,
                    "symbol": VERDICTS[verdict].symbol,
                    "word": VERDICTS[verdict].word,
                }
                for verdict, count in counts
            ],
            counted=study_summary.counted(record.result.comparisons),
            answer=printable(record.result.answer)[:_LONGEST_ANSWER] if record.trials else "",
        )


def _as_json(study: RunningStudy, progress: _SoFar) -> dict[str, Any]:
    moment = datetime.now(UTC)
    left = [run.seconds_left for run in study.runs if run.seconds_left is not None]
    finished = max(progress.finished, *(run.finished for run in study.runs))
    return {
        "id": study.study_id,
        "name": progress.name,
        "page": f"results/{study.study_id}.html",
        "alive": study.is_alive,
        "finished": finished,
        "failed": progress.failed,
        "planned": max(finished, progress.planned, *(run.planned for run in study.runs)),
        "left": number_format.duration(max(1, math.ceil(max(left)))) if left and study.is_alive else "",
        "verdicts": progress.verdicts,
        "counted": progress.counted,
        "answer": progress.answer,
        "runs": [_run(run, moment) for run in study.runs],
    }


def _run(run: Activity, moment: datetime) -> dict[str, Any]:
    return {
        "user": printable(run.user),
        "host": printable(run.host),
        "process": run.process,
        "alive": is_alive(run, moment),
        "stopping": run.stopping,
        "started": run.started.isoformat(),
        "heard": "" if is_alive(run, moment) else run.heard.isoformat(timespec="seconds"),
        "doing": [
            {
                "what": printable(step.what),
                "where": printable(step.where),
                "since": step.since.isoformat(timespec="seconds"),
            }
            for step in run.doing
        ],
    }
