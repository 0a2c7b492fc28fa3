"""Trials that are not what was stored: told before a verdict comes of them, and run again on request."""

import json
import re
import zlib

import pytest
from tests.support.databases import POSTGRESQL, SQLITE, Backend
from tests.support.making import a_study, a_trial, planned
from tests.support.profiles import a_profile
from tests.support.runs_of_tests import at_night
from tests.support.stored_parts import ANSWER, DIFFERENCE, PROOF, REGRESSION
from typer.testing import CliRunner, Result

from ktrial.cli.app import app
from ktrial.model.trial import Outcome
from ktrial.store.copying import check_is_copy, copy_study
from ktrial.store.errors import StoreDamaged, StudyDamaged, TrialsDamaged
from ktrial.store.store import Store, open_store

pytestmark = pytest.mark.parametrize("backend", [SQLITE, at_night(POSTGRESQL)], indirect=True)

ONE_BIT = {
    "a sample": "UPDATE samples SET value = value + 0.0009765625",
    "what a sample is of": "UPDATE samples SET workload = 'fori'",
    "a counter": "UPDATE counters SET delta = delta + 1",
    "the outcome": "UPDATE trials SET outcome = 'complete`'",
    "a setting": "UPDATE trials SET settings = replace(settings, 'madvise', 'madvisd')",
    "the plan": "UPDATE trials SET planned = replace(planned, '0', '1')",
    "no JSON": "UPDATE trials SET provenance = replace(provenance, '{', 'z')",
    "no UTF-8": "UPDATE trials SET console = CAST(X'c141' AS TEXT)",
    "no date": "UPDATE trials SET started = 'x' || substr(started, 2)",
    "a profile": "UPDATE profiles SET content = HEX'789c'",
    "a profile's name": "UPDATE profiles SET workload = 'fori'",
    "a sample is gone": "DELETE FROM samples",
    "no digests": "DELETE FROM digests",
    "a digest": "UPDATE digests SET content = '0' || substr(content, 2), counters = 'x', profiles = '{}'",
}


@pytest.fixture
def path(backend: Backend) -> Backend:
    """A store with two trials of one study."""
    with open_store(backend.location) as store:
        study = store.study(a_study())
        for number in range(2):
            profile = a_profile({("do_fork", ""): 900})
            store.add_trial(study, a_trial(planned(number=number), profiles=(profile,), settings=SETTINGS))
    return backend


SETTINGS = {"mm/transparent_hugepage/enabled": "madvise"}


def change(path: Backend, statement: str) -> None:
    for_moments(path, statement)
    path.sql(statement + (" WHERE trial_id = 1" if "trials SET" not in statement else " WHERE id = 1"))


def for_moments(path: Backend, statement: str) -> None:
    """PostgreSQL keeps no moment that is none, nor a text: what would damage one is refused there."""
    if "AS TEXT" in statement and not path.is_file:
        pytest.skip("PostgreSQL keeps no text that is no UTF-8")
    if "substr(" in statement and re.search("(started|created) =", statement) and not path.is_file:
        pytest.skip("PostgreSQL keeps no moment that is none")


def read(store: Store) -> None:
    """All that verdicts, reports and explanations read."""
    (study,) = store.studies()
    store.trials(study.id)
    for number in range(2):
        assert store.profile(study.id, planned(number=number).key, "fork")


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["store", *arguments])


def test_whole_trials_fit_their_digests(path: Backend) -> None:
    with open_store(path.location) as store:
        read(store)
        assert [check.damaged for check in store.check_trials(1)] == [(), ()]
    assert ran("verify", "--store", path.location).exit_code == 0


@pytest.mark.parametrize("what", ONE_BIT)
def test_one_changed_bit_is_seen_told_and_can_be_taken_away(what: str, path: Backend) -> None:
    change(path, ONE_BIT[what])
    with open_store(path.location) as store, pytest.raises((StoreDamaged, AssertionError)):
        read(store)
    said = ran("verify", "--store", path.location, "--json")
    assert said.exit_code == 1
    assert "--remove-damaged" in said.stderr
    (told,) = json.loads(said.stdout)["studies"]
    assert told["trials"] == 2
    assert [one["trial"] for one in told["damaged"]] == [planned(number=0).key]
    assert ran("verify", "--store", path.location, "--remove-damaged").exit_code == 0
    with open_store(path.location) as store:
        assert store.finished_keys(1) == {planned(number=1).key}
        assert len(store.trials(1)) == 1
    assert ran("verify", "--store", path.location).exit_code == 0


