"""One cache of snapshots for a whole run of the tests: a snapshot's name is a digest of what is in it."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.real_runs import cache_without_snapshots


@contextmanager
def shared_cache(base: Path) -> Iterator[Path]:
    """A cache that is empty of snapshots at the run's beginning, and shared by its workers.

    Kernels, sources and builds are the user's own. The last worker that leaves removes the snapshots, which
    take a hundred megabytes each. `base`: pytest's directory of this worker.
    """
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "guests"
    cache = place / "cache"
    place.mkdir(exist_ok=True)
    with (place / "users").open("w") as users:
        with _alone(place):
            if not cache.exists():
                cache_without_snapshots(cache)
            fcntl.flock(users, fcntl.LOCK_SH)
        yield cache
        with _alone(place):
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            shutil.rmtree(cache / "snapshots", ignore_errors=True)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Whoever comes or goes does so alone; nobody waits here for those who are at work."""
    with (place / "coming-and-going").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def keeps_to_the_runs_cache(module: Path, root: Path) -> bool:
    """Whether the tests of a file share the run's cache: all but `tests/slow`, which builds kernels in
    directories of the user's cache that it keeps."""
    return module.relative_to(root).parts[:2] != ("tests", "slow")
