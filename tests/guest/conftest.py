"""One cache of snapshots for the whole run: a snapshot's name is a digest of all that is in it."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.real_runs import cache_without_snapshots

from ktrial.installation import CACHE
from ktrial.machines.exact.snapshot_cache import snapshots_directory


@pytest.fixture(scope="session", autouse=True)
def run_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """KTRIAL_CACHE of this run: empty of snapshots at its beginning, and shared by its workers.

    Kernels, sources and builds are the user's own. The last worker that leaves removes the snapshots, which
    take a hundred megabytes each.
    """
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "guests"
    cache = place / "cache"
    place.mkdir(exist_ok=True)
    with (place / "users").open("w") as users, pytest.MonkeyPatch.context() as patch:
        with _alone(place):
            if not cache.exists():
                cache_without_snapshots(cache)
            fcntl.flock(users, fcntl.LOCK_SH)
        patch.setenv(CACHE, str(cache))
        yield cache
        with _alone(place):
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            shutil.rmtree(snapshots_directory(), ignore_errors=True)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Whoever comes or goes does so alone; nobody waits here for those who are at work."""
    with (place / "coming-and-going").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def snapshots(run_cache: Path) -> Path:
    """The directory of the snapshots that the workers share."""
    return run_cache / "snapshots"
