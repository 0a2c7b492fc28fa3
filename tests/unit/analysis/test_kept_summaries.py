"""A run leaves in the store what histories and sites ask of its study: nobody reads its trials again."""

import pytest
from tests.support.databases import Backend
from tests.support.making import a_study
from tests.support.report_records import FIVE, a_record, a_study_with_failures
from tests.support.scripted import ScriptedMachine, number_of, scripted_resources
from tests.support.stored_results import fill

from ktrial.analysis.brief_results import BriefResults, brief_of, brief_results, keep_record
from ktrial.analysis.history.series import history
from ktrial.analysis.history.stored_numbers import stored_numbers
from ktrial.analysis.result import load_record
from ktrial.experiment.session import run
from ktrial.model.history import History
from ktrial.store.store import Store, open_store


def without_trials(store: Store, monkeypatch: pytest.MonkeyPatch) -> tuple[History, BriefResults]:
    """From what was kept alone."""
    with monkeypatch.context() as patch:
        studies = store.studies()
        for way in ("trials", "find", "readable_studies"):
            patch.setattr(store, way, None)
        numbers = stored_numbers(store)
        return history(numbers, "fork"), brief_results(store, studies, numbers.states)


def test_a_run_leaves_its_numbers_and_what_it_came_to(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(backend.location) as store:
        record_ = run(
            a_study(), store=store, machine=ScriptedMachine(number_of), resources=scripted_resources()
        )
        past, briefs = without_trials(store, monkeypatch)
        assert sum(len(line.points) for line in past.lines) > 0
        assert briefs.of(record_.id) == brief_of(load_record(store, record_.id))
        assert briefs.of(record_.id).answer == record_.result.answer


def test_what_was_kept_of_one_study_says_what_its_trials_say(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(backend.location) as store:
        fill(store, a_record(FIVE[:3], ("fork",)), a_study_with_failures())
        records = [keep_record(store, study.id) for study in store.studies()]
        past, briefs = without_trials(store, monkeypatch)
        assert [briefs.of(study_record.id) for study_record in records] == [
            brief_of(study_record) for study_record in records
        ]
        assert any(briefs.of(study_record.id).failed for study_record in records), "with trials that failed"
        assert any(briefs.of(study_record.id).rows for study_record in records)
    with open_store(backend.location) as store:
        store.keep_summaries([])
        assert history(stored_numbers(store), "fork") == past


def test_what_a_study_came_to_is_made_again_once_it_has_changed(backend: Backend) -> None:
    with open_store(backend.location) as store:
        fill(store, a_record(FIVE[:3], ("fork",)))
        (before,) = (keep_record(store, study.id) for study in store.studies())
        store.remove_trials_of(before.id, [before.trials[-1].planned.key])
        after = brief_results(store, store.studies(), store.study_states()).of(before.id)
        assert after == brief_of(load_record(store, before.id))
        assert after.completed == brief_of(before).completed - 1


def test_the_state_of_one_study_is_that_among_all(backend: Backend) -> None:
    with open_store(backend.location) as store:
        fill(store, a_record(FIVE[:2], ("fork",)), a_study_with_failures())
        every = store.study_states()
        assert len(every) == 2
        assert {number: store.study_states(number) for number in every} == {
            number: {number: state} for number, state in every.items()
        }
        assert store.study_states(99) == {}
