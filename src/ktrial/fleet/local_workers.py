"""`local:N`: a scheduler in this process, and N workers, each a process of its own with caches of its own."""

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ktrial.fleet.connection import imported
from ktrial.fleet.errors import FleetOutOfReach
from ktrial.fleet.settings import VARIABLE
from ktrial.installation import CACHE, cache_directory

_HERE = "127.0.0.1"
_MOST_STARTS = 5
"""Of one worker that ends again and again."""
_GLANCE_SECONDS = 0.5
_PATIENCE_SECONDS = 10.0


class LocalWorkers:
    """Runs as long as the block. A worker that ends (killed, out of memory) is started again."""

    def __init__(self, count: int) -> None:
        """Raises FleetNotInstalled, FleetOutOfReach."""
        distributed = imported()
        try:
            self._cluster: Any = distributed.LocalCluster(
                n_workers=0,
                processes=False,
                protocol="tcp",
                host=_HERE,
                scheduler_port=0,
                dashboard_address=f"{_HERE}:0",
                silence_logs=False,
            )
        except (OSError, RuntimeError) as error:
            raise FleetOutOfReach(address=f"local:{count}", problem=str(error)) from None
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
            _end(process)
        with contextlib.suppress(Exception):
            self._cluster.close(timeout=_PATIENCE_SECONDS)

    @property
    def processes(self) -> tuple[int, ...]:
        """Their ids, in the workers' order."""
        return tuple(self._processes[number].pid for number in sorted(self._processes))

    def _keep(self) -> None:
        while not self._closing.wait(_GLANCE_SECONDS):
            for number, process in list(self._processes.items()):
                if process.poll() is not None and self._starts[number] < _MOST_STARTS:
                    self._start(number)

    def _start(self, number: int) -> None:
        self._starts[number] += 1
        cache = cache_directory() / "fleet-local" / str(number)
        arguments = [self.address, "--name", f"local-{number}", "--cache", str(cache), "--once"]
        self._processes[number] = subprocess.Popen(
            [sys.executable, "-m", "ktrial.fleet.serving", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=_environment(cache),
            start_new_session=True,  # Ctrl-C is the client's, which ends its workers
        )


def _environment(cache: Path) -> dict[str, str]:
    """This process's, with its modules found in the same places."""
    paths = [path or str(Path.cwd()) for path in sys.path]
    kept = {name: value for name, value in os.environ.items() if name != VARIABLE}
    return kept | {"PYTHONPATH": os.pathsep.join(paths), CACHE: str(cache)}


def _end(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
