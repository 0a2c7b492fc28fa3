"""What a worker is told, what it does, and what it says: functions that Dask calls there, in its threads."""

import contextlib
import pickle
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from typing import Any, TypeVar

from ktrial.errors import KtrialError
from ktrial.experiment.errors import HOST_PROBLEMS
from ktrial.experiment.jobs import Job
from ktrial.experiment.profile import KernelSymbols
from ktrial.experiment.resources import PortableBuilds
from ktrial.experiment.trial import run_trial
from ktrial.fault_points import fault_point
from ktrial.file_digests import digest_of_file
from ktrial.file_store import BadFileStore, FileStore, FileStoreFailed
from ktrial.fleet.connection import is_wanted, report
from ktrial.fleet.contents import Contents, unpacked
from ktrial.fleet.errors import FleetError, TransferDamaged
from ktrial.installation import VERSION
from ktrial.kernels.errors import BuildDiffers, BuildFailed, KernelError
from ktrial.machines import Machine, PortableMachine
from ktrial.machines.errors import MachineStopped
from ktrial.model.design import PlannedTrial
from ktrial.model.kernel import BuildOrder
from ktrial.model.machine import Boot
from ktrial.target import Step
from ktrial.text_lines import lines_of

_MOST_BENCHES = 8
"""Of clients that came and went: their machines have nothing under way."""
_MOST_PACKAGES = 256
_MOST_ORDERS = 64
_MOST_LOG_BYTES = 1 << 20
_SECONDS_BETWEEN_STEPS = 0.5
_OF_THE_WORKER: tuple[type[KtrialError], ...] = (
    *HOST_PROBLEMS,
    BuildDiffers,
    FleetError,
    BadFileStore,
    FileStoreFailed,
)
"""What another worker may not meet."""
_Answer = TypeVar("_Answer")

# What a client tells a worker.


@dataclass(frozen=True)
class Bench:
    """A machine of one client's on a worker: kept there from order to order."""

    key: str
    maker: bytes
    """What makes the machine, pickled."""
    symbols: bool = True
    """Whether trials tell which function did what."""


@dataclass(frozen=True)
class Preparation:
    """Make a system ready for its trials."""

    bench: Bench
    package: str
    """The digest of the package that names the system."""
    boot: int
    """Which of the package's."""


@dataclass(frozen=True)
class Order:
    """Perform a trial."""

    bench: Bench
    package: str
    planned: PlannedTrial
    steps: tuple[tuple[Step, ...] | None, ...]
    """Of each of the package's jobs; None: the worker finds out, or finds out why nobody can."""


@dataclass(frozen=True)
class BuildQuestion:
    """Can these kernels be built on the worker?"""

    maker: bytes
    """What makes what builds, pickled."""
    orders: tuple[str, ...]
    """Digests of pickled BuildOrders."""


@dataclass(frozen=True)
class BuildCall:
    """Build a kernel."""

    maker: bytes
    order: str
    """The digest of a pickled BuildOrder."""
    topic: str
    """Under which the client hears how far it is."""
    files: str
    """The fleet's place of files, which takes the kernel."""


# What a worker answers.


@dataclass(frozen=True)
class Introduction:
    """What a worker is."""

    agrees: dict[str, str]
    """What has to agree between it and the client, in words → what the worker has."""
    problem: str = ""
    """Why it cannot perform trials of that machine at all."""
    advice: str = ""


@dataclass(frozen=True)
class Lacking:
    """The worker needs these contents first: it has not found them, or something else in their place."""

    digests: tuple[str, ...]


@dataclass(frozen=True)
class Completed:
    """What was ordered is done; of a trial: what came of it, as JSON."""

    trial: bytes = b""


@dataclass(frozen=True)
class CanBuild:
    """Which kernels can be built on the worker."""

    version: str
    """The worker's ktrial."""
    problems: tuple[str, ...]
    """Of each order: why not; empty: it can."""


@dataclass(frozen=True)
class Built:
    """The kernel is built; an archive of it lies in the fleet's place of files."""

    digest: str


