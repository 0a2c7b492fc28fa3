"""How long tests search for faults: a little for each change, much longer at night."""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.support.places import ROOT
from tests.support.real_runs import cache_without_snapshots
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

# How long tests search for faults: a little for each change, much longer at night.

NIGHTLY = "nightly"
"""The name of hypothesis's profile for the night."""


TIMES_AT_NIGHT = 20
MOST_BY_DAY = 50
"""Examples for each change: what a change breaks, a few of them show; rare ones are the night's."""
_Value = TypeVar("_Value")


def is_night() -> bool:
    """Whether pytest was given --nightly: conftest.py has chosen the profile."""
    return settings.get_current_profile_name() == NIGHTLY


def by_night(many: _Value, few: _Value) -> _Value:
    """`many` at night, `few` for each change: how often something is simulated, or what may be said of it."""
    return many if is_night() else few


def examples(for_each_change: int) -> int:
    """How many examples hypothesis draws, in the profile that conftest.py has chosen."""
    return by_night(for_each_change * TIMES_AT_NIGHT, min(for_each_change, MOST_BY_DAY))


def at_night(*values: object) -> ParameterSet:
    """Values of a test's parameters that are not tried for each change."""
    return pytest.param(*values, marks=pytest.mark.nightly)


# Which tests a worker of pytest-xdist takes next: `--dist loadfile`, in the order of the command line.
#
# pytest-xdist itself begins with the file that has most tests. Here the files with guests come first, which
# have few tests that take long, and small files come last, so that no worker is idle long before the
# others.

EACH_ALONE = (
    "tests/docs/test_docs.py",
    "tests/guest/kernels/test_must_hold",
    "tests/guest/experiment/test_io.py",
)
"""How the names of files begin whose tests take long and share no fixture: each goes to any worker."""


OF_ONE_MACHINE = (
    "tests/unit/cli/test_cli_hosts.py",
    "tests/unit/machines/test_machines_ssh.py",
    "tests/unit/machines/test_ssh_other_systems.py",
    "tests/unit/machines/test_ssh_sudo.py",
)
"""They measure on this system by ssh, where one trial at a time is let in: all go to one worker."""


class InOrder(LoadScopeScheduling):
    """The tests of a file go to one worker together, since they share its guests."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(EACH_ALONE):
            return nodeid
        return "one machine" if nodeid.startswith(OF_ONE_MACHINE) else nodeid.partition("::")[0]


# The end of a run says what was skipped and why: nothing is left out in silence.


class SkippedTests:
    """A plugin; with pytest-xdist the process that is told what all workers did."""

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """A line for the reasons, and one for records that are to be made anew."""
        reasons = [reason_of(report) for report in terminalreporter.stats.get("skipped", ())]
        others = Counter(reason for reason in reasons if not is_outdated(reason))
        if others:
            told = "; ".join(f"{count} {reason}" for reason, count in others.most_common())
            terminalreporter.write_line(f"skipped: {told}")
        if outdated := [reason for reason in reasons if is_outdated(reason)]:
            terminalreporter.write_line(outdated_line(outdated), yellow=True)


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why a test or a file was skipped, on one line."""
    *_, text = report.longrepr if isinstance(report.longrepr, tuple | list) else (str(report.longrepr),)
    return " ".join(str(text).removeprefix("Skipped: ").split())


# Where the time goes: each file's seconds are in target/test-times.tsv, each test's too.

TIMES = ROOT / "target" / "test-times.tsv"


class TimesOfTests:
    """A plugin; with pytest-xdist the process that is told what all workers did."""

    def __init__(self, path: Path = TIMES) -> None:
        self._path = path
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test's seconds are those of its fixtures too."""
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Longest first, files before tests: `head` shows where to begin."""
        files: dict[str, float] = defaultdict(float)
        for test, seconds in self._seconds.items():
            files[test.partition("::")[0]] += seconds
        lines = [
            f"{seconds:.2f}\t{name}\n"
            for taken in (files, self._seconds)
            for name, seconds in sorted(taken.items(), key=lambda item: -item[1])
        ]
        self._path.parent.mkdir(exist_ok=True)
        self._path.write_text("".join(lines))


# What was recorded with another kernel, compiler or QEMU than are here: no fault of ktrial's.
#
# A test skips, and the end of the run says in one line what to record anew. At night it fails: somebody has
# to.

_MARK = "recorded before something here changed"


_COMMAND = "record anew: "


def skip_outdated(what: str, record: str) -> NoReturn:
    """End the test. `what`: which record, and what is another one here; `record`: what makes it anew."""
    reason = f"{_MARK}: {what}; {_COMMAND}{record}"
    if is_night():
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def is_outdated(reason: str) -> bool:
    """Whether a test was skipped by `skip_outdated`."""
    return reason.startswith(_MARK)


def outdated_line(reasons: Iterable[str]) -> str:
    """One line of all of them; each command comes once."""
    whats: dict[str, None] = {}
    commands: dict[str, None] = {}
    for reason in reasons:
        what, _, command = reason.removeprefix(f"{_MARK}: ").partition(f"; {_COMMAND}")
        whats[what], commands[command] = None, None
    return f"outdated records: {'; '.join(whats)}. {_COMMAND.capitalize()}{' && '.join(commands)}"


# `--resume`: what has passed is not run again until a source changes; what is left is told at the end.
#
# Each passed test is on disk at once, so that nothing is lost by Ctrl-C, SIGKILL or a loss of power.

CONTENTS = ("src", "tests", "studies", "docs", "crates", "pyproject.toml")
"""What the tests' results follow from."""


