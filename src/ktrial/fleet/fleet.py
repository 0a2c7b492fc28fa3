"""A fleet, as a run uses it: makes executors that share a connection and what is known of its workers."""

import contextlib
import os
import pickle
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NamedTuple, Self

from ktrial.experiment.executor import Executor, ThisSystem, TrialOptions
from ktrial.experiment.machine_lease import LeasePlace
from ktrial.experiment.resources import Builder, KernelOutcome, Listener, built_here
from ktrial.fleet.client_builds import FleetBuilds
from ktrial.fleet.client_executor import FleetExecutor
from ktrial.fleet.connection import Connection, connected, imported, security_of
from ktrial.fleet.contents import Package
from ktrial.fleet.errors import FleetError, FleetOutOfReach, FleetUsageError
from ktrial.fleet.held_machines import HeldMachines
from ktrial.fleet.settings import VARIABLE, FleetSettings
from ktrial.fleet.trial_queue import Member, Pace
from ktrial.fleet.worker_side import Bench
from ktrial.installation import CACHE, cache_directory, how_to_add
from ktrial.machines import LeasedMachine, Machine, PortableMachine
from ktrial.model.kernel import Build
from ktrial.model.workload import EXACT_MODES


class Fleet:
    """Executors. Connects when the first trial is to be performed; workers of its own end with it."""

    def __init__(self, settings: FleetSettings, say: Callable[[str], None] = lambda _text: None) -> None:
        """`say`: told, in some thread, that the scheduler is waited for.

        Raises TrafficInClear; FleetError where Dask is not installed.
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
        self._files = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave it; end its workers, where they are this process's own."""
        self._open.close()
        self._connection, self._files = None, ""

    @property
    def connection(self) -> Connection:
        """To its scheduler. Raises FleetOutOfReach."""
        if self._connection is None:
            settings, address = self.settings, self.settings.address
            if settings.local_workers:
                workers = self._open.enter_context(LocalWorkers(settings.local_workers))
                settings, address = workers.certificate.of(settings), workers.address
            self._connection = connected(settings, address, self._say)
            self._open.callback(self._connection.close)
        return self._connection

    @property
    def files(self) -> str:
        """Its place of files: where none is named, a directory in this system's cache, until it is left."""
        self._files = self._files or self.settings.files
        if not self._files:
            cache = cache_directory() / "fleet"
            cache.mkdir(parents=True, exist_ok=True)
            self._files = self._open.enter_context(TemporaryDirectory(prefix="files-", dir=cache))
        return self._files

    def at_once(self, machine: Machine, jobs: int | None) -> int:
        """As many as its workers take; never more than `jobs`."""
        if not self._performs(machine):
            return ThisSystem().at_once(machine, jobs)
        slots = (
            sum(worker.slots for worker in self.connection.workers().values()) or self.settings.local_workers
        )
        return max(1, min(slots, jobs) if jobs else slots)

    def where_leased(self, machine: Machine, say: Callable[[str], None]) -> tuple[LeasePlace, ...]:
        """A machine that runs one trial at a time is one resource of it. Raises FleetUsageError."""
        if self._performs(machine) or not isinstance(machine, LeasedMachine) or self.settings.local_workers:
            return ()
        self._holds = True
        place = HeldMachines(self.settings, say)
        self._open.callback(place.close)
        return (place,)

    def executor(self, machine: Machine, options: TrialOptions) -> Executor:
        """What performs trials there; those in real time are performed here. Raises FleetUsageError."""
        if not self._performs(machine):
            return ThisSystem().executor(machine, options)
        assert isinstance(machine, PortableMachine)
        # The same for the same machine: what is ready on it stays so from executor to executor.
        symbols = options.symbols.wanted if options.symbols else True
        maker = pickle.dumps(machine.elsewhere())
        bench = Bench(f"{self._session} {len(maker)} {hash((maker, symbols))}", maker, symbols)
        return FleetExecutor(self, machine, bench, options)

    def built(
        self, builds: Mapping[str, Build], builder: Builder, listener: Listener
    ) -> Generator[KernelOutcome]:
        """By its workers; not by those of this system, which would only share its cores."""
        if self.settings.local_workers or not (builds and builder.elsewhere):
            return built_here(builds, builder, listener)
        if self._holds:  # a machine elsewhere, for which no workers are waited for
            try:
                workers = self.connection.workers()
            except FleetOutOfReach:  # which was told
                workers = {}
            if not workers:
                return built_here(builds, builder, listener)
        return FleetBuilds(self, builder, listener).built(builds)

    def _performs(self, machine: Machine) -> bool:
        if machine.mode in EXACT_MODES and isinstance(machine, PortableMachine):
            return True
        elsewhere = isinstance(machine, LeasedMachine)
        if self.settings.asked and (self.settings.local_workers or not elsewhere):
            what = "another system" if elsewhere else "this system"
            raise FleetUsageError(
                f"Fleet {self.settings.address} runs exact trials only: the machine {machine.name} "
                f"measures {what}, in real time.",
                hint=(
                    "leave --fleet out (--fleet none, where KTRIAL_FLEET or the configuration names one); "
                    "a machine ssh is held in a fleet that has an address"
                ),
            )
        return False


