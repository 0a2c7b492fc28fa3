"""Who watches a run: progress and events, told as they happen. Nothing is printed here."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ktrial.errors import KtrialError
from ktrial.model.boot import Boot
from ktrial.model.comparison import Comparison
from ktrial.model.design import Plan, PlannedTrial
from ktrial.model.trial import Trial


class Observer(Protocol):
    """Told what a run does. Every method is called from the thread that called `run`."""

    def study_planned(self, plan: Plan, finished: int) -> None:
        """The trials are known; `finished` of them are in the store already and will not be run again."""

    def kernel_progress(self, name: str, what: str, done: int, total: int) -> None:
        """A kernel is being obtained; `done` and `total` are bytes, `total` is 0 where it is not known."""

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

    def blocks_wanted(self, ended: int, wanted: int, comparisons: Sequence[Comparison]) -> None:
        """A study in real time goes on: the next look is after `wanted` blocks. What is known so far."""

    def notice(self, text: str) -> None:
        """Something that a person should know: what became of a part of a fleet. The run goes on."""

    def stopping(self) -> None:
        """Ctrl-C, SIGTERM or SIGHUP: what is under way is being ended, what is finished is being stored."""


class Silent:
    """An Observer that does nothing; to be inherited from by one that wants a few of the events."""

    def study_planned(self, plan: Plan, finished: int) -> None:
        """See Observer."""

    def kernel_progress(self, name: str, what: str, done: int, total: int) -> None:
        """See Observer."""

    def kernel_failed(self, name: str, error: KtrialError) -> None:
        """See Observer."""

    def preparing(self, boot: Boot, what: str) -> None:
        """See Observer."""

    def prepared(self, boot: Boot) -> None:
        """See Observer."""

    def trial_started(self, planned: PlannedTrial) -> None:
        """See Observer."""

    def trial_finished(self, trial: Trial, finished: int, total: int, seconds_left: float | None) -> None:
        """See Observer."""

    def blocks_wanted(self, ended: int, wanted: int, comparisons: Sequence[Comparison]) -> None:
        """See Observer."""

    def notice(self, text: str) -> None:
        """See Observer."""

    def stopping(self) -> None:
        """See Observer."""


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
