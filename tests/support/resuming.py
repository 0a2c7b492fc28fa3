"""`--resume`: what has passed is not run again until a source changes; what is left is told at the end.

Each passed test is on disk at once, so that nothing is lost by Ctrl-C, SIGKILL or a loss of power.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.support.places import ROOT

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
