"""What a worker does: functions that Dask calls there, in the worker's threads."""

import contextlib
import pickle
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

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
from ktrial.fleet.messages import (
    Bench,
    BuildCall,
    Built,
    CanBuild,
    Completed,
    Failed,
    Introduction,
    Lacking,
    NotBuilt,
    Order,
    Preparation,
    Question,
    Reply,
    Several,
    Stopped,
    Unable,
)
from ktrial.installation import VERSION
from ktrial.kernels.errors import BuildCutShort, BuildDiffers, KernelError
from ktrial.machines import Machine, PortableMachine
from ktrial.machines.errors import MachineStopped
from ktrial.model.kernel import BuildOrder
from ktrial.model.machine import Boot

_MOST_BENCHES = 8
"""Of clients that came and went: their machines have nothing under way."""


_MOST_PACKAGES = 256


@dataclass
class _Place:
    """A bench here."""

    machine: Machine
    symbols: KernelSymbols
    failed: dict[Boot, KtrialError] = field(default_factory=dict)
    """Systems that cannot be prepared, and why: an outcome of their trials."""


_places: dict[str, _Place] = {}


_lock = threading.Lock()


@cache
def contents() -> Contents:
    """The files that this worker was given."""
    return Contents()


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


def supplied(
    files: str, digests: tuple[str, ...], function: Callable[[Any], object], argument: object
) -> object:
    """Take what this worker lacks of these contents from the fleet's place of files; then do it."""
    taken = _answered(partial(_take, files, digests))
    return function(argument) if isinstance(taken, Completed) else taken


def _take(files: str, digests: tuple[str, ...]) -> Completed | Lacking:
    lacking = contents().lacking(digests)
    if not lacking:
        return Completed()
    _jobs.cache_clear()  # what was damaged gets its names anew
    store = FileStore(files)
    missing: list[str] = []
    for digest in lacking:
        try:
            if not contents().take(store, digest):
                missing.append(digest)
        except TransferDamaged:
            missing.append(digest)
    return Lacking(tuple(missing)) if missing else Completed()


def prepare(preparation: Preparation) -> Reply:
    """Boot the system once, and keep it."""

    def done() -> Completed:
        jobs = _jobs(preparation.package)
        boot = tuple(dict.fromkeys(job.boot for job in jobs))[preparation.boot]
        place = _place(preparation.bench)
        try:
            place.machine.prepare(boot, _silent)
            fault_point("fleet: system prepared")
        except KtrialError as error:
            if isinstance(error, (*HOST_PROBLEMS, MachineStopped)):
                raise
            place.failed[boot] = error
        return Completed()

    return _answered(done)


def perform(orders: tuple[Order, ...]) -> Reply:
    """Run the trials to their ends, whatever their outcomes, one after another."""
    replies: list[Completed | Unable | Stopped | Failed] = []
    for order in orders:
        reply = _answered(partial(_perform, order))
        assert not isinstance(reply, Lacking | Several), "what it needs was looked for"
        replies.append(reply)
        if not isinstance(reply, Completed):
            break
    return Several(tuple(replies))


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


def _answered(done: Callable[[], Reply]) -> Reply:
    try:
        return done()
    except MachineStopped:
        return Stopped()
    except KtrialError as error:
        if isinstance(error, (*HOST_PROBLEMS, FleetError, BadFileStore, FileStoreFailed)):
            return Unable(error.message, error.advice)
        return Failed(traceback.format_exc())
    except OSError as error:
        return Unable(str(error))
    except Exception:  # noqa: BLE001 - what it is, the client tells its user
        return Failed(traceback.format_exc())


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


def _silent(_what: str) -> None:
    pass


# What a worker does to build kernels: functions that Dask calls there, in the worker's threads.

_SECONDS_BETWEEN = 0.5


_MOST_LOG_BYTES = 1 << 20


_MOST_ORDERS = 64


_OF_THE_WORKER: tuple[type[KtrialError], ...] = (*HOST_PROBLEMS, BuildDiffers, BadFileStore, FileStoreFailed)


class _Dropped(Exception):
    """Nobody waits for the build any more."""


def can_build(question: Question) -> CanBuild | Failed:
    """Say of each order why it cannot be built here."""
    try:
        builds: PortableBuilds = pickle.loads(question.maker)()
        problems = tuple(builds.problem(_order(one)) for one in question.orders)
    except Exception:  # noqa: BLE001 - what it is, the client tells its user
        return Failed(traceback.format_exc())
    return CanBuild(VERSION, problems)


def build(call: BuildCall) -> Built | NotBuilt | Lacking | Unable | Stopped | Failed:
    """Build the kernel, and put an archive of it into the fleet's place of files."""
    try:
        builds: PortableBuilds = pickle.loads(call.maker)()
        order = _order(call.order)
        if lacking := contents().lacking(builds.needed(order)):
            return Lacking(lacking)
        return _made(builds, order, call)
    except _Dropped:
        return Stopped()
    except _OF_THE_WORKER as error:
        return Unable(error.message, error.advice)
    except KernelError as error:
        return Stopped() if isinstance(error, BuildCutShort) else NotBuilt(error, _log_of(error))
    except OSError as error:
        return Unable(str(error))
    except Exception:  # noqa: BLE001 - what it is, the client tells its user
        return Failed(traceback.format_exc())


def _made(builds: PortableBuilds, order: BuildOrder, call: BuildCall) -> Built:
    fault_point("fleet build: begins")
    teller = _Teller(call)
    archive = builds.make(order, _build_side_place, teller)
    fault_point("fleet build: kernel is built")
    digest = digest_of_file(archive)
    FileStore(call.files).put(digest, archive)
    fault_point("fleet build: kernel can be had")
    return Built(digest)


def _build_side_place(digest: str) -> Path:
    return contents().place(digest, "content")


@lru_cache(maxsize=_MOST_ORDERS)
def _order(digest: str) -> BuildOrder:
    order = pickle.loads(contents().read(digest))
    assert isinstance(order, BuildOrder), "the client packed it"
    return order


def _log_of(error: KernelError) -> bytes:
    with contextlib.suppress(OSError, KeyError, TypeError):
        return Path(str(error.facts["log"])).read_bytes()[-_MOST_LOG_BYTES:]
    return b""


@dataclass
class _Teller:
    """A Progress that tells the client, and ends what nobody waits for."""

    call: BuildCall
    _step: str = ""
    _told: float = field(default=0.0)

    def __call__(self, what: str, done: int = 0, total: int = 0) -> None:
        if not is_wanted():
            raise _Dropped
        step, now = what.partition(":")[0], time.monotonic()
        if step == self._step and now - self._told < _SECONDS_BETWEEN:
            return
        self._step, self._told = step, now
        report(self.call.topic, {"order": self.call.order, "what": what, "done": done, "total": total})