def test_trials_are_read_with_one_workload_s_samples_and_damage_beside_them_is_seen(path: Backend) -> None:
    values = {"fork": 1.5, "pipe": 2.5}
    with open_store(path.location) as store:
        study = store.study(a_study("two workloads"))
        for number in range(2):
            store.add_trial(study, a_trial(planned(number=number), values=values))
        whole = store.trials(study)
        trials = store.trials(study, counted=False, workload="pipe")
        assert [one.samples for one in trials] == [whole[0].samples[1:], whole[1].samples[1:]]
        assert [one.provenance for one in trials] == [one.provenance for one in whole]
        assert store.trials(study, workload="none of them")[0].samples == ()
        path.sql("UPDATE samples SET value = 3.5 WHERE value = 1.5")
        with pytest.raises(TrialsDamaged, match="2 trials"):
            store.trials(study, counted=False, workload="pipe")


def test_no_verdict_comes_of_a_damaged_trial_and_the_error_says_what_to_do(path: Backend) -> None:
    change(path, ONE_BIT["a sample"])
    with open_store(path.location) as store, pytest.raises(TrialsDamaged) as caught:
        store.trials(1, counted=False)
    assert (
        "1 trial of study 1 differs from what was stored: no verdict comes from them" in caught.value.message
    )
    assert "ktrial store verify 1 names them; with --remove-damaged" in caught.value.advice


@pytest.mark.parametrize("orphans", [True, False], ids=["row alone", "all that belongs to it"])
def test_a_trial_that_was_taken_out_is_missed_and_can_be_run_again(path: Backend, orphans: bool) -> None:
    taken_out(path, planned(number=1).key, orphans=orphans)
    with open_store(path.location, read_only=True) as store, pytest.raises(StoreDamaged) as caught:
        store.trials(1, counted=False)
    assert "of study 1, 1 trial is missing: no verdict comes from the others" in caught.value.message
    said = ran("verify", "--store", path.location)
    assert (said.exit_code, "damaged: quick: 1 trial is missing" in said.stdout) == (1, True)
    assert "restore a copy of the store" in said.stderr
    (told,) = json.loads(ran("verify", "--store", path.location, "--json").stdout)["studies"]
    assert (told["missing"], told["damaged"]) == ("1 trial is missing", [])
    accepted = ran("verify", "--store", path.location, "--remove-damaged")
    assert (accepted.exit_code, "runs the missing trials again" in accepted.stderr) == (0, True)
    with open_store(path.location) as store:
        assert [one.planned.key for one in store.trials(1)] == [planned(number=0).key]
        store.add_trial(1, a_trial(planned(number=1)))
        assert len(store.trials(1)) == 2
    assert ran("verify", "--store", path.location).exit_code == 0


def taken_out(path: Backend, key: str, *, orphans: bool) -> None:
    """As another program would: SQLite leaves rows that refer to it, unless it is told otherwise."""
    if orphans and not path.is_file:
        pytest.skip("PostgreSQL takes all that belongs to it")
    ((number,),) = path.sql(f"SELECT id FROM trials WHERE key = '{key}'")
    if not orphans:
        for table in ("samples", "counters", "profiles", "series", "digests"):
            path.sql(f"DELETE FROM {table} WHERE trial_id = {number}")
    path.sql(f"DELETE FROM trials WHERE id = {number}")


def test_a_trial_in_place_of_another_is_seen(path: Backend) -> None:
    path.sql("UPDATE digests SET content = '0' || substr(content, 2) WHERE trial_id = 2")
    with open_store(path.location) as store:
        assert store.missing_trials(1) == "trials are not those that were stored"


def test_trials_that_ktrial_takes_away_or_replaces_are_not_missed(path: Backend) -> None:
    failed = a_trial(planned(number=2), outcome=Outcome.HUNG)
    with open_store(path.location) as store:
        store.remove_trials_of(1, [planned(number=0).key])
        store.add_trial(1, failed)
        assert store.add_trial(1, a_trial(planned(number=2)), replaces=frozenset({Outcome.HUNG}))
        assert not store.add_trial(1, a_trial(planned(number=2)))
        assert store.missing_trials(1) == ""
        assert len(store.trials(1)) == 2


OF_THE_STUDY = {
    "what it asks for": (
        "study",
        "UPDATE studies SET spec = replace(spec, 'perturbations\": 3', 'perturbations\": 2')",
    ),
    "its name": ("study", "UPDATE studies SET name = 'quicj'"),
    "its digest": ("study", "UPDATE studies SET digest = '0' || substr(digest, 2)"),
    "its name, no UTF-8": ("study", "UPDATE studies SET name = CAST(X'71c163' AS TEXT)"),
    "what it asks for, no UTF-8": ("study", "UPDATE studies SET spec = CAST(X'7bc17d' AS TEXT)"),
    "when it was made": ("study", "UPDATE studies SET created = '2025' || substr(created, 5)"),
    "no JSON": ("study", "UPDATE studies SET spec = replace(spec, '{', 'z')"),
    "the answer": ("answer", "UPDATE answers SET content = CHANGED"),
    "a difference between kernels": ("kernel difference", "UPDATE kernel_differences SET content = CHANGED"),
    "what was proved": ("proof", "UPDATE proofs SET content = CHANGED"),
    "what was accepted": ("regression", "UPDATE regressions SET content = CHANGED"),
}


