"""Trials that are not what was stored: told before a verdict comes of them, and run again on request."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.making import a_study, a_trial, planned
from tests.support.profiles import a_profile
from typer.testing import CliRunner, Result

from ktrial.cli.app import app
from ktrial.store import Store, open_store
from ktrial.store.errors import StoreDamaged, TrialsDamaged

ONE_BIT = {
    "a sample": "UPDATE samples SET value = value + 0.0009765625",
    "what a sample is of": "UPDATE samples SET workload = 'fori'",
    "a counter": "UPDATE counters SET delta = delta + 1",
    "the outcome": "UPDATE trials SET outcome = 'complete`'",
    "a setting": "UPDATE trials SET settings = replace(settings, 'madvise', 'madvisd')",
    "the plan": "UPDATE trials SET planned = replace(planned, '0', '1')",
    "no JSON": "UPDATE trials SET provenance = replace(provenance, '{', 'z')",
    "no date": "UPDATE trials SET started = 'x' || substr(started, 2)",
    "a profile": "UPDATE profiles SET content = x'789c'",
    "a profile's name": "UPDATE profiles SET workload = 'fori'",
    "a sample is gone": "DELETE FROM samples",
    "a digest": "UPDATE digests SET content = '0' || substr(content, 2), counters = 'x', profiles = '{}'",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with two trials of one study."""
    path = tmp_path / "trials.db"
    with open_store(path) as store:
        study = store.study(a_study())
        for number in range(2):
            profile = a_profile({("do_fork", ""): 900})
            store.add_trial(study, a_trial(planned(number=number), profiles=(profile,), settings=SETTINGS))
    return path


SETTINGS = {"mm/transparent_hugepage/enabled": "madvise"}


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(statement + (" WHERE trial_id = 1" if "trials SET" not in statement else " WHERE id = 1"))
        raw.commit()


def read(store: Store) -> None:
    """All that verdicts, reports and explanations read."""
    (study,) = store.studies()
    store.trials(study.id)
    for number in range(2):
        assert store.profile(study.id, planned(number=number).key, "fork")


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["store", *arguments])


def test_whole_trials_fit_their_digests(path: Path) -> None:
    with open_store(path) as store:
        read(store)
        assert [(one.has_digest, one.damaged) for one in store.check_trials(1)] == [(True, ()), (True, ())]
    assert ran("verify", "--store", str(path)).exit_code == 0


@pytest.mark.parametrize("what", ONE_BIT)
def test_one_changed_bit_is_seen_told_and_can_be_taken_away(what: str, path: Path) -> None:
    change(path, ONE_BIT[what])
    with open_store(path) as store, pytest.raises((StoreDamaged, AssertionError)):
        read(store)
    found = ran("verify", "--store", str(path), "--json")
    assert found.exit_code == 1
    assert "--remove-damaged" in found.stderr
    (told,) = json.loads(found.stdout)
    assert (told["trials"], told["without_digest"]) == (2, 0)
    assert [one["trial"] for one in told["damaged"]] == [planned(number=0).key]
    assert ran("verify", "--store", str(path), "--remove-damaged").exit_code == 0
    with open_store(path) as store:
        assert store.finished_keys(1) == {planned(number=1).key}
        assert len(store.trials(1)) == 1
    assert ran("verify", "--store", str(path)).exit_code == 0


def test_no_verdict_comes_of_a_damaged_trial_and_the_error_says_what_to_do(path: Path) -> None:
    change(path, ONE_BIT["a sample"])
    with open_store(path) as store, pytest.raises(TrialsDamaged) as caught:
        store.trials(1, counted=False)
    assert (
        "1 trial of study 1 differs from what was stored: no verdict comes from them" in caught.value.message
    )
    assert "ktrial store verify 1; with --remove-damaged" in caught.value.advice


def test_trials_of_an_older_ktrial_are_read_and_counted(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("DROP TABLE digests")
        raw.execute("UPDATE ktrial_schema SET version = 6")
        raw.commit()
    with open_store(path, read_only=True) as store:
        read(store)
    found = ran("verify", "--store", str(path))
    assert found.exit_code == 0
    assert "by an older ktrial: whether they changed cannot be told" in found.stdout
    with open_store(path) as store:
        store.add_trial(1, a_trial(planned(number=2)))
        assert [one.has_digest for one in store.check_trials(1)] == [False, False, True]
