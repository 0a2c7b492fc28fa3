"""A directory that tests share goes once they have passed: /tmp may be memory, and a run makes gigabytes.

pytest itself removes the directory of a test that passed (`tmp_path_retention_policy`), but keeps until the
end of the run those that fixtures of a whole module make by `tmp_path_factory.mktemp`.
"""

import shutil
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

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
