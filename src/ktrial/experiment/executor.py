"""The seam between what wants trials and what performs them: executors prepare systems and perform trials.

`ktrial.experiment.workers` has the one of this system (threads, each of which waits for a guest). Another one
may have them performed elsewhere, as long as it tells the same events.
"""

import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from ktrial.experiment.jobs import Job
from ktrial.experiment.kernel_builds import Builder, Had, Listener
from ktrial.experiment.kernel_symbols import KernelSymbols
from ktrial.experiment.machine_lease import LeasePlace
from ktrial.machines import Machine
from ktrial.model.boot import Boot
from ktrial.model.design import PlannedTrial
from ktrial.model.kernel import Build
from ktrial.model.trial import Trial


@dataclass(frozen=True)
class Preparing:
    """A system is being prepared; `what` says what is being done."""

    boot: Boot
    what: str


@dataclass(frozen=True)
class Prepared:
    """A system is ready, or will fail all its trials."""

    boot: Boot


@dataclass(frozen=True)
class Started:
    """A trial started."""

    planned: PlannedTrial


@dataclass(frozen=True)
class Ended:
    """A trial ended. Who performed it goes on when `stored` is set: no more can be lost than is under way."""

    trial: Trial
    stored: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Withdrawn:
    """Trials that ended before are not to be believed, and are performed again: each will end once more.

    The last trial of all ends only when none can be withdrawn any more.
    """

    trials: tuple[PlannedTrial, ...]
    why: str


@dataclass(frozen=True)
class Told:
    """Something that a person should know; the run goes on."""

    text: str


@dataclass(frozen=True)
class Broken:
    """Something went wrong that is no trial's outcome: the run cannot go on."""

    error: BaseException


@dataclass(frozen=True)
class StopAsked:
    """Ctrl-C, SIGTERM or SIGHUP."""


Event = Preparing | Prepared | Started | Ended | Withdrawn | Told | Broken | StopAsked


class Executor(Protocol):
    """Performs the trials that it is given, once; what happens is read as events by one thread."""

    def begin(self, trials: Sequence[PlannedTrial], jobs: Mapping[str, Sequence[Job]]) -> None:
        """Hand everything over. `jobs` is by the treatments' keys."""
        ...

    def next_event(self) -> Event:
        """What has happened next; waits for it, and lets signal handlers run meanwhile."""
        ...

    def ended_at_hand(self) -> tuple[Ended, ...]:
        """The trials that have ended next, without waiting for any: they are stored together."""
        ...

    def ask_to_stop(self) -> None:
        """Have `next_event` return StopAsked. Safe in a signal handler."""
        ...

    def stop(self) -> tuple[Trial, ...]:
        """End everything that is under way; return the trials that had ended, but are not stored yet."""
        ...

    def close(self) -> None:
        """Wait for what performs trials, which has nothing left to do."""
        ...


@dataclass(frozen=True)
class Wanted:
    """How trials are to be performed."""

    jobs: int | None = None
    """So many at once; None: as many as there is room for."""
    symbols: KernelSymbols | None = None
    """Those known from earlier executors."""
    audited: bool = True
    """Look at the host before each trial."""
    scope: str = ""
    """Names what the trials belong to: those of one scope may be withdrawn by a later executor of it."""


class Executors(Protocol):
    """Makes executors: one for each batch of trials."""

    def at_once(self, machine: Machine, jobs: int | None) -> int:
        """How many trials of the machine will be under way at a time."""
        ...

    def executor(self, machine: Machine, wanted: Wanted) -> Executor:
        """An executor of trials on the machine. Raises KtrialError where there cannot be one."""
        ...

    def where_leased(self, machine: Machine, say: Callable[[str], None]) -> tuple[LeasePlace, ...]:
        """Where a machine has to be held, beside the store. `say`: told, in some thread, what becomes of it.

        Raises KtrialError where the machine's trials cannot be performed.
        """
        ...

    def built(self, builds: Mapping[str, Build], builder: Builder, listener: Listener) -> Generator[Had]:
        """Kernels as they are had, in any order, by their labels. To close it ends what is under way."""
        ...


@dataclass
class _Choice:
    made: Executors | None = None


_choice = _Choice()


@contextmanager
def performed_by(executors: Executors) -> Iterator[None]:
    """Inside, runs that are not told otherwise have their trials performed by these."""
    before, _choice.made = _choice.made, executors
    try:
        yield
    finally:
        _choice.made = before


def chosen(usual: Callable[[], Executors]) -> Executors:
    """What `performed_by` says, else what is usual."""
    return _choice.made or usual()
