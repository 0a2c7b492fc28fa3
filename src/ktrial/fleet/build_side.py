"""What a worker does to build kernels: functions that Dask calls there, in the worker's threads."""

import contextlib
import pickle
import time
import traceback
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from ktrial.errors import KtrialError
from ktrial.experiment.errors import HOST_PROBLEMS
from ktrial.experiment.resources import PortableBuilds
from ktrial.fault_points import fault_point
from ktrial.file_digests import digest_of_file
from ktrial.file_store import BadFileStore, FileStore, FileStoreFailed
from ktrial.fleet.connection import is_wanted, report
from ktrial.fleet.messages import (
    BuildCall,
    Built,
    CanBuild,
    Failed,
    HandOver,
    Lacking,
    NotBuilt,
    Piece,
    Question,
    Stopped,
    Unable,
)
from ktrial.fleet.worker_side import contents
from ktrial.installation import VERSION
from ktrial.kernels.errors import BuildDiffers, KernelError
from ktrial.model.kernel import BuildOrder

_SECONDS_BETWEEN = 0.5
_MOST_LOG_BYTES = 1 << 20
_MOST_ORDERS = 64
_OF_THE_WORKER: tuple[type[KtrialError], ...] = (*HOST_PROBLEMS, BuildDiffers)

_built: dict[str, Path] = {}
"""Digest → an archive that is handed over in pieces."""


class _Dropped(Exception):
    """Nobody waits for the build any more."""


def can_build(question: Question) -> CanBuild | Lacking | Failed:
    """Say of each order why it cannot be built here."""
    if lacking := contents().lacking(question.orders):
        return Lacking(lacking)
    try:
        builds: PortableBuilds = pickle.loads(question.maker)()
        problems = tuple(builds.problem(_order(one)) for one in question.orders)
    except Exception:  # noqa: BLE001 - what it is, the client tells its user
        return Failed(traceback.format_exc())
    return CanBuild(VERSION, problems)


def build(call: BuildCall) -> Built | NotBuilt | Lacking | Unable | Stopped | Failed:
    """Build the kernel, and keep an archive of it for whoever asks."""
    if lacking := contents().lacking((call.order,)):
        return Lacking(lacking)
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
        return Stopped() if error.facts.get("killed") else NotBuilt(error, _log_of(error))
    except OSError as error:
        return Unable(str(error))
    except Exception:  # noqa: BLE001 - what it is, the client tells its user
        return Failed(traceback.format_exc())


def hand_over(wanted: HandOver) -> Piece | Unable:
    """A piece of a kernel's archive."""
    try:
        with _built[wanted.digest].open("rb") as file:
            file.seek(wanted.offset)
            return Piece(file.read(wanted.size))
    except (KeyError, OSError) as error:
        return Unable(f"what it built is gone ({error})")


def _made(builds: PortableBuilds, order: BuildOrder, call: BuildCall) -> Built:
    fault_point("fleet build: begins")
    teller = _Teller(call)
    archive = builds.make(order, _place, teller)
    fault_point("fleet build: kernel is built")
    digest = digest_of_file(archive)
    _built[digest] = archive
    problem = ""
    if call.files:
        try:
            FileStore(call.files).put(digest, archive)
        except (BadFileStore, FileStoreFailed) as error:
            problem = error.message
    fault_point("fleet build: kernel can be had")
    return Built(digest, archive.stat().st_size, in_store=bool(call.files and not problem), problem=problem)


def _place(digest: str) -> Path:
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
