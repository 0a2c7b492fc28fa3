"""A fleet, as a run uses it: makes executors that share a connection and what is known of its workers."""

import contextlib
import pickle
import uuid
from collections.abc import Callable, Generator, Mapping
from types import TracebackType
from typing import Self

from ktrial.experiment.executor import Executor, ThisSystem, Wanted
from ktrial.experiment.machine_lease import LeasePlace
from ktrial.experiment.resources import Builder, Had, Listener, built_here
from ktrial.fleet.client_builds import FleetBuilds
from ktrial.fleet.client_executor import FleetExecutor
from ktrial.fleet.connection import Connection, connected, imported
from ktrial.fleet.errors import FleetOutOfReach, NotForFleet
from ktrial.fleet.held_machines import HeldMachines
from ktrial.fleet.local_workers import LocalWorkers
from ktrial.fleet.messages import Bench
from ktrial.fleet.packages import Package
from ktrial.fleet.settings import FleetSettings
from ktrial.fleet.trial_queue import Member, Pace
from ktrial.machines import LeasedMachine, Machine, PortableMachine
from ktrial.model.kernel import Build
from ktrial.model.workload import EXACT_MODES


class Fleet:
    """Executors. Connects when the first trial is to be performed; workers of its own end with it."""

    def __init__(self, settings: FleetSettings, say: Callable[[str], None] = lambda _text: None) -> None:
        """`say`: told, in some thread, that the scheduler is waited for.

        Raises FleetNotInstalled, FleetInClear.
        """
        settings.check()
        imported()
        self.settings = settings
        self.members: dict[str, Member] = {}
        self.packages: dict[str, Package] = {}
        self.pace = Pace()
        self._say = say
        self._holds = False
        """A machine, for a study in real time."""
        self._session = uuid.uuid4().hex
        self._open = contextlib.ExitStack()
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave it; end its workers, where they are this process's own."""
        self._open.close()
        self._connection = None

    @property
    def connection(self) -> Connection:
        """To its scheduler. Raises FleetOutOfReach."""
        if self._connection is None:
            address = self.settings.address
            if self.settings.local_workers:
                address = self._open.enter_context(LocalWorkers(self.settings.local_workers)).address
            self._connection = connected(self.settings, address, self._say)
            self._open.callback(self._connection.close)
        return self._connection

    def at_once(self, machine: Machine, jobs: int | None) -> int:
        """As many as its workers take; never more than `jobs`."""
        if not self._performs(machine):
            return ThisSystem().at_once(machine, jobs)
        slots = sum(one.slots for one in self.connection.workers().values()) or self.settings.local_workers
        return max(1, min(slots, jobs) if jobs else slots)

    def where_leased(self, machine: Machine, say: Callable[[str], None]) -> tuple[LeasePlace, ...]:
        """A machine that runs one trial at a time is one resource of it. Raises NotForFleet."""
        if self._performs(machine) or not isinstance(machine, LeasedMachine) or self.settings.local_workers:
            return ()
        self._holds = True
        place = HeldMachines(self.settings, say)
        self._open.callback(place.close)
        return (place,)

    def executor(self, machine: Machine, wanted: Wanted) -> Executor:
        """What performs trials there; those in real time are performed here. Raises NotForFleet."""
        if not self._performs(machine):
            return ThisSystem().executor(machine, wanted)
        assert isinstance(machine, PortableMachine)
        return FleetExecutor(self, machine, self._bench(machine.elsewhere(), wanted), wanted)

    def built(self, builds: Mapping[str, Build], builder: Builder, listener: Listener) -> Generator[Had]:
        """By its workers; not by those of this system, which would only share its cores."""
        if self.settings.local_workers or not (builds and builder.elsewhere) or self._only_holds():
            return built_here(builds, builder, listener)
        return FleetBuilds(self, builder, listener).built(builds)

    def _only_holds(self) -> bool:
        """Whether it holds a machine elsewhere, and has no workers: none is waited for, as for trials."""
        try:
            return self._holds and not self.connection.workers()
        except FleetOutOfReach:
            return True  # which was told

    def _performs(self, machine: Machine) -> bool:
        if machine.mode in EXACT_MODES and isinstance(machine, PortableMachine):
            return True
        elsewhere = isinstance(machine, LeasedMachine)
        if self.settings.asked and (self.settings.local_workers or not elsewhere):
            what = "another system" if elsewhere else "this system"
            raise NotForFleet(address=self.settings.address, machine=machine.name, what=what)
        return False

    def _bench(self, maker: Callable[[], Machine], wanted: Wanted) -> Bench:
        """The same for the same machine: what is ready on it stays so from executor to executor."""
        symbols = wanted.symbols.wanted if wanted.symbols else True
        pickled = pickle.dumps(maker)
        return Bench(f"{self._session} {len(pickled)} {hash((pickled, symbols))}", pickled, symbols)
