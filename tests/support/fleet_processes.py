"""A scheduler, workers and clients as processes of their own, so that each can be killed alone."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.fleets import run_on, study_of
from tests.support.places import ROOT

from ktrial.fault_points import VARIABLE
from ktrial.fleet.fleet import Fleet
from ktrial.fleet.settings import FleetSettings
from ktrial.installation import CACHE
from ktrial.store.store import open_store

PERTURBATIONS = 6
"""Of the study that a client runs: twelve trials."""


@dataclass
class FleetProcesses:
    """One scheduler, and who comes to it."""

    directory: Path
    port: int
    scheduler: "subprocess.Popen[bytes] | None" = None
    others: "list[subprocess.Popen[bytes]]" = field(default_factory=list)
    tls: tuple[Path, Path, Path] | None = None
    """The authority's certificate, the scheduler's, its key."""

    @property
    def address(self) -> str:
        return f"{'tls' if self.tls else 'tcp'}://127.0.0.1:{self.port}"

    def start_scheduler(self) -> None:
        program = ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port)]
        if self.tls:
            names = ("--tls-ca-file", "--tls-cert", "--tls-key")
            files = [word for name, file in zip(names, self.tls, strict=True) for word in (name, str(file))]
            program += ["--protocol", "tls", *files]
        self.scheduler = self._started([*program, "--no-dashboard", "--dashboard-address", "127.0.0.1:0"], {})

    def start_worker(self, number: int, fault_point: str = "", fleet: str = "") -> "subprocess.Popen[bytes]":
        """A worker whose cache is called as its number; killed at the point where one is named.

        `fleet`: the fleet's file, in place of the address.
        """
        armed = {VARIABLE: fault_point} if fault_point else {}
        cache = {CACHE: str(self.directory / "caches" / str(number))}
        program = ["-m", "ktrial.fleet.serving", fleet or self.address, "--name", f"worker-{number}"]
        return self._other(program, armed | cache)

    def start_client(self) -> "subprocess.Popen[bytes]":
        """Runs the study on this fleet, into `client.db`."""
        return self._other(["-m", "tests.support.fleet_processes", self.address, str(self.store)], {})

    @property
    def store(self) -> Path:
        return self.directory / "client.db"

    def kill(self, process: "subprocess.Popen[bytes] | None") -> None:
        assert process
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    def _other(self, arguments: list[str], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
        self.others.append(self._started(arguments, environment))
        return self.others[-1]

    def _started(self, arguments: list[str], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
        paths = os.pathsep.join(map(str, (ROOT, ROOT / "src")))
        quiet = subprocess.DEVNULL
        return subprocess.Popen(
            [sys.executable, *arguments],
            env=os.environ | {"PYTHONPATH": paths} | environment,
            cwd=self.directory,
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
        )


@contextmanager
def fleet_processes(directory: Path, tls: tuple[Path, Path, Path] | None = None) -> Iterator[FleetProcesses]:
    """With a scheduler; all end with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = FleetProcesses(directory, port, tls=tls)
    processes.start_scheduler()
    try:
        yield processes
    finally:
        for process in [*processes.others, processes.scheduler]:
            if process and process.poll() is None:
                processes.kill(process)


def connected(processes: FleetProcesses, patience: float = 120) -> Fleet:
    """A fleet of these workers."""
    return Fleet(FleetSettings(processes.address, patience=patience))


def _client(address: str, store: str) -> None:
    with Fleet(FleetSettings(address, patience=120)) as fleet, open_store(store) as opened:
        run_on(fleet, study_of(PERTURBATIONS), opened)


if __name__ == "__main__":
    _client(*sys.argv[1:])