# `local:N`: a scheduler in this process, and N workers, each a process of its own with caches of its own.
# Whoever reaches a scheduler has its client run what he likes, and 127.0.0.1 is every local user's: so they
# show each other a certificate that is made for the occasion, in a directory that this user alone may read.

_HERE = "127.0.0.1"
_MOST_STARTS = 5
"""Of one worker that ends again and again."""
_GLANCE_SECONDS = 0.5
_PATIENCE_SECONDS = 10.0


class LocalWorkers:
    """Runs as long as the block. A worker that ends (killed, out of memory) is started again."""

    def __init__(self, count: int) -> None:
        """Raises FleetOutOfReach; FleetError where Dask is not installed."""
        distributed = imported()
        self._directory = TemporaryDirectory(prefix="ktrial-fleet-")
        self.certificate = _certificate(Path(self._directory.name))
        security = security_of(self.certificate.of(FleetSettings(f"tls://{_HERE}:1")))
        try:
            self._cluster: Any = distributed.LocalCluster(
                n_workers=0,
                processes=False,
                protocol="tls",
                security=security,
                host=_HERE,
                scheduler_port=0,
                dashboard_address=f"{_HERE}:0",
                silence_logs=False,
            )
        except (OSError, RuntimeError) as error:
            self._directory.cleanup()
            raise FleetOutOfReach(f"local:{count}", error) from None
        self.address = str(self._cluster.scheduler_address)
        self._closing = threading.Event()
        self._starts = dict.fromkeys(range(count), 0)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._keeper = threading.Thread(target=self._keep, name="local workers", daemon=True)

    def __enter__(self) -> Self:
        for number in self._starts:
            self._start(number)
        self._keeper.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._keeper.join()
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        with contextlib.suppress(Exception):
            self._cluster.close(timeout=_PATIENCE_SECONDS)
        self._directory.cleanup()

    def _keep(self) -> None:
        while not self._closing.wait(_GLANCE_SECONDS):
            for number, process in list(self._processes.items()):
                if process.poll() is not None and self._starts[number] < _MOST_STARTS:
                    self._start(number)

    def _start(self, number: int) -> None:
        self._starts[number] += 1
        cache = cache_directory() / "fleet-local" / str(number)
        arguments = [self.address, "--name", f"local-{number}", "--cache", str(cache), "--once"]
        files = zip(("--tls-ca-file", "--tls-cert", "--tls-key"), self.certificate, strict=True)
        arguments += [word for option, file in files for word in (option, str(file))]
        modules = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
        environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
        self._processes[number] = subprocess.Popen(
            [sys.executable, "-m", "ktrial.fleet.serving", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=environment | {"PYTHONPATH": modules, CACHE: str(cache)},
            start_new_session=True,  # Ctrl-C is the client's, which ends its workers
        )


class Certificate(NamedTuple):
    """Files of a certificate that signs itself, of the client, the scheduler and the workers alike."""

    ca: Path
    cert: Path
    key: Path

    def of(self, settings: FleetSettings) -> FleetSettings:
        """The settings with it."""
        return replace(settings, tls_ca=self.ca, tls_cert=self.cert, tls_key=self.key)


def _certificate(directory: Path) -> Certificate:
    """A new one, below `directory`. Raises FleetError where nothing can make it."""
    try:
        made = imported().security.Security.temporary()
    except ImportError as error:
        raise FleetError(
            f"A fleet of this system needs cryptography, which is not installed here ({error!s}).",
            hint=how_to_add("fleet"),
        ) from None
    files = Certificate(*(directory / f"{part}.pem" for part in Certificate._fields))
    for file, content in zip(
        files, (made.tls_ca_file, made.tls_client_cert, made.tls_client_key), strict=True
    ):
        file.touch(0o600)
        file.write_text(content)
    return files
