"""Studies and searches on this system are killed at random instants: knobs come back, and all goes on."""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
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
from ktrial.cli.running import study as run_study
from ktrial.experiment import session
from ktrial.optimize import session as search_session
from ktrial.store.store import open_store

pytestmark = SLOW_AND_ROOT

PART = 25
"""At once: so that a busy machine runs each to its end, and a night that is interrupted loses few."""
AMID = 5
"""Every so many'th instant and the one after it lie while a setting is in force, which is certain. Of random
ones 15 to 24 % do (3 and 6 of 25 were seen), so that fewer than two of 25 did in 1 to 9 % of a search's
parts."""
CHANGES = (5, 9)
"""After so many of a run: at least one trial is stored, and all of it makes more of them."""
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
KNOBS = {"vm.stat_interval": "1..9", "vm.dirty_writeback_centisecs": "400..900"}
"""Harmless ones."""
BUDGET = 26
IMPORTED_ONCE = (run_study, session, search, optimize.tune, search_session)
"""What the commands import when they run: here, and not in each of the processes that are forked."""


@dataclass(frozen=True)
class Case:
    command: tuple[str, ...]
    instants: int
    starts: float
    """How often the time to the first change, from there: several trials, each with its settings."""
    seed: int
    is_search: bool


CASES = {
    "study": Case(("run", "harmless.toml"), 200, 2.0, 300, is_search=False),
    "search": Case(
        (
            *("tune", "--knobs", ",".join(f"{name}={values}" for name, values in KNOBS.items())),
            *("--budget", str(BUDGET), "--", "/bin/sleep", "0.05"),
        ),
        50,
        3.0,
        500,
        is_search=True,
    ),
}


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with journal_in_memory(monkeypatch) as directory:
        yield directory


def orders(store: Path) -> list[int]:
    """Of the trials that are stored; the store has to open, with one study in it at most."""
    with open_store(str(store)) as opened:
        studies = opened.studies()
        assert len(studies) <= 1, "what goes on is the same one"
        return [trial.planned.order for study in studies for trial in opened.trials(study.id, counted=False)]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        (name, part)
        for name, case in CASES.items()
        for part in range(int(os.environ.get("KTRIAL_TEST_INSTANTS", case.instants)) // PART)
    ],
)
def test_every_knob_comes_back_and_what_is_stored_goes_on(
    name: str, part: int, journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("harmless.toml").write_text(STUDY)
    case = CASES[name]
    first, chance = values_now(KNOBS), random.Random(case.seed + part)
    left = gone_on = before = amid = 0
    store = tmp_path / "0.db"

    def command() -> tuple[str, ...]:
        verb, *arguments = case.command
        return (verb, "--allow-host-changes", "--no-html", "--store", str(store), *arguments)

    for instant in range(PART):
        if instant % AMID < 2:
            amid += 1
            changes = chance.randint(*CHANGES)
            ended = killed_amid_changes(command(), journal, changes)
            if ended:
                store, before = tmp_path / f"{instant}-anew.db", 0
                ended = killed_amid_changes(command(), journal, changes)
                assert not ended, "it changes settings more often than that"
        else:
            ended = killed_at_a_random_instant(command(), journal, chance, case.starts)
        left += has_left_something(journal)
        assert run_ktrial("host", "restore") == 0
        assert values_now(KNOBS) == first, f"instant {instant}"
        planned = orders(store)
        assert len(planned) >= before
        if case.is_search:
            assert planned == list(range(len(planned))), "no run is repeated, and none is left out"
            assert len(planned) <= BUDGET
        gone_on += len(planned) > before > 0
        before = len(planned)
        if ended:
            store, before = tmp_path / f"{instant + 1}.db", 0
    assert left >= amid
    assert gone_on, "the second instant goes on with what the first one has stored, at least"
    if case.is_search:
        assert run_ktrial(*command()) == 0, "undisturbed, it ends"
        assert values_now(KNOBS) == first
