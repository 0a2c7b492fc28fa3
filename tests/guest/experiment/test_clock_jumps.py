"""The wall clock jumps in the middle of a run, by an hour to ten years: the same numbers, a whole store.

A course costs 20 to 30 s of CPU; by night alone.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.real_runs import KTRIAL, cache_without_snapshots, environment, measured

pytestmark = [pytest.mark.guest, pytest.mark.nightly]
SOURCE = Path(__file__).parents[2] / "support/clock_jumps.c"
COMPARE = (KTRIAL, "compare", "debian:6.1", "debian:6.12", "syscall", "--perturbations", "2", "--json")
HOUR, DAY, YEARS = 3600, 86_400, 10 * 365 * 86_400


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    preloaded = tmp_path_factory.mktemp("clock") / "clock_jumps.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", preloaded, SOURCE], check=True)
    return preloaded


def compared(directory: Path, **variables: str) -> list[dict[str, Any]]:
    """The trials of a comparison that makes its snapshots anew, and a store that is whole after it."""
    directory.mkdir()
    cache = cache_without_snapshots(directory / "cache", "debian:6.1", "debian:6.12")
    store = {"KTRIAL_STORE": str(directory / "store.db")}
    command = subprocess.run(
        COMPARE, env=environment(cache) | store | variables, capture_output=True, text=True, check=False
    )
    assert command.returncode == 0, command.stderr
    # What is preloaded is not to be seen in QEMU's jail, whose loader says so.
    warnings = [line for line in command.stderr.splitlines() if "warning" in line and "ld.so" not in line]
    assert not warnings
    whole = subprocess.run(
        (KTRIAL, "store", "verify"),
        env=environment(cache) | store,
        capture_output=True,
        text=True,
        check=False,
    )
    assert whole.returncode == 0, whole.stdout + whole.stderr
    trials = measured(json.loads(command.stdout)["trials"])
    assert len(trials) == 4
    return trials


@pytest.mark.timeout(3600)
def test_a_clock_that_jumps_changes_no_number(clock: Path, tmp_path: Path) -> None:
    undisturbed = compared(tmp_path / "undisturbed")
    courses = ((2, -HOUR), (4, DAY), (6, -YEARS), (3, YEARS), (8, HOUR))
    for number, (after, by) in enumerate(courses):
        jump = {"LD_PRELOAD": str(clock), "CLOCK_JUMP_AFTER": str(after), "CLOCK_JUMP_BY": str(by)}
        assert compared(tmp_path / str(number), **jump) == undisturbed, (after, by)
