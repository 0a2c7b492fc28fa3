"""Trials in which a kernel fails or complains name their seed, and what runs them again."""

from ktrial.experiment.trial import replays
from ktrial.model.design import Perturbation, PlannedTrial, Treatment
from ktrial.model.trial import Outcome

PLANNED = PlannedTrial(
    order=0,
    block=7,
    treatment=Treatment(levels={"kernel": "debian:6.1"}),
    perturbation=Perturbation(number=7, layout_seed=4711),
)


def test_a_failed_trial_names_its_seed_and_its_command() -> None:
    (warning,) = replays(PLANNED, Outcome.PANICKED, ())
    assert f"trial {PLANNED.key} (debian:6.1), seed 4711: it ended as panicked" in warning.text
    assert warning.advice.endswith(f"ktrial replicate STUDY --trial {PLANNED.key}")


def test_a_warning_of_the_kernel_is_one_of_a_trial_that_completed() -> None:
    (warning,) = replays(PLANNED, Outcome.COMPLETED, ("WARNING: a", "WARNING: b"))
    assert "the kernel said: WARNING: a" in warning.text
    assert replays(PLANNED, Outcome.COMPLETED, ()) == ()
