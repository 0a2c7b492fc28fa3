"""Being a worker: Dask's own, in this process, for as long as there is a scheduler.

Started as `ktrial fleet worker`; `python -m ktrial.fleet.serving ADDRESS` is the same for `local:N`.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ktrial.fleet import worker_side
from ktrial.fleet.connection import imported, security_of
from ktrial.fleet.errors import FleetOutOfReach
from ktrial.fleet.settings import FleetSettings, fleet
from ktrial.installation import CACHE, cache_directory

_AGAIN_SECONDS = 2.0
_SCHEDULER_SECONDS = 20.0
_HERE = "127.0.0.1"


@dataclass(frozen=True)
class Service:
    """How to be a worker."""

    settings: FleetSettings
    name: str
    slots: int = 1
    """Trials at once."""
    once: bool = False
    """End when the scheduler is gone, instead of waiting for it."""
    interface: str | None = None
    """The network interface that it listens on; None: that by which the scheduler is reached."""


def own_name() -> str:
    """What a worker is called that nobody gave a name."""
    return f"{socket.gethostname()}-{os.getpid()}"


def use_cache(directory: Path | None) -> None:
    """Have everything that this process keeps lie below the directory."""
    if directory:
        directory.mkdir(parents=True, exist_ok=True)
        os.environ[CACHE] = str(directory.absolute())


def serve(service: Service, say: Callable[[str], None]) -> None:
    """Be a worker until SIGINT, SIGTERM or SIGHUP. Raises FleetOutOfReach, FleetError."""
    imported()
    try:
        asyncio.run(_serve(service, say))
    finally:
        worker_side.end_all()


async def _serve(service: Service, say: Callable[[str], None]) -> None:
    ending = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ending.set)
    waiting = False
    while not ending.is_set():
        worker = await _registered(service)
        if worker is None and service.once:
            raise FleetOutOfReach(service.settings.address, "no scheduler answers there")
        if worker is None:
            if not waiting:
                say(f"waiting for the scheduler at {service.settings.address}")
            waiting = True
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ending.wait(), _AGAIN_SECONDS)
            continue
        waiting = False
        say(f"worker {service.name} of {service.settings.address}: {service.slots} at once")
        await _until_the_end(worker, ending)
        if service.once:
            return


async def _registered(service: Service) -> Any | None:
    """The worker, known to the scheduler; None where that does not answer."""
    settings = service.settings
    distributed = imported()
    try:
        return await distributed.Worker(
            settings.address,
            nthreads=service.slots,
            name=service.name,
            interface=service.interface,
            host=_HERE if "://127." in settings.address or "://localhost" in settings.address else None,
            security=security_of(settings),
            memory_limit=0,
            local_directory=str(cache_directory() / "fleet-scratch"),  # Dask takes away what killed ones left
            dashboard_address=f"{_HERE}:0",
            death_timeout=_SCHEDULER_SECONDS,
        )
    except (OSError, TimeoutError, RuntimeError, ValueError):
        return None


async def _until_the_end(worker: Any, ending: asyncio.Event) -> None:
    ends = [asyncio.ensure_future(worker.finished()), asyncio.ensure_future(ending.wait())]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    worker_side.end_all()
    with contextlib.suppress(Exception):
        await worker.close(timeout=_AGAIN_SECONDS)
    for end in ends:
        end.cancel()


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a fleet until it is over, and end this process. `arguments`: as on a command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("--name", default=own_name())
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--insecure", action="store_true")
    parser.add_argument("--tell", action="store_true", help="say on standard error what happens")
    # What dask-jobqueue says to the workers that it submits.
    parser.add_argument("--nthreads", type=int, default=1)
    parser.add_argument("--interface")
    for part in ("ca-file", "cert", "key"):
        parser.add_argument(f"--tls-{part}", type=Path)
    for unused in ("--memory-limit", "--death-timeout", "--protocol"):
        parser.add_argument(unused)
    options = parser.parse_args(arguments)
    use_cache(options.cache)
    if options.tls_ca_file:
        settings = FleetSettings(options.address, options.tls_ca_file, options.tls_cert, options.tls_key)
    else:
        settings = fleet(options.address, insecure=options.insecure)

    def say(text: str) -> None:
        if options.tell:
            print(text, file=sys.stderr, flush=True)

    try:
        serve(Service(settings, options.name, options.nthreads, options.once, options.interface), say)
    except FleetOutOfReach as error:
        say(error.message)
    os._exit(0)  # threads that wait for a guest that was ended keep nobody


if __name__ == "__main__":
    main()
