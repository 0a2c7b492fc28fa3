"""Which tests run, how long they search for faults, and what they find when they start."""

import gc
import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

# Several workers with a thread for each core, each of which spins while it waits, slow each other down: a
# search takes a third of the CPU time with one. This has to be said before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from filelock import FileLock
from hypothesis import settings
from tests.support import databases
from tests.support.databases import BACKENDS, POSTGRESQL, Backend, Server, a_file
from tests.support.homes import OwnHome
from tests.support.runs_of_tests import (
    MOST_BY_DAY,
    NIGHTLY,
    TIMES_AT_NIGHT,
    InOrder,
    PassedDirectories,
    Resuming,
    SkippedTests,
    TimesOfTests,
    keeps_to_the_runs_cache,
    large_directory,
    shared_cache,
    state_of_the_packages,
    state_of_the_sources,
    this_run,
)
from xdist.remote import Producer
from xdist.scheduler import Scheduling

from ktrial.installation import CACHE
from ktrial.store import sqlite

ASKED_FOR = {"nightly": ("--nightly",), "slow": ("--slow", "--nightly")}
"""Marker → the options of which one has to be given."""

# For each change the same examples every time: who sees a failure has caused it, and sees it again. At night
# there are other ones each time, and many more; one that fails is kept in .hypothesis and tried first.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=MOST_BY_DAY)
settings.register_profile(NIGHTLY, deadline=None, max_examples=100 * TIMES_AT_NIGHT)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the tests that take minutes")
    parser.addoption(
        "--nightly", action="store_true", help="run every test: all kernels and seeds, slow ones"
    )
    parser.addoption(
        "--resume", action="store_true", help="leave out what has passed since a source was changed"
    )


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile(NIGHTLY if config.getoption("--nightly") else "ci")
    hear_signals()
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(OwnHome())
        config.pluginmanager.register(TimesOfTests())
    config.pluginmanager.register(SkippedTests())
    config.pluginmanager.register(PassedDirectories())
    if config.getoption("--resume"):
        assert config.cache, "--resume needs pytest's cache"
        passed = config.cache.mkdir("resume") / f"{state_of_the_sources()}-{state_of_the_packages()}"
        config.pluginmanager.register(Resuming(passed, writes=not hasattr(config, "workerinput")))


def hear_signals() -> None:
    """A shell's background job ignores SIGINT, one under nohup SIGHUP; what tests start would do so too."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            first = signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
            signal.signal(number, first)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays until the end: to look through it for cycles took a third of the CPU time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    return InOrder(config, log) if config.getoption("dist") == "loadfile" else None


AS_USERS_HAVE_IT = sqlite.SYNCHRONOUS


@pytest.fixture(scope="session", autouse=True)
def not_to_the_disk() -> Iterator[None]:
    """Tests kill processes and cut no power: to wait for the disk was half of the time of their stores."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "SYNCHRONOUS", "OFF")
        yield


@pytest.fixture
def to_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test of what a store does for users."""
    monkeypatch.setattr(sqlite, "SYNCHRONOUS", AS_USERS_HAVE_IT)


@pytest.fixture(scope="session")
def run_cache() -> Iterator[Path]:
    """The cache that the workers of this run share."""
    with shared_cache(this_run()) as cache:
        yield cache


@pytest.fixture(scope="module", autouse=True)
def in_the_run_cache(request: pytest.FixtureRequest) -> Iterator[None]:
    """KTRIAL_CACHE: `ktrial` finds the run's cache, whoever starts it, and writes nothing into the user's."""
    if not keeps_to_the_runs_cache(request.path, request.config.rootpath):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE, str(request.getfixturevalue("run_cache")))
        yield


@pytest.fixture
def large_path(run_cache: Path) -> Iterator[Path]:
    """In place of `tmp_path`, for a test that writes hundreds of megabytes."""
    with large_directory(run_cache) as directory:
        yield directory


@pytest.fixture(scope="module")
def large_shared_path(run_cache: Path) -> Iterator[Path]:
    """The same for the fixtures of a module."""
    with large_directory(run_cache) as directory:
        yield directory


@pytest.fixture(scope="session")
def snapshots(run_cache: Path) -> Path:
    """The directory of the snapshots that they share."""
    return run_cache / "snapshots"


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The database server that the workers of this run share."""
    base = tmp_path_factory.getbasetemp()
    place = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with databases.shared(place / "postgresql") as server:
        yield server


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """A place for a store, empty but for what opening one makes: a test that has it runs on each database."""
    if request.param != POSTGRESQL:
        yield a_file(tmp_path)
        return
    server: Server = request.getfixturevalue("postgresql")
    database = server.database()
    yield Backend(POSTGRESQL, database)
    server.drop(database)


@pytest.fixture(autouse=True)
def alone_on_this_system(request: pytest.FixtureRequest) -> Iterator[None]:
    """Two runs of the tests at once do not change the same settings, which only root may."""
    if request.node.get_closest_marker("root") is None:
        yield
        return
    if os.geteuid() != 0:
        pytest.skip("only root changes this system's settings")
    with FileLock(Path(tempfile.gettempdir()) / "ktrial-tests-of-this-system.lock"):
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = {
        marker
        for marker, options in ASKED_FOR.items()
        if not any(config.getoption(option) for option in options)
    }
    dropped = {item: None for item in items if any(item.get_closest_marker(marker) for marker in left_out)}
    config.hook.pytest_deselected(items=list(dropped))
    items[:] = [item for item in items if item not in dropped]
