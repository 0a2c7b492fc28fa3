"""`git bisect run ktrial check` finds the commit that slowed a system call. Builds kernels: takes minutes."""

import os
import sys
import time
from pathlib import Path

import pytest
from tests.support.commit_trees import GUILTY, Repository
from tests.support.real_runs import run_shown

from ktrial.installation import cache_directory
from ktrial.kernels.build.debian_sources import debian_source

KTRIAL = Path(sys.executable).with_name("ktrial")
MEASURED = ("--workload", "syscall")


@pytest.fixture(scope="module")
def repository() -> Repository:
    # Always at one place: the build directory beside it is found again by the next run.
    return Repository.make(
        debian_source("linux-source-6.1"), cache_directory() / "tests" / "bisect" / "linux"
    )


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "KTRIAL_STORE": str(tmp_path / "ktrial.db"), "COLUMNS": "100"}


def run(command: list[str | Path], repository: Repository, environment: dict[str, str]) -> str:
    begin = time.monotonic()
    print(f"$ {' '.join(map(str, command))}", flush=True)
    done = run_shown(command, repository.directory, environment, together=True)
    print(f"that took {time.monotonic() - begin:.0f} s")
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_git_bisect_run_with_check_finds_the_commit_that_slowed_getppid(
    repository: Repository, environment: dict[str, str], tmp_path: Path
) -> None:
    repository.git("checkout", "--quiet", "good")
    run([KTRIAL, "check", "baseline", "save", "good", "--source", ".", *MEASURED], repository, environment)

    summary = tmp_path / "summary.md"
    repository.git("bisect", "start", "master", "good")
    check: list[str | Path] = [
        KTRIAL,
        "check",
        "--source",
        ".",
        "--against",
        "good",
        *MEASURED,
        "--max",
        "+1%",
    ]
    said = run(["git", "bisect", "run", *check, "--summary", summary], repository, environment)

    guilty = repository.commit_of(GUILTY)
    assert f"{guilty} is the first bad commit" in said
    assert "kernel/params.c:" in said, "the commit that does not compile was met, and skipped"
    assert "getppid" in summary.read_text(), "the function is named where the check is beyond the limit"
