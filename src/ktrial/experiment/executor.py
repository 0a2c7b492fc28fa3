"""The seam between what wants trials and what performs them: executors prepare systems and perform trials.

`Workers` is the one of this system (threads, each of which waits for a guest). Another one
may have them performed elsewhere, as long as it tells the same events.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Protocol

from ktrial.errors import KtrialError
from ktrial.experiment.errors import HOST_PROBLEMS
from ktrial.experiment.jobs import Job
from ktrial.experiment.machine_lease import LeasePlace
from ktrial.experiment.profile import KernelSymbols
from ktrial.experiment.resources import Builder, KernelOutcome, Listener, built_here
from ktrial.experiment.trial import run_trial
from ktrial.experiment.trial_parts import TrialParts
from ktrial.fault_points import fault_point
from ktrial.machines import Machine
from ktrial.machines.errors import MachineStopped
from ktrial.model.design import PlannedTrial
from ktrial.model.kernel import Build
from ktrial.model.machine import Boot
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import EXACT_MODES


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
class Notice:
    """Something that a person should know; the run goes on."""

    text: str


@dataclass(frozen=True)
class Broken:
    """Something went wrong that is no trial's outcome: the run cannot go on."""

    error: BaseException


@dataclass(frozen=True)
class StopRequested:
    """Ctrl-C, SIGTERM or SIGHUP."""


Event = Preparing | Prepared | Started | Ended | Withdrawn | Notice | Broken | StopRequested


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
class TrialOptions:
    """How trials are to be performed."""

    jobs: int | None = None
    """So many at once; None: as many as there is room for."""
    symbols: KernelSymbols | None = None
    """Those known from earlier executors."""
    audited: bool = True
    """Look at the host before each trial."""
    scope: str = ""
    """Names what the trials belong to: those of one scope may be withdrawn by a later executor of it."""
    goes_on: bool = False
    """What workloads measure is kept until their trial is stored: a later executor of the scope takes it."""


class Executors(Protocol):
    """Makes executors: one for each batch of trials."""

    def at_once(self, machine: Machine, jobs: int | None) -> int:
        """How many trials of the machine will be under way at a time."""
        ...

    def executor(self, machine: Machine, options: TrialOptions) -> Executor:
        """An executor of trials on the machine. Raises KtrialError where there cannot be one."""
        ...

    def where_leased(self, machine: Machine, say: Callable[[str], None]) -> tuple[LeasePlace, ...]:
        """Where a machine has to be held, beside the store. `say`: told, in some thread, what becomes of it.

        Raises KtrialError where the machine's trials cannot be performed.
        """
        ...

    def built(
        self, builds: Mapping[str, Build], builder: Builder, listener: Listener
    ) -> Generator[KernelOutcome]:
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


# Events of an executor, from the threads that make them to the one that handles them.

_GLANCE_SECONDS = 0.05
_MOST_AT_HAND = 100


class EventQueue:
    """Read by one thread."""

    def __init__(self) -> None:
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._kept: Event | None = None
        """What was taken out, and is the next."""

    def put(self, event: Event) -> None:
        """Safe in a signal handler."""
        self._events.put(event)

    @property
    def is_empty(self) -> bool:
        """Whether none waits now."""
        return self._kept is None and self._events.empty()

    def next_event(self) -> Event:
        """What has happened next; waits for it, and looks up now and then.

        A signal that arrives just before a thread begins to wait, or in another thread, does not wake it: its
        handler would run only after the next event.
        """
        while True:
            try:
                return self.get(_GLANCE_SECONDS)
            except Empty:
                continue

    def get(self, seconds: float) -> Event:
        """The next. Raises Empty where none comes within so long."""
        if self._kept is None:
            return self._events.get(timeout=seconds)
        event, self._kept = self._kept, None
        return event

    def ended_at_hand(self) -> tuple[Ended, ...]:
        """The trials that have ended before anything else happened, without waiting for any."""
        ended: list[Ended] = []
        while self._kept is None and len(ended) < _MOST_AT_HAND and not self._events.empty():
            event = self._events.get()
            if isinstance(event, Ended):
                ended.append(event)
            else:
                self._kept = event
        return tuple(ended)


# The executor of this system: prepares systems and runs trials, several at once, each in a thread.

_WORKERS_GLANCE_SECONDS = 0.05


def trials_at_once(machine: Machine, jobs: int | None) -> int:
    """As many as there are cores where load does not change the numbers, else one."""
    if machine.mode not in EXACT_MODES:
        return 1
    return max(1, jobs or len(os.sched_getaffinity(0)))


class ThisSystem:
    """Has trials performed here: Executors."""

    def at_once(self, machine: Machine, jobs: int | None) -> int:
        """As `trials_at_once`."""
        return trials_at_once(machine, jobs)

    def executor(self, machine: Machine, options: TrialOptions) -> "Workers":
        """Threads of this process."""
        at_once = trials_at_once(machine, options.jobs)
        scope = options.scope if options.goes_on else ""
        return Workers(machine, at_once, options.symbols, audited=options.audited, scope=scope)

    def where_leased(self, machine: Machine, say: Callable[[str], None]) -> tuple[LeasePlace, ...]:
        """In the store alone."""
        return ()

    def built(
        self, builds: Mapping[str, Build], builder: Builder, listener: Listener
    ) -> Generator[KernelOutcome]:
        """One after another."""
        return built_here(builds, builder, listener)


_MOST_IN_A_ROW = 16
_Waiting = tuple[PlannedTrial, tuple[Job, ...]]


