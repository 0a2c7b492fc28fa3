"""Workers as jobs of a batch system, which dask-jobqueue submits: Slurm, PBS, LSF, HTCondor, SGE, OAR.

A fleet's file has a table with the system's name; its keys are dask-jobqueue's, with dashes:

    address = "tls://head:8786"
    [slurm]
    workers = 16
    cores = 4
    memory = "8 GiB"
"""

import importlib
import inspect
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ktrial.fleet.connection import imported, security_of
from ktrial.fleet.errors import BadFleetFile, BatchSystemFailed, FleetError
from ktrial.fleet.settings import BATCH_SYSTEMS, FleetSettings, table_of
from ktrial.installation import how_to_add

_OWN = {"workers"}
_SET_HERE = {
    "scheduler",
    "name",
    "processes",
    "nanny",
    "worker_command",
    "protocol",
    "security",
    "config_name",
}
"""Of dask-jobqueue's: what says how a worker of ktrial's is started."""
_GLANCE_SECONDS = 1.0
_PATIENCE_SECONDS = 60.0
_DEFAULTS: dict[str, Any] = {"cores": 1, "memory": "2 GiB", "job_name": "ktrial"}


@dataclass(frozen=True)
class BatchJobs:
    """What is submitted: jobs of one worker each."""

    system: str
    workers: int
    options: Mapping[str, Any]
    """For dask-jobqueue."""


def read(path: Path, system: str | None, workers: int | None = None) -> BatchJobs:
    """The jobs that a fleet's file describes; `system`: None where it describes those of one system only.

    Raises BadFleetFile; FleetError where Dask or dask-jobqueue is not installed.
    """
    document = table_of(path, str(path))
    tables = {name: document[name] for name in BATCH_SYSTEMS if name in document}
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise BadFleetFile(str(path), f"{name} is a table: [{name}], workers = 16, and so on")
    if system is None and len(tables) == 1:
        (system,) = tables
    if system is None or system not in tables:
        there = f"it has {_listed(tables)}" if tables else f"it has none of {_listed(BATCH_SYSTEMS)}"
        raise BadFleetFile(str(path), f"which batch system? {there}")
    table = {str(key).replace("-", "_"): value for key, value in tables[system].items()}
    count = workers or table.get("workers", 0)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise BadFleetFile(str(path), f"[{system}] workers: a whole number from 1 is needed")
    options = _DEFAULTS | {key: value for key, value in table.items() if key not in _OWN}
    allowed = _allowed(system)
    for key in options:
        if key not in allowed:
            name, known = key.replace("_", "-"), _listed(_OWN | allowed)
            raise BadFleetFile(str(path), f"[{system}] {name} is not known; known: {known}")
    return BatchJobs(system, count, options)


def keep_up(jobs: BatchJobs, settings: FleetSettings, say: Callable[[str], None]) -> None:
    """Start the scheduler at the fleet's address, and the jobs; end both on SIGINT, SIGTERM or SIGHUP.

    Raises TrafficInClear, BatchSystemFailed; FleetError where something is not installed.
    """
    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: ending.set())
    place = urlsplit(settings.address)
    scheduler = {
        "host": f"{place.scheme}://{place.hostname}:{place.port}",
        "dashboard_address": "127.0.0.1:0",
        "security": security_of(settings),
    }
    with _as_batch_failure(jobs.system):
        cluster = _class(jobs.system, "Cluster")(
            name="ktrial", scheduler_options=scheduler, **_job_options(jobs, settings)
        )
    try:
        for _ in range(jobs.workers):
            cluster.worker_spec.update(cluster.new_worker_spec())
        _submit_missing(cluster, jobs.system)
        say(f"{jobs.workers} jobs are submitted; the fleet is {cluster.scheduler_address}; Ctrl-C ends it")
        _keep(cluster, jobs, ending, say)
    finally:
        say("cancelling the jobs")
        _drop_unsubmitted(cluster)
        cluster.close(timeout=_PATIENCE_SECONDS)


def _submit_missing(cluster: Any, system: str) -> None:
    """Submit a job for each worker that has none. Raises BatchSystemFailed."""
    _drop_unsubmitted(cluster)
    with _as_batch_failure(system):
        # What Dask's scale() does, of which a job that cannot be submitted is a line in a log only.
        cluster.sync(cluster._correct_state)


def _drop_unsubmitted(cluster: Any) -> None:
    """Dask keeps a job that could not be submitted, as one that is to be closed."""
    for name in [name for name, job in cluster.workers.items() if not job.job_id]:
        cluster.workers.pop(name).status = imported().Status.failed


def _keep(cluster: Any, jobs: BatchJobs, ending: threading.Event, say: Callable[[str], None]) -> None:
    """Submit again what ends, and tell who is there, until the end."""
    workers, last_problem = -1, ""
    while not ending.wait(_GLANCE_SECONDS):
        if (count := len(cluster.scheduler_info["workers"])) != workers:
            say(f"{count} of {jobs.workers} workers are there")
            workers = count
        problem = ""
        try:
            _submit_missing(cluster, jobs.system)
        except BatchSystemFailed as error:
            problem = error.message
        if problem and problem != last_problem:
            say(f"{problem}; trying again")
        last_problem = problem


def script(jobs: BatchJobs, settings: FleetSettings) -> str:
    """What is submitted for each worker.

    Raises TrafficInClear, BatchSystemFailed; FleetError where something is not installed.
    """
    with _as_batch_failure(jobs.system, "dask-jobqueue made no job of the table in the fleet's file"):
        job = _class(jobs.system, "Job")(settings.address, name="ktrial-0", **_job_options(jobs, settings))
        return str(job.job_script())


def _job_options(jobs: BatchJobs, settings: FleetSettings) -> dict[str, Any]:
    words = ["--once", "--tell", *(["--insecure"] if settings.insecure else [])]
    security = security_of(settings)
    return {
        **jobs.options,
        "processes": 1,
        "nanny": False,
        "worker_command": "ktrial.fleet.serving",
        "worker_extra_args": [*jobs.options.get("worker_extra_args", ()), *words],
        **({"security": security, "protocol": "tls"} if security else {}),
    }


def _allowed(system: str) -> set[str]:
    """The keywords of the job's class and of those that it is made of."""
    names: set[str] = set()
    for kind in _class(system, "Job").__mro__:
        if kind is not object and "__init__" in vars(kind):
            names |= set(inspect.signature(kind.__init__).parameters)
    return {name for name in names if not name.endswith("kwargs")} - {"self", *_SET_HERE}


def _class(system: str, kind: str) -> Any:
    imported()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import dask_jobqueue
    except ImportError as error:
        raise FleetError(
            f"Workers as jobs of a batch system need dask-jobqueue, which is not installed here ({error!s}).",
            hint=how_to_add("jobqueue"),
        ) from None
    name = f"{BATCH_SYSTEMS[system]}{kind}"
    module = (
        dask_jobqueue if hasattr(dask_jobqueue, name) else importlib.import_module(f"dask_jobqueue.{system}")
    )
    return getattr(module, name)


@contextmanager
def _as_batch_failure(system: str, hint: str = "") -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        problem = " ".join(str(error).split())
        raise BatchSystemFailed(f"The batch system {system} took no job: {problem}", hint=hint) from None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
