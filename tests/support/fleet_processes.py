"""A scheduler, workers and clients as processes of their own, so that each can be killed alone."""

import multiprocessing
import os
import random
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Literal

from tests.support.fleets import BEHAVIOUR, logged, run_on, study_of

from ktrial.experiment.resources import Resources
from ktrial.fault_points import SIGNAL, VARIABLE
from ktrial.fleet.fleet import Fleet
from ktrial.fleet.settings import FleetSettings
from ktrial.installation import CACHE
from ktrial.store.store import open_store

PERTURBATIONS = 6
"""Of the study that a client runs: twelve trials."""
_SERVER = multiprocessing.get_context("forkserver")
"""Processes are forked from one that has imported what they need: two hundred of them cost a minute."""
_SERVER.set_forkserver_preload(
    ["ktrial.fleet.serving", "distributed.cli.dask_scheduler", "tests.support.fleets"]
)


_WORKER_TTL = "TEST_WORKER_TTL"
"""A variable: how long a worker may be silent. Dask has read its own before it was forked."""


def _run(name: str, arguments: tuple[str, ...], environment: dict[str, str], directory: str) -> None:
    """Be a scheduler, a worker or a client."""
    quiet = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(quiet, descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    tempfile.tempdir = None
    if name == "scheduler":
        import dask
        from distributed.cli.dask_scheduler import main

        dask.config.set({"distributed.scheduler.worker-ttl": environment[_WORKER_TTL]})
        main(arguments)
    elif name == "worker":
        from ktrial.fleet import serving

        serving.main(arguments)
    else:
        address, store = arguments
        with Fleet(FleetSettings(address, patience=120)) as fleet, open_store(store) as opened:
            run_on(fleet, study_of(PERTURBATIONS), opened)


def started(name: str, arguments: Sequence[str], directory: Path, **environment: str) -> ForkServerProcess:
    """One of them, as a process of its own."""
    inherited = dict(os.environ) | environment
    process = _SERVER.Process(target=_run, args=(name, tuple(arguments), inherited, str(directory)))
    process.daemon = True
    process.start()
    return process


@dataclass
class FleetProcesses:
    """One scheduler, and who comes to it."""

    directory: Path
    port: int
    scheduler: ForkServerProcess | None = None
    others: list[ForkServerProcess] = field(default_factory=list)
    tls: tuple[Path, Path, Path] | None = None
    """The authority's certificate, the scheduler's, its key."""
    worker_ttl: str = "5 minutes"
    """How long a worker may be silent."""

    @property
    def address(self) -> str:
        return f"{'tls' if self.tls else 'tcp'}://127.0.0.1:{self.port}"

    def start_scheduler(self) -> None:
        arguments = ["--host", "127.0.0.1", "--port", str(self.port)]
        if self.tls:
            names = ("--tls-ca-file", "--tls-cert", "--tls-key")
            files = [word for name, file in zip(names, self.tls, strict=True) for word in (name, str(file))]
            arguments += ["--protocol", "tls", *files]
        arguments += ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
        self.scheduler = started("scheduler", arguments, self.directory, **{_WORKER_TTL: self.worker_ttl})

    def start_worker(
        self, number: int, fault_point: str = "", fleet: str = "", signal: str = "SIGKILL"
    ) -> ForkServerProcess:
        """A worker whose cache is called as its number; it gets the signal at the point where one is named.

        `fleet`: the fleet's file, in place of the address.
        """
        armed = {VARIABLE: fault_point, SIGNAL: signal} if fault_point else {}
        arguments = [fleet or self.address, "--name", f"worker-{number}"]
        cache = str(self.directory / "caches" / str(number))
        self.others.append(started("worker", arguments, self.directory, **armed, **{CACHE: cache}))
        return self.others[-1]

    def start_client(self) -> ForkServerProcess:
        """Runs the study on this fleet, into `client.db`."""
        self.others.append(started("client", [self.address, str(self.store)], self.directory))
        return self.others[-1]

    @property
    def store(self) -> Path:
        return self.directory / "client.db"

    def kill(self, process: ForkServerProcess | None) -> None:
        assert process
        process.kill()
        process.join()


@contextmanager
def fleet_processes(
    directory: Path, tls: tuple[Path, Path, Path] | None = None, worker_ttl: str = "5 minutes"
) -> Iterator[FleetProcesses]:
    """With a scheduler; all end with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = FleetProcesses(directory, port, tls=tls, worker_ttl=worker_ttl)
    processes.start_scheduler()
    try:
        yield processes
    finally:
        for process in [*processes.others, processes.scheduler]:
            processes.kill(process)


def connected(processes: FleetProcesses, patience: float = 120) -> Fleet:
    """A fleet of these workers."""
    return Fleet(FleetSettings(processes.address, patience=patience))


# Kills workers of a fleet at random instants, while they do what the killer waits for, and starts others.

Doing = Literal["transfer", "snapshot", "trial", "build", "anything"]


DOINGS: tuple[Doing, ...] = ("transfer", "snapshot", "trial", "anything")
"""While a study's trials are performed."""
BUILDING: tuple[Doing, ...] = ("transfer", "build", "build", "anything")
"""While kernels are built."""
_LOGS = {
    "snapshot": ("preparing", "prepared"),
    "trial": ("begun", "ended"),
    "build": ("building", "compiled"),
}
"""What workers log when they begin it and when they have done it."""
_LONGEST_SECONDS = 0.04
"""From when a worker is seen doing something until it is killed."""
_PATIENCE_SECONDS = 5.0
"""Then no worker does what was waited for: one is killed at whatever it does."""


@dataclass
class Workers:
    """So many at a time, each with a cache of its own, that begins empty."""

    address: str
    directory: Path
    wanted: int
    fault_point: str = ""
    """Where they are killed; empty: nowhere."""
    running: dict[int, ForkServerProcess] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    def fill(self) -> None:
        """Start those that are missing."""
        while len(self.running) < self.wanted:
            number = next(self._numbers)
            environment = {CACHE: str(self.cache(number)), BEHAVIOUR: str(self.directory)}
            environment |= {VARIABLE: self.fault_point} if self.fault_point else {}
            arguments = (self.address, "--name", f"worker-{number}")
            self.running[number] = started("worker", arguments, self.directory, **environment)

    def cache(self, number: int) -> Path:
        """Where it keeps what it is given; its number is its name."""
        return self.directory / "caches" / str(number)

    def kill(self, number: int) -> None:
        """SIGKILL, and another one in its place."""
        process = self.running.pop(number)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL, "it had ended before it was killed"
        self.fill()

    def end(self) -> None:
        """All of them."""
        for process in self.running.values():
            process.kill()
            process.join()

    def doing(self, what: Doing) -> list[int]:
        """Those that do this now."""
        if what == "anything":
            return list(self.running)
        if what == "transfer":
            return [one for one in self.running if _is_not_empty(self.cache(one) / "fleet" / "arriving")]
        begun, ended = _LOGS[what]
        begins, ends = (_counted(self.directory, name) for name in (begun, ended))
        return [one for one in self.running if begins.get(str(one), 0) > ends.get(str(one), 0)]


class Killer(threading.Thread):
    """Kills until it has done so often enough; `kills` is by what the worker did."""

    def __init__(self, workers: Workers, kills: int, seed: int, doings: tuple[Doing, ...] = DOINGS) -> None:
        super().__init__(name="killer", daemon=True)
        self.kills: dict[Doing, int] = dict.fromkeys(doings, 0)
        self._doings = doings
        self.problem: BaseException | None = None
        self._workers, self._wanted, self._draw = workers, kills, random.Random(seed)
        self._stopping = threading.Event()

    @property
    def count(self) -> int:
        return sum(self.kills.values())

    @property
    def is_done(self) -> bool:
        return self.count >= self._wanted or self.problem is not None

    def run(self) -> None:
        try:
            while not self.is_done and not self._stopping.is_set():
                self._kill_one(self._doings[self.count % len(self._doings)])
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.problem = error

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def _kill_one(self, wanted: Doing) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not (there := self._workers.doing(wanted)) and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(self._draw.uniform(0, _LONGEST_SECONDS))
        self._workers.kill(self._draw.choice(there or list(self._workers.running)))
        self.kills[wanted if there else "anything"] += 1
        time.sleep(self._draw.uniform(0, 2 * _LONGEST_SECONDS))


@contextmanager
def killed_workers(
    address: str,
    directory: Path,
    wanted: int,
    kills: int,
    seed: int,
    doings: tuple[Doing, ...] = DOINGS,
) -> Iterator[Killer]:
    """Workers of the scheduler at the address, of which one is killed again and again."""
    workers = Workers(address, directory, wanted)
    workers.fill()
    killer = Killer(workers, kills, seed, doings)
    killer.start()
    try:
        yield killer
    finally:
        killer.stop()
        workers.end()


def with_images(directory: Path, size: int, resources: Callable[[], Resources]) -> Resources:
    """Kernels that have an image of so many bytes, which workers have to be given."""
    from dataclasses import replace

    plain = resources()

    def obtain(*arguments: object) -> object:
        kernel = plain.obtain(*arguments)  # type: ignore[arg-type]
        image = directory / f"vmlinuz-{kernel.digest[:12]}"
        if not image.exists():
            image.write_bytes(random.Random(kernel.digest).randbytes(size))
        return kernel.model_copy(update={"image": image})

    return replace(plain, obtain=obtain)  # type: ignore[arg-type]


def _is_not_empty(directory: Path) -> bool:
    try:
        return any(directory.iterdir())
    except OSError:
        return False


def _counted(directory: Path, name: str) -> dict[str, int]:
    counted: dict[str, int] = {}
    for number, *_ in logged(directory, name):
        counted[number] = counted.get(number, 0) + 1
    return counted