@pytest.fixture
def with_answer(path: Backend) -> Backend:
    with open_store(path.location) as store:
        store.add_answer(1, ANSWER)
        store.add_kernel_difference(1, DIFFERENCE)
        store.add_proof(1, PROOF)
        store.add_regression(1, REGRESSION)
    return path


def one_bit_less(statement: str, path: Backend) -> None:
    """`CHANGED`: the same, compressed, with another figure in it, so that it can be read."""
    for_moments(path, statement)
    if "CHANGED" not in statement:
        path.sql(statement)
        return
    table = statement.split()[1]
    ((content,),) = path.sql(f"SELECT content FROM {table}")
    assert isinstance(content, bytes)
    text = zlib.decompress(content).decode()
    changed = text.replace("0.02", "0.03").replace('"a"', '"c"')
    assert changed != text
    path.put(table, zlib.compress(changed.encode()))


def read_study(store: Store) -> None:
    """All that is said of a study beside its trials."""
    (study,) = store.studies()
    store.find(study.study.name)
    store.answer(study.id)
    store.kernel_differences(study.id)
    store.proofs(study.id)
    store.regressions()


@pytest.mark.parametrize("what", OF_THE_STUDY)
def test_one_changed_bit_in_a_study_or_its_answer_is_seen_and_told(what: str, with_answer: Backend) -> None:
    part, statement = OF_THE_STUDY[what]
    with open_store(with_answer.location, read_only=True) as store:
        read_study(store)
    one_bit_less(statement, with_answer)
    with open_store(with_answer.location) as store, pytest.raises(StoreDamaged):
        read_study(store)
    said = ran("verify", "--store", with_answer.location, "--json")
    assert said.exit_code == 1
    (told,) = json.loads(said.stdout)["studies"]
    assert told["damaged_parts"] == [part]
    assert ran("verify", "--store", with_answer.location, "--remove-damaged").exit_code == 0
    assert ran("verify", "--store", with_answer.location).exit_code == 0


@pytest.mark.parametrize("what", ["what it asks for", "its name, no UTF-8"])
def test_what_a_study_asks_for_is_put_right_by_asking_again_and_its_trials_stay(
    what: str, path: Backend
) -> None:
    one_bit_less(OF_THE_STUDY[what][1], path)
    with open_store(path.location) as store:
        assert store.study(a_study()) == 1
        (study,) = store.studies()
        assert (study.study, study.finished) == (a_study(), 2)
    assert ran("verify", "--store", path.location).exit_code == 0


@pytest.mark.parametrize("what", ["its name, no UTF-8", "what it asks for, no UTF-8"])
def test_a_study_with_a_text_that_is_none_is_told_by_its_number(what: str, path: Backend) -> None:
    one_bit_less(OF_THE_STUDY[what][1], path)
    copied = f"{path.location}.copy"
    with open_store(path.location) as store, open_store(copied) as other:
        for ask in (
            lambda: store.find(1),
            store.newest,
            lambda: copy_study(store, other, 1, keeps_number=True),
        ):
            with pytest.raises(StudyDamaged, match="the study of study 1 is not what was stored"):
                ask()
        store.study(a_study(name="another"))
        assert store.find("another").id == 2
        assert "another" in store.names()
        check_is_copy(store, other)


@pytest.mark.parametrize("how", [(), ("--json",)], ids=["table", "json"])
@pytest.mark.parametrize("what", [name for name, (part, _) in OF_THE_STUDY.items() if part == "study"])
def test_list_shows_the_studies_beside_a_damaged_one_and_tells_it(
    what: str, how: tuple[str, ...], path: Backend
) -> None:
    with open_store(path.location) as store:
        for name in ("before", "after"):
            store.study(a_study(name=name))
    one_bit_less(f"{OF_THE_STUDY[what][1]} WHERE id = 2", path)
    listed = CliRunner().invoke(app, ["list", "--all", "--store", path.location, *how])
    assert listed.exit_code == 1
    assert [name in listed.stdout for name in ("quick", "before", "after")] == [True, False, True]
    assert "ktrial: warning: study 2" in listed.stderr
    assert "ktrial store verify" in listed.stderr
