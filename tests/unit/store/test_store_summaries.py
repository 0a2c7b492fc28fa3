"""What is kept for histories: it is what the trials say, and made again when they say something else."""

import pytest
from tests.support.databases import Backend
from tests.support.report_records import FIVE, a_record, a_study_with_failures, a_study_with_gaps
from tests.support.stored_results import fill

from ktrial.analysis.history.series import history, metrics, versions
from ktrial.analysis.history.stored_numbers import StoredNumbers, stored_numbers
from ktrial.model.history import History
from ktrial.model.trial import Outcome
from ktrial.store.errors import TrialsDamaged
from ktrial.store.store import Store, open_store
from ktrial.store.study_rows import OF_STUDY

WORKLOADS = ("fork", "nqueens")


@pytest.fixture
def filled(backend: Backend) -> Backend:
    """A store of three studies: with gaps, with trials that failed, with none of that."""
    records = (a_record(FIVE, WORKLOADS), a_study_with_failures(), a_study_with_gaps())
    with open_store(backend.location) as store:
        fill(store, *records)
    return backend


def every(numbers: StoredNumbers) -> dict[str, History]:
    labels = {use.label for study in numbers.studies for use in study.workloads}
    return {label: history(numbers, label) for label in labels}


def values(numbers: StoredNumbers, study: int) -> list[float]:
    """Of fork."""
    (numbers_of_study,) = [past for past in numbers.of("fork") if past.study_id == study]
    return [value for series in numbers_of_study.every for value in series.values]


def without_trials(store: Store, monkeypatch: pytest.MonkeyPatch) -> StoredNumbers:
    """From what was kept alone."""
    with monkeypatch.context() as patch:
        patch.setattr(store, "trials", None)
        patch.setattr(store, "find", None)
        patch.setattr(store, "readable_studies", None)
        return stored_numbers(store)


def test_what_was_kept_says_what_the_trials_say(filled: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(filled.location) as store:
        first = every(stored_numbers(store))
        numbers = without_trials(store, monkeypatch)
        assert numbers.made == {}
        assert every(numbers) == first
        assert sum(len(line.points) for past in first.values() for line in past.lines) > 20
        assert metrics(numbers, "fork") == ("instructions",)
        assert versions(numbers, "fork")[FIVE[0]] == "5.10.0-35-cloud-amd64"


def test_a_store_that_is_only_read_says_the_same(filled: Backend) -> None:
    with open_store(filled.location, read_only=True) as store:
        plain = every(stored_numbers(store))
        assert store.summaries() == {}
        again = stored_numbers(store, before=stored_numbers(store))
        assert every(again) == plain
    with open_store(filled.location) as store:
        assert every(stored_numbers(store)) == plain


def test_a_trial_more_or_less_is_seen(filled: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(filled.location) as store:
        stored_numbers(store)
        taken = max(store.trials(1), key=lambda trial: trial.planned.order)
        store.remove_trials_of(1, [taken.planned.key])
        with pytest.raises(TypeError):
            without_trials(store, monkeypatch)
        fewer = values(stored_numbers(store), 1)
        # With the same number and outcome as the one before, and another value.
        changed = [sample.model_copy(update={"value": sample.value * 3}) for sample in taken.samples]
        assert store.add_trial(1, taken.model_copy(update={"samples": tuple(changed)}))
        more = values(stored_numbers(store), 1)
    (new,) = [sample.value for sample in changed if sample.workload == "fork"]
    assert sorted((*fewer, new)) == sorted(more)


def test_a_failed_trial_that_is_measured_again_is_seen(filled: Backend) -> None:
    with open_store(filled.location) as store:
        stored_numbers(store)
        whole = store.trials(1)[0]
        failed = next(trial for trial in store.trials(2) if trial.outcome is not Outcome.COMPLETED)
        before = values(stored_numbers(store), 2)
        now = failed.model_copy(update={"outcome": Outcome.COMPLETED, "samples": whole.samples})
        assert store.add_trial(2, now, replaces=frozenset({failed.outcome}))
        assert len(values(stored_numbers(store), 2)) == len(before) + 1


def test_what_was_kept_and_damaged_is_made_again(filled: Backend) -> None:
    with open_store(filled.location) as store:
        whole = every(stored_numbers(store))
    for workload in (OF_STUDY, "fork"):
        filled.sql(f"UPDATE summaries SET content = HEX'00' WHERE workload = '{workload}'")
        with open_store(filled.location) as store:
            assert every(stored_numbers(store)) == whole
    filled.sql("UPDATE summaries SET digest = 'x'")
    with open_store(filled.location) as store:
        assert every(stored_numbers(store)) == whole


def test_a_damaged_trial_is_told_before_anything_is_kept_of_it(filled: Backend) -> None:
    filled.sql("UPDATE samples SET value = value + 1 WHERE trial_id = 1")
    with open_store(filled.location) as store:
        with pytest.raises(TrialsDamaged):
            stored_numbers(store)
        numbers = stored_numbers(store, leave_out=True)
        assert [study.study_id for study in numbers.studies] == [2, 3]
        assert [study.name for study in numbers.left_out] == ["study 1, quick-0"]
        assert numbers.of_one("nqueens").left_out != ()
        assert numbers.of_one("hackbench").left_out == ()
        assert store.summaries().keys() == {2, 3}