@dataclass(frozen=True)
class NotBuilt:
    """The kernel cannot be built from this, by whomever."""

    error: KernelError
    log: bytes = b""
    """The end of what make printed."""


@dataclass(frozen=True)
class Unable:
    """The worker's system keeps it from being done: another worker may be able to."""

    problem: str
    advice: str = ""


@dataclass(frozen=True)
class Stopped:
    """The client had the machine stopped, or waits no more."""


@dataclass(frozen=True)
class Failed:
    """A mistake in ktrial, or in a part of it that somebody added."""

    problem: str
    """The traceback."""

    @property
    def last_line(self) -> str:
        """What was raised."""
        return lines_of(self.problem.strip())[-1]

    def error(self, worker: str) -> FleetError:
        """What the client raises."""
        error = FleetError(f"Worker {worker}: {self.last_line}")
        error.__cause__ = RuntimeError(self.problem)
        return error


@dataclass(frozen=True)
class Gone:
    """The worker is gone, or the scheduler lost what was asked of it. Not said by a worker."""

    died: bool = False
    """It is the worker that is gone, not the scheduler."""


# Files.


@cache
def contents() -> Contents:
    """The files that this worker was given."""
    return Contents()


def supplied(
    files: str, digests: tuple[str, ...], function: Callable[[Any], object], argument: object
) -> object:
    """Take what this worker lacks of these contents from the fleet's place of files; then do it."""
    problem = _answered(partial(_take, files, digests))
    return problem if problem else function(argument)


def _take(files: str, digests: tuple[str, ...]) -> Lacking | None:
    lacking = contents().lacking(digests)
    if not lacking:
        return None
    _jobs.cache_clear()  # what was damaged gets its names anew
    store = FileStore(files)
    missing: list[str] = []
    for digest in lacking:
        try:
            if not contents().take(store, digest):
                missing.append(digest)
        except TransferDamaged:
            missing.append(digest)
    return Lacking(tuple(missing)) if missing else None


def _answered(work: Callable[[], _Answer]) -> _Answer | Stopped | Unable | Failed:
    """What came of the work, where it is something that the client has to know."""
    try:
        return work()
    except (MachineStopped, _Dropped):
        return Stopped()
    except _OF_THE_WORKER as error:
        return Unable(error.message, error.advice)
    except OSError as error:
        return Unable(str(error))
    except Exception:  # noqa: BLE001 - what it is, the client tells its user
        return Failed(traceback.format_exc())


# Trials.


@dataclass
class _Place:
    """A bench here."""

    machine: Machine
    symbols: KernelSymbols
    failed: dict[Boot, KtrialError] = field(default_factory=dict)
    """Systems that cannot be prepared, and why: an outcome of their trials."""


_places: dict[str, _Place] = {}
_lock = threading.Lock()


def introduce(bench: Bench) -> Introduction:
    """Say what this worker is, and whether the machine works here."""
    agrees = {"ktrial": VERSION}
    try:
        machine = _place(bench).machine
        machine.check()
        agrees |= machine.has_to_agree() if isinstance(machine, PortableMachine) else {}
    except KtrialError as error:
        return Introduction(agrees, error.message, error.advice)
    return Introduction(agrees)


def prepare(preparation: Preparation) -> Completed | Stopped | Unable | Failed:
    """Boot the system once, and keep it."""
    return _answered(partial(_prepare, preparation))


def _prepare(preparation: Preparation) -> Completed:
    jobs = _jobs(preparation.package)
    boot = tuple(dict.fromkeys(job.boot for job in jobs))[preparation.boot]
    place = _place(preparation.bench)
    try:
        place.machine.prepare(boot, lambda _what: None)
        fault_point("fleet: system prepared")
    except KtrialError as error:
        if isinstance(error, (*HOST_PROBLEMS, MachineStopped)):
            raise
        place.failed[boot] = error
    return Completed()


