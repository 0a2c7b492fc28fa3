"""The one place that talks to Dask: who is there, calls on one of them, and what came of these."""

import contextlib
import logging
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from ktrial.fleet.errors import FleetError, FleetOutOfReach, FleetUsageError, TrafficInClear
from ktrial.fleet.settings import FleetSettings
from ktrial.installation import how_to_add

if TYPE_CHECKING:
    from distributed.security import Security

SCHEDULER_SECONDS = 5.0
"""Within so long a scheduler that is there answers."""
_GLANCE_SECONDS = 0.1
_RESULT_SECONDS = 3.0
"""Who does not hand over a result within so long is gone: it is computed again."""
_LEASE_TIMEOUT = "distributed.scheduler.locks.lease-timeout"
# By itself Dask looks every 10 ms at what a worker executes, every 20 ms whether its loop is late: an idle
# worker takes 3.7 % of a CPU, and 0.6 % without. A machine where time is measured has to be idle.
_IDLE = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1 s"}
_LOST = frozenset({"lost", "cancelled"})


class Pending(Protocol):
    """A call that was made: of Dask's Future, what is needed here."""

    status: str

    def done(self) -> bool:
        """Whether it has ended, or was lost."""
        ...

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Call `callback`, in some thread, once it has."""
        ...

    def result(self, timeout: float) -> Any:
        """What came of it. Raises what it raised."""
        ...


class _Lost:
    """A call that was never made."""

    status = "lost"

    def done(self) -> bool:
        """See Pending."""
        return True

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Nothing comes of it: it is found among those that are lost."""

    def result(self, timeout: float) -> Any:
        """There is none."""
        raise CancelledError


@dataclass(frozen=True)
class Seen:
    """A worker that the scheduler knows."""

    address: str
    name: str
    slots: int
    """How many calls it works on at a time."""


class Connection:
    """To the scheduler of a fleet."""

    def __init__(self, settings: FleetSettings, address: str, patience: float | None = None) -> None:
        """`address`: the scheduler's. `patience`: seconds that it may take until it answers, or as usual.

        Raises FleetOutOfReach, TrafficInClear; FleetError where Dask is not installed.
        """
        self._settings = settings
        self.address = address
        self._listeners: dict[str, Callable[[Any], None]] = {}
        self._client = self._opened(SCHEDULER_SECONDS if patience is None else patience)

    def reopen(self) -> None:
        """Begin anew: what was under way is lost. Raises FleetOutOfReach."""
        self.close()
        self._client = self._opened(SCHEDULER_SECONDS)
        for topic, heard in self._listeners.items():
            self._client.subscribe_topic(topic, heard)

    @contextlib.contextmanager
    def listening(self, topic: str, listener: Callable[[dict[str, Any]], None]) -> Iterator[None]:
        """Inside, the listener gets what workers `report` on the topic, in some thread."""
        self._listeners[topic] = heard = lambda event: listener(event[1])
        self._client.subscribe_topic(topic, heard)
        try:
            yield
        finally:
            del self._listeners[topic]
            with contextlib.suppress(Exception):
                self._client.unsubscribe_topic(topic)

    def _opened(self, patience: float) -> Any:
        distributed, security = imported(), security_of(self._settings)
        self._wait_until_it_listens(patience)
        try:
            return distributed.Client(
                self.address, timeout=patience, security=security, set_as_default=False, name="ktrial"
            )
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise FleetOutOfReach(self.address, _in_a_line(error)) from None

    def _wait_until_it_listens(self, patience: float) -> None:
        """Before there is a client of Dask's: one that Ctrl-C takes by surprise delays the end by minutes."""
        place = urlsplit(self.address)
        until = time.monotonic() + patience
        while True:
            try:
                socket.create_connection((place.hostname, place.port or 0), timeout=patience).close()
            except (OSError, ValueError) as error:
                if time.monotonic() > until:
                    raise FleetOutOfReach(self.address, _in_a_line(error)) from None
            else:
                return
            time.sleep(_GLANCE_SECONDS)

    def workers(self) -> dict[str, Seen]:
        """By address. Raises FleetOutOfReach where the scheduler does not answer."""
        identity: dict[str, Any] = self.answer("identity", n_workers=-1)
        return {
            address: Seen(address, str(worker.get("name", address)), int(worker.get("nthreads", 1)))
            for address, worker in identity.get("workers", {}).items()
        }

    def answer(self, request: str, **arguments: object) -> Any:
        """The scheduler's, to one of Dask's requests. Raises FleetOutOfReach where it does not answer."""
        with self.reached():
            method = getattr(self._client.scheduler, request)
            return self._client.sync(method, **arguments, callback_timeout=SCHEDULER_SECONDS)

    @contextlib.contextmanager
    def reached(self) -> Iterator[None]:
        """Inside, FleetOutOfReach is raised for what Dask raises where the scheduler does not answer."""
        try:
            yield
        except (OSError, TimeoutError, RuntimeError, AttributeError) as error:
            raise FleetOutOfReach(self.address, _in_a_line(error)) from None

    def call(self, worker: str, name: str, function: Callable[..., object], *arguments: object) -> Pending:
        """Have the worker at this address call the function; lost at once where no scheduler is there.

        Dask takes two calls of one key for one, whoever makes them and for which worker: each has its own.
        """
        key = f"{name} {uuid.uuid4().hex[:12]}"
        try:
            future: Pending = self._client.submit(
                function, *arguments, key=key, workers=[worker], allow_other_workers=False, pure=False
            )
        except Exception:  # noqa: BLE001 - Dask has many ways to say that a client is closed
            return _Lost()
        return future

    def semaphore(self, name: str, silence_seconds: float) -> Any:
        """Dask's, of this name, for one holder at a time, who loses it when he has been silent so long.

        Raises FleetOutOfReach.
        """
        distributed = imported()
        import dask

        # Dask reads it here alone: as it makes the semaphore, and as it tells the scheduler of it.
        with self.reached(), dask.config.set({_LEASE_TIMEOUT: f"{silence_seconds} s"}):
            semaphore = distributed.Semaphore(
                1, name, scheduler_rpc=self._client.scheduler, loop=self._client.loop
            )
            semaphore.register()
        return semaphore

    def results(self, futures: Iterable[Pending]) -> list[object | None]:
        """Of calls that have ended, in order: None where it was lost, else what it returned or raised."""
        calls = list(futures)
        if all(call.status == "finished" for call in calls):
            # All in one request: one for each would take longer than many a trial.
            def gathering() -> Any:
                return self._client.gather(calls, asynchronous=True)

            with contextlib.suppress(Exception):
                return list(self._client.sync(gathering, callback_timeout=_RESULT_SECONDS))
        return [_result(call) for call in calls]

    def give_up(self, futures: Iterable[Pending]) -> None:
        """Their results are of no interest any more: what has not begun will not."""
        with contextlib.suppress(Exception):
            calls = [call for call in futures if not isinstance(call, _Lost)]
            self._client.cancel(calls, asynchronous=False)

    def tell_all(self, workers: Iterable[str], function: Callable[..., object], *arguments: object) -> None:
        """Have the workers call the function at once, whatever they do; what comes of it is not told."""
        with contextlib.suppress(Exception):
            self._client.run(function, *arguments, workers=list(workers), on_error="ignore", wait=True)

    def note(self, worker: str, standing: str) -> None:
        """Leave a word about a worker with the scheduler, for `ktrial fleet status`."""
        with contextlib.suppress(Exception):
            self._client.set_metadata(["ktrial", worker], standing)

    def notes(self) -> dict[str, str]:
        """What `note` left, by the workers' addresses."""
        try:
            metadata = self._client.get_metadata(["ktrial"], default={})
        except Exception:  # noqa: BLE001 - an answer without it is an answer, too
            return {}
        return {str(key): str(value) for key, value in dict(metadata or {}).items()}

    def under_way(self) -> dict[str, tuple[str, ...]]:
        """The names of the calls that each worker has, by address."""
        with self.reached():
            calls = self._client.processing()
        return {address: tuple(map(str, keys)) for address, keys in calls.items()}

    def close(self) -> None:
        """Leave the fleet."""
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)


