"""A search on this system is killed at 50 random instants: knobs come back, the search goes on, and ends."""

import os
import random
import signal
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.unit.killing import forked, has_left_something, run_command, run_ktrial

from ktrial.cli import tune_running
from ktrial.knobs import System, find
from ktrial.knobs.location import VARIABLE
from ktrial.search import tune, tuning
from ktrial.store import open_store
from ktrial.target import LocalTarget

pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may change this system's knobs"),
    pytest.mark.timeout(3600),
]

INSTANTS = int(os.environ.get("KTRIAL_TEST_INSTANTS", "50"))
LONGEST_S = 1.5
"""After the first change: several runs, with settings made and taken back between them."""
BUDGET = 26
KNOBS = {"vm.stat_interval": "1..9", "vm.dirty_writeback_centisecs": "400..900"}
"""Harmless ones."""
IMPORTED_ONCE = (tune_running, tune.tune, tuning)
"""What the command imports when it runs: here, and not in each of the processes that are forked."""


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        monkeypatch.setenv(VARIABLE, f"{directory}/journal")
        yield Path(directory) / "journal"


def now() -> dict[str, str]:
    return {name: find(System(LocalTarget()), name)[0].value for name in KNOBS}


def command(store: Path) -> tuple[str, ...]:
    knobs = ",".join(f"{name}={values}" for name, values in KNOBS.items())
    where = ("--allow-host-changes", "--no-html", "--store", str(store))
    return ("tune", "--knobs", knobs, "--budget", str(BUDGET), *where, "--", "/bin/true")


def orders(store: Path) -> list[int]:
    """Of the runs that are stored; the store has to open, with one search in it at most."""
    with open_store(str(store)) as opened:
        studies = opened.studies()
        assert len(studies) <= 1, "a search that goes on is the same one"
        return [trial.planned.order for one in studies for trial in opened.trials(one.id, counted=False)]


def wait_for_the_first_change(journal: Path, process: int) -> bool:
    """Return whether the process has ended instead: nothing was left to be run."""
    while not has_left_something(journal):
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            assert os.waitstatus_to_exitcode(status) == 0
            return True
        time.sleep(0.002)
    return False


def test_every_knob_comes_back_and_the_search_goes_on(journal: Path, tmp_path: Path) -> None:
    first, chance, left, gone_on, before = now(), random.Random(5), 0, 0, 0
    store = tmp_path / "0.db"
    for instant in range(INSTANTS):
        process = forked(partial(run_command, *command(store)))
        ended = wait_for_the_first_change(journal, process)
        time.sleep(0 if ended else chance.uniform(0, LONGEST_S))
        ended = ended or os.waitpid(process, os.WNOHANG)[0] != 0
        if not ended:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        left += has_left_something(journal)
        assert run_ktrial("restore") == 0
        assert now() == first, f"instant {instant}"
        found = orders(store)
        assert found == list(range(len(found))), "no run is repeated, and none is left out"
        assert before <= len(found) <= BUDGET
        gone_on += len(found) > before > 0
        before = len(found)
        if ended:
            store, before = tmp_path / f"{instant + 1}.db", 0
    assert left >= INSTANTS // 10
    assert gone_on >= INSTANTS // 10
    assert run_ktrial(*command(store)) == 0, "undisturbed, it ends"
    assert now() == first
