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
    killed_amid_changes,
    killed_at_a_random_instant,
    run_ktrial,
    values_now,
)

from ktrial.cli.running import study as run_study
from ktrial.experiment import session
from ktrial.store.store import open_store

pytestmark = SLOW_AND_ROOT

INSTANTS = int(os.environ.get("KTRIAL_TEST_INSTANTS", "200"))
PART = 25
"""At once: so that a busy machine runs each to its end, and a night that is interrupted loses few."""
STARTS = 2.0
"""How often the time to the first change, from there: several trials, with settings made and taken back."""
AMID = 5
"""Every so many'th instant and the one after it lie while a setting is in force, which is certain: of random
ones a quarter do (7 of 25 were seen twice), so that fewer than two of 25 did in one part of 300."""
CHANGES = (5, 9)
"""After so many of a run: at least one trial is stored, and a study makes more of them in all."""
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


def command(study: Path, store: Path) -> tuple[str, ...]:
    return ("run", str(study), "--allow-host-changes", "--no-html", "--store", str(store))


def finished(store: Path) -> int:
    """Trials in the store, which has to open."""
    with open_store(str(store)) as opened:
        return sum(one.finished for one in opened.studies())


@pytest.mark.parametrize("part", range(INSTANTS // PART))
def test_nothing_is_lost_and_everything_comes_back(part: int, journal: Path, tmp_path: Path) -> None:
    study = tmp_path / "harmless.toml"
    study.write_text(STUDY)
    first, chance, left, gone_on, before = values_now(KNOBS), random.Random(300 + part), 0, 0, 0
    amid, store = 0, tmp_path / "0.db"
    for instant in range(PART):
        if instant % AMID < 2:
            amid += 1
            changes = chance.randint(*CHANGES)
            ended = killed_amid_changes(command(study, store), journal, changes)
            if ended:
                store, before = tmp_path / f"{instant}-anew.db", 0
                ended = killed_amid_changes(command(study, store), journal, changes)
                assert not ended, "a study changes settings more often than that"
        else:
            ended = killed_at_a_random_instant(command(study, store), journal, chance, STARTS)
        left += has_left_something(journal)
        assert run_ktrial("restore") == 0
        assert values_now(KNOBS) == first, f"instant {instant}"
        after = finished(store)
        assert after >= before
        gone_on += after > before > 0
        before = after
        if ended:
            store, before = tmp_path / f"{instant + 1}.db", 0
    assert left >= amid
    assert gone_on, "the second instant goes on with the first one's study, at least"
