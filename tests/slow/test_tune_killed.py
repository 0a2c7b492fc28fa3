"""A search on this system is killed at 50 random instants: knobs come back, the search goes on, and ends."""

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

from ktrial import optimize
from ktrial.cli.running import search
from ktrial.optimize import session
from ktrial.store.store import open_store

pytestmark = SLOW_AND_ROOT

INSTANTS = int(os.environ.get("KTRIAL_TEST_INSTANTS", "50"))
PART = 25
"""At once: so that a busy machine runs each to its end, and a night that is interrupted loses few."""
STARTS = 3.0
"""How often the time to the first change, from there: several runs, with settings made and taken back."""
AMID = 5
"""Every so many'th instant and the one after it lie while a setting is in force, which is certain. Of
random ones 15 to 24 % do (3 and 6 of 25 were seen), so that fewer than two of 25 did in 1 to 9 % of parts."""
CHANGES = (5, 9)
"""After so many of a run: at least one trial is stored, and a search makes more of them in all."""
BUDGET = 26
KNOBS = {"vm.stat_interval": "1..9", "vm.dirty_writeback_centisecs": "400..900"}
"""Harmless ones."""
IMPORTED_ONCE = (search, optimize.tune, session)
"""What the command imports when it runs: here, and not in each of the processes that are forked."""


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with journal_in_memory(monkeypatch) as directory:
        yield directory


def command(store: Path) -> tuple[str, ...]:
    knobs = ",".join(f"{name}={values}" for name, values in KNOBS.items())
    where = ("--allow-host-changes", "--no-html", "--store", str(store))
    return ("tune", "--knobs", knobs, "--budget", str(BUDGET), *where, "--", "/bin/sleep", "0.05")


def orders(store: Path) -> list[int]:
    """Of the runs that are stored; the store has to open, with one search in it at most."""
    with open_store(str(store)) as opened:
        studies = opened.studies()
        assert len(studies) <= 1, "a search that goes on is the same one"
        return [trial.planned.order for one in studies for trial in opened.trials(one.id, counted=False)]


@pytest.mark.parametrize("part", range(INSTANTS // PART))
def test_every_knob_comes_back_and_the_search_goes_on(part: int, journal: Path, tmp_path: Path) -> None:
    first, chance, left, gone_on, before = values_now(KNOBS), random.Random(500 + part), 0, 0, 0
    amid, store = 0, tmp_path / "0.db"
    for instant in range(PART):
        if instant % AMID < 2:
            amid += 1
            changes = chance.randint(*CHANGES)
            ended = killed_amid_changes(command(store), journal, changes)
            if ended:
                store, before = tmp_path / f"{instant}-anew.db", 0
                ended = killed_amid_changes(command(store), journal, changes)
                assert not ended, "a search changes settings more often than that"
        else:
            ended = killed_at_a_random_instant(command(store), journal, chance, STARTS)
        left += has_left_something(journal)
        assert run_ktrial("restore") == 0
        assert values_now(KNOBS) == first, f"instant {instant}"
        planned = orders(store)
        assert planned == list(range(len(planned))), "no run is repeated, and none is left out"
        assert before <= len(planned) <= BUDGET
        gone_on += len(planned) > before > 0
        before = len(planned)
        if ended:
            store, before = tmp_path / f"{instant + 1}.db", 0
    assert left >= amid
    assert gone_on, "the second instant goes on with the first one's search, at least"
    assert run_ktrial(*command(store)) == 0, "undisturbed, it ends"
    assert values_now(KNOBS) == first
