"""One cache of snapshots for a whole run of the tests: a snapshot's name is a digest of what is in it.

It lies below `target`, on the checkout's disk: a snapshot takes a hundred megabytes, and /tmp may be memory.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.places import ROOT
from tests.support.real_runs import cache_without_snapshots

RUNS = ROOT / "target" / "test-runs"
_USERS = "users"
"""Locked by everyone who uses the run's cache, for as long as they live."""


def this_run() -> str:
    """A name that the workers of one run share, and no two runs."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID", f"process-{os.getpid()}")


@contextmanager
def shared_cache(run: str, runs: Path = RUNS) -> Iterator[Path]:
    """A cache that is empty of snapshots at the run's beginning, and shared by its workers.

    Kernels, sources and builds are the user's own. The last worker that leaves removes it; what a killed run
    has left goes when the next one comes.
    """
    runs.mkdir(parents=True, exist_ok=True)
    place = runs / run
    with _alone(runs):
        _remove_left_overs(runs)
        if not place.exists():
            place.mkdir()
            cache_without_snapshots(place / "cache")
        users = (place / _USERS).open("w")
        fcntl.flock(users, fcntl.LOCK_SH)
    with users:
        yield place / "cache"
        with _alone(runs):
            if _is_last(users.fileno()):
                shutil.rmtree(place, ignore_errors=True)


@contextmanager
def large_directory(cache: Path) -> Iterator[Path]:
    """An empty one beside the run's cache, for what takes hundreds of megabytes; gone after the block."""
    directory = Path(tempfile.mkdtemp(prefix="large-", dir=cache.parent))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _remove_left_overs(runs: Path) -> None:
    for users in runs.glob(f"*/{_USERS}"):
        with users.open("w") as opened:
            if _is_last(opened.fileno()):
                shutil.rmtree(users.parent, ignore_errors=True)


def _is_last(users: int) -> bool:
    """Whether nobody else uses a run's cache. The lock of a process that was killed is gone with it."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _alone(runs: Path) -> Iterator[None]:
    """Whoever comes or goes does so alone; nobody waits here for those who are at work."""
    with (runs / "coming-and-going").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def keeps_to_the_runs_cache(module: Path, root: Path) -> bool:
    """Whether the tests of a file share the run's cache: all but `tests/slow`, which builds kernels in
    directories of the user's cache that it keeps."""
    return module.relative_to(root).parts[:2] != ("tests", "slow")
