"""Who watches a run: progress and events, told as they happen. Nothing is printed here."""

import os
import socket
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic

from ktrial.analysis.store_queries import is_alive
from ktrial.errors import KtrialError
from ktrial.kernels import Progress
from ktrial.model.comparison import Comparison
from ktrial.model.design import Plan, PlannedTrial
from ktrial.model.machine import Activity, Boot, Doing
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import EXACT_MODES, Mode
from ktrial.process_identity import born, user
from ktrial.store.errors import StoreError
from ktrial.store.store import Store


class Observer:
    """Told what a run does, and does nothing: to be inherited from, for a few of the events or all of them.

    Every method is called from the thread that called `run`.
    """

    def study_planned(self, plan: Plan, finished: int) -> None:
        """The trials are known; `finished` of them are in the store already and will not be run again."""

    def kernel_progress(self, name: str, what: str, done: int, total: int) -> None:
        """A kernel is being obtained; `done` and `total` are bytes, `total` is 0 where it is not known."""

    def progress_of(self, name: str) -> Progress:
        """What tells of one kernel, for functions that know no more than their own progress."""

        def progress(what: str, done: int = 0, total: int = 0) -> None:
            self.kernel_progress(name, what, done, total)

        return progress

    def kernel_failed(self, name: str, error: KtrialError) -> None:
        """A kernel could not be had; the study goes on without it."""

    def preparing(self, boot: Boot, what: str) -> None:
        """A system is being booted once for all of its trials: `booting`, `settling`…"""

    def prepared(self, boot: Boot) -> None:
        """The system is ready, or failed: its trials tell."""

    def trial_started(self, planned: PlannedTrial) -> None:
        """A trial starts."""

    def trial_finished(self, trial: Trial, finished: int, total: int, seconds_left: float | None) -> None:
        """A trial ended and is stored; `finished` of `total` are. `seconds_left` is an estimate."""

    def blocks_wanted(self, ended: int, target: int, comparisons: Sequence[Comparison]) -> None:
        """A study in real time goes on: the next look is after `wanted` blocks. What is known so far."""

    def notice(self, text: str) -> None:
        """Something that a person should know: what became of a part of a fleet. The run goes on."""

    def stopping(self) -> None:
        """Ctrl-C, SIGTERM or SIGHUP: what is under way is being ended, what is finished is being stored."""


@dataclass
class Pace:
    """How fast trials end, with all that lies between them: says how many seconds are left."""

    trials: int = 0
    seconds: float = 0.0
    """Of the trials themselves."""
    begun: float | None = None
    """When the first was begun, by `time.monotonic`."""

    def begin(self) -> None:
        """Trials are run from now on; but for the first time, this changes nothing."""
        self.begun = time.monotonic() if self.begun is None else self.begun

    def saw(self, seconds: float) -> None:
        """A trial took so long."""
        self.trials, self.seconds = self.trials + 1, self.seconds + seconds

    def left(self, trials: int, at_once: int) -> float | None:
        """How many seconds so many trials will take; None where none has been seen.

        What lies between trials (boots, files, verdicts so far) counts once enough trials have ended.
        """
        if not self.trials or self.begun is None:
            return None
        if self.trials < at_once:
            return self.seconds / self.trials * trials / at_once
        return (time.monotonic() - self.begun) / self.trials * trials


# Tells the store, while a study runs, who runs it and what is under way: for those who look on elsewhere.
#
# Nothing rests on it. What is told may be lost, and an end that nobody could tell (SIGKILL, power) is seen
# by those who read: see ktrial.analysis.store_queries.

SECONDS_BETWEEN = 1.0
"""What happens is told no more often; a run that is shorter never says anything."""
_BEAT_SECONDS = 10.0
_SILENCE_SECONDS = 60.0
_LONGEST_TRIAL_SECONDS = 6 * 3600.0
"""Of a run that is silent while it measures."""
_KERNEL = "kernel"
"""Under this name stands the kernel that is being had: one after the other."""
_MOST = 64
"""Things under way that are named."""