def perform(orders: tuple[Order, ...]) -> tuple[Completed | Stopped | Unable | Failed, ...]:
    """Run the trials to their ends, whatever their outcomes, one after another.

    What came of each, in order; none of those after one that was not performed.
    """
    replies: list[Completed | Stopped | Unable | Failed] = []
    for order in orders:
        replies.append(_answered(partial(_perform, order)))
        if not isinstance(replies[-1], Completed):
            break
    return tuple(replies)


def _perform(order: Order) -> Completed:
    place = _place(order.bench)
    jobs = [
        replace(job, workload_steps=steps)
        for job, steps in zip(_jobs(order.package), order.steps, strict=True)
    ]
    fault_point("fleet: trial begins")
    trial = run_trial(place.machine, order.planned, jobs, place.failed, place.symbols, audited=False)
    fault_point("fleet: trial ended")
    return Completed(trial.model_dump_json().encode())


def end(key: str) -> None:
    """Stop all that is under way on the bench."""
    with _lock:
        place = _places.pop(key, None)
    if place:
        place.machine.stop()


def end_all() -> None:
    """Stop all that is under way on this worker."""
    for key in list(_places):
        end(key)


def _place(bench: Bench) -> _Place:
    with _lock:
        if bench.key not in _places:
            while len(_places) >= _MOST_BENCHES:
                _places.pop(next(iter(_places)))
            machine: Machine = pickle.loads(bench.maker)()
            _places[bench.key] = _Place(machine, KernelSymbols(wanted=bench.symbols))
        return _places[bench.key]


@lru_cache(maxsize=_MOST_PACKAGES)
def _jobs(package: str) -> tuple[Job, ...]:
    return unpacked(contents().read(package), contents())


# Kernels that are built.


class _Dropped(Exception):
    """Nobody waits for the build any more."""


def can_build(question: BuildQuestion) -> CanBuild | Stopped | Unable | Failed:
    """Say of each order why it cannot be built here."""

    def problems() -> CanBuild:
        builds: PortableBuilds = pickle.loads(question.maker)()
        return CanBuild(VERSION, tuple(builds.problem(_order(digest)) for digest in question.orders))

    return _answered(problems)


def build(call: BuildCall) -> Built | NotBuilt | Lacking | Stopped | Unable | Failed:
    """Build the kernel, and put an archive of it into the fleet's place of files."""
    return _answered(partial(_build, call))


def _build(call: BuildCall) -> Built | NotBuilt | Lacking:
    builds: PortableBuilds = pickle.loads(call.maker)()
    order = _order(call.order)
    if lacking := contents().lacking(builds.needed(order)):
        return Lacking(lacking)
    fault_point("fleet build: begins")
    try:
        archive = builds.make(order, lambda digest: contents().place(digest, "content"), _BuildProgress(call))
    except _OF_THE_WORKER:
        raise
    except KernelError as error:
        return NotBuilt(error, _log_of(error))
    fault_point("fleet build: kernel is built")
    digest = digest_of_file(archive)
    FileStore(call.files).put(digest, archive)
    fault_point("fleet build: kernel can be had")
    return Built(digest)


@lru_cache(maxsize=_MOST_ORDERS)
def _order(digest: str) -> BuildOrder:
    order = pickle.loads(contents().read(digest))
    assert isinstance(order, BuildOrder), "the client packed it"
    return order


def _log_of(error: KernelError) -> bytes:
    with contextlib.suppress(OSError):
        if isinstance(error, BuildFailed):
            return error.log.read_bytes()[-_MOST_LOG_BYTES:]
    return b""


class _BuildProgress:
    """Tells the client, and ends what nobody waits for."""

    def __init__(self, call: BuildCall) -> None:
        self._call = call
        self._step, self._reported = "", 0.0

    def __call__(self, what: str, done: int = 0, total: int = 0) -> None:
        if not is_wanted():
            raise _Dropped
        step, now = what.partition(":")[0], time.monotonic()
        if step == self._step and now - self._reported < _SECONDS_BETWEEN_STEPS:
            return
        self._step, self._reported = step, now
        report(self._call.topic, {"order": self._call.order, "what": what, "done": done, "total": total})