LONGEST_LIST = 20


def state_of_the_sources(root: Path = ROOT) -> str:
    """A digest of all files: another one after every change, and the same again after it is taken back."""
    whole = hashlib.sha256()
    for path in _files(root):
        whole.update(f"{path.relative_to(root)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
    return whole.hexdigest()[:16]


def state_of_the_packages() -> str:
    """A digest of what else is imported: `make test-nightly` runs tests with more versions than one.

    What the extra `mutation` brings is no part of it: the same environment has it later.
    """
    needed = packages_of("ktrial", {"dev"}, {})
    return hashlib.sha256(json.dumps(needed, sort_keys=True).encode()).hexdigest()[:16]


def packages_of(name: str, extras: Collection[str], known: dict[str, str]) -> dict[str, str]:
    """What a package needs that is installed, and what that needs: name → version; added to `known`."""
    for requirement in map(Requirement, metadata.requires(name) or ()):
        needed = canonicalize_name(requirement.name)
        marker = requirement.marker
        if needed in known or (marker and not any(marker.evaluate({"extra": one}) for one in ("", *extras))):
            continue
        with suppress(metadata.PackageNotFoundError):
            known[needed] = metadata.version(needed)
            packages_of(needed, requirement.extras, known)
    return known


def _files(root: Path) -> Iterator[Path]:
    for name in CONTENTS:
        top = root / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


class Resuming:
    """A plugin: what passed, by node id, and what is left."""

    def __init__(self, passed: Path, *, writes: bool) -> None:
        """`passed`: where it is kept. `writes`: whether this process is the one that is told all results."""
        self._file = passed
        self._writes = writes
        self._before = frozenset(passed.read_text().splitlines()) if passed.exists() else frozenset()
        self._wanted: dict[str, None] = {}
        self._failed: set[str] = set()
        self._passed: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what has passed."""
        done = [item for item in items if item.nodeid in self._before]
        config.hook.pytest_deselected(items=done)
        items[:] = [item for item in items if item.nodeid not in self._before]
        self._wanted |= dict.fromkeys(item.nodeid for item in items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Iterable[str]) -> None:
        """Of pytest-xdist: this process collects nothing, its workers do."""
        self._wanted |= dict.fromkeys(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep it when its last part has passed; one that is skipped counts, since it would be again."""
        if report.failed:
            self._failed.add(report.nodeid)
        if report.when == "teardown" and report.nodeid not in self._failed:
            self._passed.add(report.nodeid)
            if self._writes:
                with self._file.open("a") as file:
                    file.write(f"{report.nodeid}\n")

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Nothing to run is no failure where everything has passed before."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._before:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what is left."""
        if self._before:
            terminalreporter.write_line(f"resumed: {len(self._before)} had passed before")
        left = [test for test in self._wanted if test not in self._passed]
        if not left:
            terminalreporter.write_line("nothing is left: every test has passed, or was skipped")
            return
        terminalreporter.section(f"left: {len(left)} tests, of which {len(self._failed)} failed")
        files = Counter(test.partition("::")[0] for test in left)
        for file, number in files.most_common(LONGEST_LIST):
            terminalreporter.write_line(f"{number:6}  {file}")
        if len(files) > LONGEST_LIST:
            terminalreporter.write_line(f"        and {len(files) - LONGEST_LIST} more files")
        terminalreporter.write_line("The same command runs what is left; a change to any source, everything.")


# A directory that tests share goes once they have passed: /tmp may be memory, and a run makes gigabytes.
#
# pytest itself removes the directory of a test that passed (`tmp_path_retention_policy`), but keeps until
# the end of the run those that fixtures of a whole module make by `tmp_path_factory.mktemp`.

_SHARED = {"class", "module", "package"}
"""Scopes of fixtures. What is the whole session's goes with it."""


class PassedDirectories:
    """A plugin, in the process that runs the tests."""

    def __init__(self) -> None:
        self._setting_up: list[tuple[pytest.FixtureDef[Any], str]] = []
        """Fixtures, the innermost last, and what their tests' names begin with."""
        self._failed: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """Know who makes a directory."""
        self._setting_up.append((fixturedef, request.node.nodeid))
        try:
            made = yield
        finally:
            self._setting_up.pop()
        if isinstance(made, pytest.TempPathFactory):
            made.mktemp = self._removing(made.mktemp)  # type: ignore[method-assign, assignment]
        return made

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Who failed may want to look into it."""
        if report.failed:
            self._failed.append(report.nodeid)

    def _removing(self, make: Callable[[str, bool], Path]) -> Callable[[str, bool], Path]:
        """As `mktemp`, and what it makes goes when the fixture ends that has it made."""

        def mktemp(basename: str, numbered: bool = True) -> Path:
            path = make(basename, numbered)
            if self._setting_up:
                fixture, tests = self._setting_up[-1]
                if fixture.scope in _SHARED:
                    # What the fixture itself does at its end comes before.
                    fixture.addfinalizer(partial(self._remove, path, tests))
            return path

        return mktemp

    def _remove(self, path: Path, tests: str) -> None:
        if not any(failed.startswith(tests) for failed in self._failed):
            shutil.rmtree(path, ignore_errors=True)


# One cache of snapshots for a whole run of the tests: a snapshot's name is a digest of what is in it.
#
# It lies below `target`, on the checkout's disk: a snapshot takes a hundred megabytes, and /tmp may be
# memory.

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