class _WaitingTrials:
    """Trials in the order of the plan; but a thread goes on with the systems that it had, for some trials.

    A QEMU that has translated a kernel serves the next trial of that (`ktrial.machines.qemu.kept`), and a
    thread has one QEMU. Only where numbers depend neither on load nor on order.
    """

    def __init__(self, trials: Sequence[_Waiting], *, in_order: bool) -> None:
        self._most_in_a_row = 0 if in_order else _MOST_IN_A_ROW
        self._by_boots: dict[tuple[Boot, ...], deque[tuple[int, _Waiting]]] = {}
        for place, (planned, jobs) in enumerate(trials):
            boots = tuple(dict.fromkeys(job.boot for job in jobs))
            self._by_boots.setdefault(boots, deque()).append((place, (planned, jobs)))
        self._lock = threading.Lock()
        self._thread = threading.local()

    def take(self) -> _Waiting:
        """The next one of the thread that calls."""
        boots, times = getattr(self._thread, "had", ((), 0))
        with self._lock:
            if times >= self._most_in_a_row or boots not in self._by_boots:
                boots, times = min(self._by_boots, key=lambda boots: self._by_boots[boots][0][0]), 0
            waiting = self._by_boots[boots]
            _, trial = waiting.popleft()
            if not waiting:
                del self._by_boots[boots]
        self._thread.had = boots, times + 1
        return trial


class Workers:
    """Threads that wait for the machine's guests: an Executor."""

    def __init__(
        self,
        machine: Machine,
        at_once: int,
        symbols: KernelSymbols | None = None,
        *,
        audited: bool = True,
        scope: str = "",
    ) -> None:
        """`symbols`: those known from earlier workers. `audited`: look at the host before each trial.

        `scope`: see TrialOptions, where trials go on from what earlier ones have kept, and load does not
        change the numbers; empty where they do not.
        """
        self._events = EventQueue()
        self._machine = machine
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="trial")
        self._preparations: dict[Boot, Future[KtrialError | None]] = {}
        self._trials: list[Future[None]] = []
        self._symbols = symbols or KernelSymbols()
        self._audited = audited
        self._scope = scope if machine.mode in EXACT_MODES else ""
        self._stopped = False

    def begin(self, trials: Sequence[PlannedTrial], jobs: Mapping[str, Sequence[Job]]) -> None:
        """Hand everything over. `jobs` is by the treatments' keys.

        Preparations come first in the pool's queue, so that a trial that waits for one waits for a thread
        that works.
        """
        of_trials = [(planned, tuple(jobs[planned.treatment.key])) for planned in trials]
        for boot in dict.fromkeys(job.boot for _, of_trial in of_trials for job in of_trial):
            self._preparations[boot] = self._pool.submit(self._prepare, boot)
        waiting = _WaitingTrials(of_trials, in_order=self._machine.mode not in EXACT_MODES)
        for _ in of_trials:
            self._trials.append(self._pool.submit(lambda: self._trial(*waiting.take())))

    def next_event(self) -> Event:
        """What has happened next; waits for it."""
        return self._events.next_event()

    def ended_at_hand(self) -> tuple[Ended, ...]:
        """See Executor."""
        return self._events.ended_at_hand()

    def ask_to_stop(self) -> None:
        """Have `next_event` return StopAsked. Safe in a signal handler."""
        self._events.put(StopRequested())

    def stop(self) -> tuple[Trial, ...]:
        """End everything that is under way; return the trials that had ended, but are not stored yet."""
        ended = []
        self._stopped = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        fault_point("workers: what waits is cancelled")
        self._machine.stop()
        fault_point("workers: machine stopped")
        while not (all(trial.done() for trial in self._trials) and self._events.is_empty):
            try:
                event = self._events.get(_WORKERS_GLANCE_SECONDS)
            except Empty:
                continue
            if isinstance(event, Ended):
                event.stored.set()
                ended.append(event.trial)
                fault_point("workers: trial ended while stopping")
        self._pool.shutdown(wait=True)
        return tuple(ended)

    def close(self) -> None:
        """Wait for the threads, which have nothing left to do."""
        self._pool.shutdown(wait=True)

    def _prepare(self, boot: Boot) -> KtrialError | None:
        """Return why the system fails, where that is an outcome of its trials."""
        try:
            self._machine.prepare(boot, lambda what: self._events.put(Preparing(boot, what)))
            fault_point("workers: system prepared")
        except KtrialError as error:
            if isinstance(error, (*HOST_PROBLEMS, MachineStopped)):
                self._broken(error)
            return error
        except BaseException as error:
            self._broken(error)
            raise
        finally:
            self._events.put(Prepared(boot))
        return None

    def _trial(self, planned: PlannedTrial, jobs: tuple[Job, ...]) -> None:
        try:
            boots = {job.boot for job in jobs}
            failed = {boot: error for boot in boots if (error := self._preparations[boot].result())}
            self._events.put(Started(planned))
            fault_point("workers: trial started")
            # One workload is under way, or has ended with its trial.
            parts = TrialParts(self._scope, planned) if self._scope and len(jobs) > 1 else None
            trial = run_trial(
                self._machine, planned, jobs, failed, self._symbols, audited=self._audited, parts=parts
            )
        except BaseException as error:
            self._broken(error)
            raise
        # A guest that was ended by `stop` looks like a machine that failed.
        if not (self._stopped and trial.outcome is Outcome.MACHINE_FAILED):
            fault_point("workers: trial ended")
            ended = Ended(trial)
            self._events.put(ended)
            fault_point("workers: trial handed over")
            ended.stored.wait()
            fault_point("workers: trial known to be stored")

    def _broken(self, error: BaseException) -> None:
        self._events.put(Broken(error))