class ActivityObserver(Observer):
    """An Observer that passes on all that it is told, and tells the store.

    In real time nothing is written while a trial runs, since that would be measured, too: only between
    trials. Else a thread writes, so that no event waits for the store.
    """

    def __init__(self, observer: Observer, store: Store, study_id: int, mode: Mode) -> None:
        undisturbed = mode not in EXACT_MODES
        self._observer, self._store, self._study_id = observer, store, study_id
        self._undisturbed = undisturbed
        self._lock = threading.Lock()
        self._doing: dict[object, Doing] = {}
        self._changed = False
        self._last = -SECONDS_BETWEEN if undisturbed else monotonic()
        self._written = False
        self._ended = threading.Event()
        time = datetime.now(UTC)
        self._activity = Activity(
            key=uuid.uuid4().hex,
            host=socket.gethostname(),
            user=user(),
            process=os.getpid(),
            born=born(os.getpid()),
            started=time,
            heard=time,
            silence_seconds=_LONGEST_TRIAL_SECONDS if undisturbed else _SILENCE_SECONDS,
            finished=0,
            planned=0,
        )
        self._forget_the_dead(time)
        self._thread = None if undisturbed else threading.Thread(target=self._beats, daemon=True)
        if self._thread:
            self._thread.start()

    def begin(self) -> None:
        """The run is told now: a study without trials stays that somebody runs."""
        self._write()

    def end(self) -> None:
        """The run has ended: what was told of it is taken away."""
        self._ended.set()
        if self._thread:
            self._thread.join()
        if self._written:
            self._store.forget_activities(self._activity.key)

    def _forget_the_dead(self, time: datetime) -> None:
        """Runs of this study that were killed: it goes on with this one."""
        with suppress(StoreError):
            activities = [
                activity for number, activity in self._store.activities() if number == self._study_id
            ]
            dead = [activity.key for activity in activities if not is_alive(activity, time)]
            if dead:
                self._store.forget_activities(*dead)

    def study_planned(self, plan: Plan, finished: int) -> None:
        """See Observer."""
        self._observer.study_planned(plan, finished)
        self._note(finished=finished, planned=len(plan.trials))
        self._between_trials()

    def kernel_progress(self, name: str, what: str, done: int, total: int) -> None:
        """See Observer."""
        self._observer.kernel_progress(name, what, done, total)
        self._begin(_KERNEL, f"{name}: {what}")
        self._between_trials(at_once=False)

    def kernel_failed(self, name: str, error: KtrialError) -> None:
        """See Observer."""
        self._observer.kernel_failed(name, error)
        self._end(_KERNEL)

    def preparing(self, boot: Boot, what: str) -> None:
        """See Observer."""
        self._observer.preparing(boot, what)
        self._end(_KERNEL)
        self._begin(boot, f"{boot.kernel.name}: {what}")

    def prepared(self, boot: Boot) -> None:
        """See Observer."""
        self._observer.prepared(boot)
        self._end(boot)

    def trial_started(self, planned: PlannedTrial) -> None:
        """See Observer."""
        self._observer.trial_started(planned)
        what = f"{planned.treatment.label}, perturbation {planned.perturbation.number}"
        self._begin(planned.key, what)

    def trial_finished(self, trial: Trial, finished: int, total: int, seconds_left: float | None) -> None:
        """See Observer."""
        self._observer.trial_finished(trial, finished, total, seconds_left)
        self._end(trial.planned.key)
        failed = self._activity.failed + (trial.outcome is not Outcome.COMPLETED)
        self._note(finished=finished, planned=total, seconds_left=seconds_left, failed=failed)
        self._between_trials()

    def blocks_wanted(self, ended: int, target: int, comparisons: Sequence[Comparison]) -> None:
        """See Observer."""
        self._observer.blocks_wanted(ended, target, comparisons)

    def notice(self, text: str) -> None:
        """See Observer."""
        self._observer.notice(text)

    def stopping(self) -> None:
        """See Observer."""
        self._observer.stopping()
        self._note(stopping=True)

    def _note(self, **changes: object) -> None:
        with self._lock:
            self._activity = self._activity.model_copy(update=changes)
            self._changed = True

    def _begin(self, key: object, what: str) -> None:
        with self._lock:
            before = self._doing.get(key)
            since = before.since if before else datetime.now(UTC)
            self._doing[key] = Doing(what=what, since=since)
            self._changed = True

    def _end(self, key: object) -> None:
        with self._lock:
            self._changed = self._doing.pop(key, None) is not None or self._changed

    def _between_trials(self, *, at_once: bool = True) -> None:
        """Where nothing is written at other times. `at_once`: it is worth a write of its own."""
        if self._undisturbed and (at_once or monotonic() - self._last >= SECONDS_BETWEEN):
            self._write()

    def _beats(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN):
            if self._changed or monotonic() - self._last >= _BEAT_SECONDS:
                self._write()

    def _write(self) -> None:
        with self._lock:
            doing = tuple(list(self._doing.values())[:_MOST])
            activity = self._activity.model_copy(update={"heard": datetime.now(UTC), "doing": doing})
            self._changed = False
        self._last = monotonic()
        self._written = self._store.tell_activity(self._study_id, activity) or self._written
