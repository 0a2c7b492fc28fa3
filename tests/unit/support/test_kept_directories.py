"""What a run of tests leaves on disk: nothing of what passed, and nothing of a run that was killed."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.places import ROOT
from tests.support.runs_of_tests import RUNS, large_directory, shared_cache

TESTS = """
import pytest

@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    path = tmp_path_factory.mktemp("shared")
    (path / "large").touch()
    yield path
    assert (path / "large").exists(), "it is there as long as the fixture needs it"

@pytest.fixture(scope="session")
def of_all(tmp_path_factory):
    return tmp_path_factory.mktemp("of_all")

def test_that_passes(tmp_path, shared, of_all):
    (tmp_path / "large").touch()

def test_that_passes_after_it(shared, of_all):
    assert (shared / "large").exists()

def test_that_fails(tmp_path, fails):
    assert not fails
"""
FAILS = """
import pytest

@pytest.fixture
def fails():
    return {fails}
"""
LOOK = """
from pathlib import Path

def test_that_comes_last(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    names = sorted(path.name for path in base.iterdir() if path.is_dir() and not path.is_symlink())
    Path({seen!r}).write_text(" ".join(names))
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("workers", "fails", "left"),
    [
        pytest.param("-n0", False, "of_all0", marks=pytest.mark.nightly),
        pytest.param("-n0", True, "of_all0 shared0 test_that_fails0", marks=pytest.mark.nightly),
        ("-n1", False, "of_all0"),
        ("-n1", True, "of_all0 shared0 test_that_fails0"),
    ],
)
def test_directories_of_what_passed_are_gone_before_the_next_file(
    workers: str, fails: bool, left: str, tmp_path: Path
) -> None:
    (tmp_path / "conftest.py").write_text(FAILS.format(fails=fails))
    (tmp_path / "test_a.py").write_text(TESTS)
    (tmp_path / "test_b.py").write_text(LOOK.format(seen=str(tmp_path / "seen")))
    program: list[str | Path] = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml"]
    done = subprocess.run(
        [
            *program,
            "--rootdir",
            tmp_path,
            "-p",
            "tests.conftest",
            "-p",
            "no:cacheprovider",
            workers,
            "test_a.py",
            "test_b.py",
        ],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ("1 failed" in done.stdout) == fails, done.stdout + done.stderr
    assert (tmp_path / "seen").read_text() == left


def test_a_runs_cache_is_shared_by_its_workers_and_goes_with_the_last(tmp_path: Path) -> None:
    with shared_cache("one", tmp_path) as first:
        (first / "snapshots").mkdir()
        with shared_cache("one", tmp_path) as second, shared_cache("two", tmp_path) as other:
            assert second == first
            assert (second / "snapshots").is_dir()
            assert not (other / "snapshots").exists()
        assert first.is_dir()
        assert not other.exists()
    assert not first.parent.exists()


def test_what_a_killed_run_has_left_goes_when_the_next_one_comes(tmp_path: Path) -> None:
    killed = (
        "import os, pathlib; from tests.support.runs_of_tests import shared_cache\n"
        "with shared_cache('killed', pathlib.Path.cwd()): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", killed], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, check=False)
    assert (tmp_path / "killed" / "cache").is_dir()
    with shared_cache("next", tmp_path):
        assert not (tmp_path / "killed").exists()


def test_snapshots_do_not_lie_in_tmp(run_cache: Path) -> None:
    assert run_cache.parents[1] == RUNS
    assert (run_cache / "kernels").is_symlink()


def test_what_is_large_does_not_lie_in_tmp_and_is_gone_after_it(run_cache: Path) -> None:
    with large_directory(run_cache) as directory:
        assert directory.parent == run_cache.parent
        (directory / "file").touch()
    assert not directory.exists()
