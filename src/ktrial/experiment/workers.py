"""The executor of this system: prepares systems and runs trials, several at once, each in a thread."""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty

from ktrial.errors import KtrialError
from ktrial.experiment.event_queue import EventQueue
from ktrial.experiment.executor import Broken, Ended, Event, Prepared, Preparing, Started, StopAsked, Wanted
from ktrial.experiment.host_failures import HOST_PROBLEMS
from ktrial.experiment.jobs import Job
from ktrial.experiment.kernel_builds import Builder, Had, Listener, built_here
from ktrial.experiment.kernel_symbols import KernelSymbols
from ktrial.experiment.machine_lease import LeasePlace
from ktrial.experiment.trial import run_trial
from ktrial.fault_points import fault_point
from ktrial.machines import Machine
from ktrial.machines.errors import MachineStopped
from ktrial.model.boot import Boot
from ktrial.model.design import PlannedTrial
from ktrial.model.kernel import Build
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import EXACT_MODES

_GLANCE_SECONDS = 0.05


def trials_at_once(machine: Machine, asked: int | None) -> int:
    """As many as there are cores where load does not change the numbers, else one."""
    if machine.mode not in EXACT_MODES:
        return 1
    return max(1, asked or len(os.sched_getaffinity(0)))


class ThisSystem:
    """Has trials performed here: Executors."""

    def at_once(self, machine: Machine, jobs: int | None) -> int:
        """As `trials_at_once`."""
        return trials_at_once(machine, jobs)

    def executor(self, machine: Machine, wanted: Wanted) -> "Workers":
        """Threads of this process."""
        at_once = trials_at_once(machine, wanted.jobs)
        return Workers(machine, at_once, wanted.symbols, audited=wanted.audited)

    def where_leased(self, machine: Machine, say: Callable[[str], None]) -> tuple[LeasePlace, ...]:
        """In the store alone."""
        return ()

    def built(self, builds: Mapping[str, Build], builder: Builder, listener: Listener) -> Generator[Had]:
        """One after another."""
        return built_here(builds, builder, listener)


class Workers:
    """Threads that wait for the machine's guests: an Executor."""

    def __init__(
        self, machine: Machine, at_once: int, symbols: KernelSymbols | None = None, *, audited: bool = True
    ) -> None:
        """`symbols`: those known from earlier workers. `audited`: look at the host before each trial."""
        self._events = EventQueue()
        self._machine = machine
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="trial")
        self._preparations: dict[Boot, Future[KtrialError | None]] = {}
        self._trials: list[Future[None]] = []
        self._symbols = symbols or KernelSymbols()
        self._audited = audited
        self._stopped = False

    def begin(self, trials: Sequence[PlannedTrial], jobs: Mapping[str, Sequence[Job]]) -> None:
        """Hand everything over. `jobs` is by the treatments' keys.

        Preparations come first in the pool's queue, so that a trial that waits for one waits for a thread
        that works.
        """
        of_trials = [(planned, tuple(jobs[planned.treatment.key])) for planned in trials]
        for boot in dict.fromkeys(job.boot for _, of_trial in of_trials for job in of_trial):
            self._preparations[boot] = self._pool.submit(self._prepare, boot)
        for planned, of_trial in of_trials:
            self._trials.append(self._pool.submit(self._trial, planned, of_trial))

    def next_event(self) -> Event:
        """What has happened next; waits for it."""
        return self._events.next_event()

    def ended_at_hand(self) -> tuple[Ended, ...]:
        """See Executor."""
        return self._events.ended_at_hand()

    def ask_to_stop(self) -> None:
        """Have `next_event` return StopAsked. Safe in a signal handler."""
        self._events.put(StopAsked())

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
                event = self._events.get(_GLANCE_SECONDS)
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
            trial = run_trial(self._machine, planned, jobs, failed, self._symbols, audited=self._audited)
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