def _result(future: Pending) -> object | None:
    if is_lost(future):
        return None
    try:
        returned: object = future.result(timeout=_RESULT_SECONDS)
    except (CancelledError, TimeoutError, OSError):
        return None
    except Exception as error:  # noqa: BLE001 - whatever a worker's Python raises
        return None if type(error).__name__ in {"KilledWorker", "FutureCancelledError"} else error
    return returned


def connected(settings: FleetSettings, address: str, say: Callable[[str], None]) -> Connection:
    """A connection, waited for as long as the fleet's patience; `say` is told when it takes a while.

    Raises as Connection does.
    """
    what = f"the scheduler at {address} does not answer: waiting for it, {settings.patience:g} s at most"
    timer = threading.Timer(SCHEDULER_SECONDS, say, (what,))
    timer.daemon = True
    timer.start()
    try:
        return Connection(settings, address, settings.patience)
    finally:
        timer.cancel()


def report(topic: str, message: dict[str, Any]) -> None:
    """On a worker, in a call: tell the client that listens. Nothing depends on its arrival."""
    with contextlib.suppress(Exception):
        imported().get_worker().log_event(topic, message)


def is_wanted() -> bool:
    """On a worker, in a call: whether somebody waits for what comes of it; the client may be gone."""
    try:
        worker = imported().get_worker()
        task = worker.state.tasks.get(worker.get_current_task())
    except (ImportError, ValueError, AttributeError):
        return True  # nobody can say
    return task is not None and task.state != "cancelled"


def is_lost(future: Pending) -> bool:
    """Whether nothing will ever come of the call."""
    return future.status in _LOST


def imported() -> Any:
    """Dask distributed, which neither logs nor samples itself. Raises FleetError where it is not there."""
    try:
        import dask
        import distributed
    except ImportError as error:
        raise FleetError(
            f"A fleet needs Dask distributed, which is not installed here ({error!s}).",
            hint=how_to_add("fleet"),
        ) from None
    loggers = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    for name in (*loggers, "distributed", "tornado.application", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    dask.config.set(_IDLE)
    return distributed


def security_of(settings: FleetSettings) -> "Security | None":
    """What Dask needs to encrypt its traffic; None: it does not. Raises TrafficInClear, FleetUsageError."""
    settings.check()
    files = (settings.tls_ca, settings.tls_cert, settings.tls_key)
    if settings.tls_ca is None:
        if settings.address.startswith("tls://"):
            raise TrafficInClear(settings.address)
        return None
    for file in files:
        if not (file and file.is_file()):
            raise FleetUsageError(
                f"Fleet {settings.address}: there is no file {file}.",
                hint="tls-ca, tls-cert and tls-key in the fleet's file say where they are, beside that file",
            )
    ca, cert, key = map(str, files)
    own = {
        f"tls_{who}_{what}": value
        for who in ("client", "worker", "scheduler")
        for what, value in (("cert", cert), ("key", key))
    }
    security: Security = imported().security.Security(tls_ca_file=ca, require_encryption=True, **own)
    return security


def _in_a_line(error: BaseException) -> str:
    return " ".join((str(error) or type(error).__name__).split())
