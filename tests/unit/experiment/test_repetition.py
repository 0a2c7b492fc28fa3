"""One stored trial, run again: what is drawn, what is refused, and what counts as a difference."""

import pytest
from tests.support.making import a_study, a_trial, planned

from ktrial.analysis.errors import AnalysisUsageError
from ktrial.experiment.stored_trials import Difference, differences, drawn_trial, trial_with_key
from ktrial.model.trial import Outcome, Provenance, WorkloadFailure
from ktrial.model.workload import Mode

TRIALS = tuple(a_trial(planned(number=number)) for number in range(8))


def test_the_seed_draws_the_trial() -> None:
    drawn = [drawn_trial(a_study(), TRIALS, seed) for seed in range(20)]
    assert drawn == [drawn_trial(a_study(), TRIALS[::-1], seed) for seed in range(20)]
    assert len({trial.planned.key for trial in drawn}) > 4


def test_only_trials_that_completed_are_run_again() -> None:
    failed = tuple(trial.model_copy(update={"outcome": Outcome.PANICKED}) for trial in TRIALS[1:])
    assert {drawn_trial(a_study(), (TRIALS[0], *failed), seed).planned.key for seed in range(9)} == {
        TRIALS[0].planned.key
    }
    with pytest.raises(AnalysisUsageError, match="has no trial that completed: there is"):
        drawn_trial(a_study(), failed, 1)


def test_what_was_measured_in_real_time_is_refused() -> None:
    timed = [sample.model_copy(update={"mode": Mode.TIMED}) for sample in TRIALS[0].samples]
    with pytest.raises(AnalysisUsageError, match="was measured in real time"):
        drawn_trial(a_study(), (TRIALS[0].model_copy(update={"samples": tuple(timed)}),), 1)


def test_the_last_digit_counts_and_what_was_executed_comes_first() -> None:
    before = TRIALS[0].model_copy(update={"provenance": Provenance(executed={"image": "a"})})
    assert differences(before, before) == ()
    sample = before.samples[0]
    changed = sample.model_copy(update={"value": sample.value + 2**-10})
    repeated = before.model_copy(
        update={
            "samples": (changed, *before.samples[1:]),
            "provenance": Provenance(executed={"image": "b"}),
        }
    )
    first, second = differences(before, repeated)
    assert first == Difference("executed: image", "a", "b")
    assert second.fact == f"{sample.workload}: {sample.metric}"


def test_a_trial_is_named_by_its_key_however_it_ended() -> None:
    failed = TRIALS[3].model_copy(update={"outcome": Outcome.PANICKED, "samples": ()})
    key = failed.planned.key
    assert trial_with_key(a_study(), (*TRIALS[:3], failed), key) is failed
    with pytest.raises(AnalysisUsageError, match=f"has no trial {key}x"):
        trial_with_key(a_study(), (failed,), f"{key}x")


def test_a_trial_of_which_one_workload_failed_may_be_run_again() -> None:
    failure = WorkloadFailure(workload="pipe", outcome=Outcome.PANICKED, reason="pipe: it fell over")
    partly = TRIALS[0].model_copy(
        update={
            "outcome": Outcome.PANICKED,
            "provenance": TRIALS[0].provenance.model_copy(update={"failures": (failure,)}),
        }
    )
    assert drawn_trial(a_study(), (partly,), 0) == partly
