"""A study on this system is killed at 200 random instants: knobs come back, the store opens and goes on."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.killing import (
    SLOW_AND_ROOT,
    has_left_something,
    journal_in_memory,
    killed_at_a_random_instant,
    run_ktrial,
    values_now,
)

from ktrial.cli.running import study as run_study
from ktrial.experiment import session
from ktrial.store import open_store

pytestmark = SLOW_AND_ROOT

INSTANTS = int(os.environ.get("KTRIAL_TEST_INSTANTS", "200"))
PART = 25
"""At once: so that a busy machine runs each to its end, and a night that is interrupted loses few."""
STARTS = 2.0
"""How often the time to the first change, from there: several trials, with settings made and taken back."""
STUDY = """\
workloads = ["syscall"]
[machine]
kind = "host"
[factors.statistics]
target = "vm.stat_interval"
levels = [2, 3]
[factors.write-back]
target = "vm.dirty_writeback_centisecs"
levels = [600, 700]
"""
IMPORTED_ONCE = (run_study, session)
"""What the command imports when it runs: here, and not in each of the processes that are forked."""
KNOBS = ("vm.stat_interval", "vm.dirty_writeback_centisecs")


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with journal_in_memory(monkeypatch) as directory:
        yield directory


def finished(store: Path) -> int:
    """Trials in the store, which has to open."""
    with open_store(str(store)) as opened:
        return sum(one.finished for one in opened.studies())


@pytest.mark.parametrize("part", range(INSTANTS // PART))
def test_nothing_is_lost_and_everything_comes_back(part: int, journal: Path, tmp_path: Path) -> None:
    study = tmp_path / "harmless.toml"
    study.write_text(STUDY)
    first, chance, left, gone_on, before = values_now(KNOBS), random.Random(300 + part), 0, 0, 0
    store = tmp_path / "0.db"
    for instant in range(PART):
        command = ("run", str(study), "--allow-host-changes", "--no-html", "--store", str(store))
        ended = killed_at_a_random_instant(command, journal, chance, STARTS)
        left += has_left_something(journal)
        assert run_ktrial("restore") == 0
        assert values_now(KNOBS) == first, f"instant {instant}"
        after = finished(store)
        assert after >= before
        gone_on += after > before > 0
        before = after
        if ended:
            store, before = tmp_path / f"{instant + 1}.db", 0
    assert left >= PART // 10
    assert gone_on >= PART // 10
