"""Runs of tests themselves: they resume, say what is left, and hear Ctrl-C however they were started."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import platformdirs
import pytest
from tests.support.places import ROOT
from tests.support.real_runs import run_shown
from tests.support.runs_of_tests import packages_of, state_of_the_sources

from ktrial.installation import cache_directory

TESTS = """
import os, signal
from pathlib import Path
import pytest

def test_ctrl_c_is_heard():
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)

def test_that_is_mended_later():
    assert Path("mended").exists()

@pytest.mark.nightly
def test_of_the_night():
    os.kill(os.getpid(), signal.SIGINT)
"""
WHERE_INTERRUPTS_ARE_IGNORED = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
"""As in the background job of a shell."""


def ran(directory: Path, *options: str) -> tuple[int, str]:
    command = (sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", directory)
    more = ("-p", "tests.conftest", "-o", "cache_dir=cache", "--resume", "-n0", *options, "test_some.py")
    done = subprocess.run(
        (*WHERE_INTERRUPTS_ARE_IGNORED, *command, *more),
        cwd=directory,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.nightly
def test_what_has_passed_is_not_run_again_and_what_is_left_is_told(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    status, first = ran(tmp_path)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "1 failed, 1 passed, 1 deselected" in first
    assert "left: 1 tests, of which 1 failed" in first
    (tmp_path / "mended").touch()
    status, again = ran(tmp_path, "--nightly")
    assert status == pytest.ExitCode.INTERRUPTED
    assert "resumed: 1 had passed before" in again
    assert "left: 1 tests, of which 0 failed" in again, "Ctrl-C came in the test of the night"
    assert "The same command runs what is left" in again
    status, rest = ran(tmp_path)
    assert status == pytest.ExitCode.OK
    assert "nothing is left" in rest


SKIPPED = """
import pytest
from tests.support.runs_of_tests import skip_outdated

def test_of_root():
    pytest.skip("only root\\nmay mount")

def test_of_root_too():
    pytest.skip("only root may mount")

def test_of_a_picture():
    skip_outdated("quick.svg is of 6.1.1; here is 6.1.2", record="draw it")

def test_of_a_guest():
    skip_outdated("a guest with another QEMU", record="draw it")
"""


@pytest.mark.nightly
@pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.nightly), "-n2"])
def test_what_was_skipped_is_told_with_its_reasons_and_what_to_record_anew(
    workers: str, tmp_path: Path
) -> None:
    (tmp_path / "test_some.py").write_text(SKIPPED)
    status, said = ran(tmp_path, workers)
    assert status == pytest.ExitCode.OK, said
    assert "skipped: 2 only root may mount" in said.splitlines()
    (line,) = [line for line in said.splitlines() if line.startswith("outdated records: ")]
    assert set(line.removeprefix("outdated records: ").partition(". ")[0].split("; ")) == {
        "quick.svg is of 6.1.1",
        "here is 6.1.2",
        "a guest with another QEMU",
    }
    assert line.endswith(". Record anew: draw it")


@pytest.mark.nightly
def test_at_night_an_outdated_record_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(SKIPPED)
    status, said = ran(tmp_path, "--nightly")
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "2 failed, 2 skipped" in said
    assert "quick.svg is of 6.1.1; here is 6.1.2; record anew: draw it" in said


@pytest.mark.parametrize("change", ["another text", "another file"])
def test_any_change_to_a_source_is_another_state(tmp_path: Path, change: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/one.py").write_text("1")
    before = state_of_the_sources(tmp_path)
    assert state_of_the_sources(tmp_path) == before
    (tmp_path / "src" / ("one.py" if change == "another text" else "two.py")).write_text("2")
    assert state_of_the_sources(tmp_path) != before


def test_the_packages_that_tests_need_are_known_and_those_of_mutants_are_not() -> None:
    needed = packages_of("ktrial", {"dev"}, {})
    assert needed["numpy"] == metadata.version("numpy")
    assert {"pytest", "iniconfig", "hypothesis"} <= needed.keys(), "what they need in turn is needed, too"
    assert "mutmut" not in needed


@pytest.mark.nightly
def test_workers_take_files_in_the_order_of_the_command_line(tmp_path: Path) -> None:
    """pytest-xdist's own order begins with the file that has most tests."""
    several = "".join(f"def test_{number}():\n    pass\n" for number in range(3))
    (tmp_path / "test_many.py").write_text(several)
    (tmp_path / "test_some.py").write_text("def test_that_takes_long():\n    pass\n")
    status, said = ran(tmp_path, "-vv", "-n1", "--dist", "loadfile", "test_some.py", "test_many.py")
    assert status == pytest.ExitCode.OK, said
    passed = [line.partition("PASSED ")[2].strip() for line in said.splitlines() if "PASSED" in line]
    assert passed == ["test_some.py::test_that_takes_long", *(f"test_many.py::test_{n}" for n in range(3))]


def test_tests_keep_out_of_the_users_cache_and_take_its_kernels() -> None:
    users = Path(platformdirs.user_cache_dir("ktrial")).absolute()
    assert users not in (cache_directory(), *cache_directory().parents)
    assert (cache_directory() / "kernels").is_symlink()
    assert not (cache_directory() / "shown").is_symlink()


@pytest.mark.nightly
def test_a_long_command_is_shown_as_it_goes(capfd: pytest.CaptureFixture[str]) -> None:
    script = ("sh", "-c", "echo result; echo step >&2; exit 3")
    done = run_shown(script)
    assert (done.returncode, done.stdout, done.stderr) == (3, "result\n", "step\n")
    assert capfd.readouterr() == ("", "step\n")
    both = run_shown(script, together=True)
    assert sorted(both.stdout.split()) == ["result", "step"]
