"""Trials in which a kernel fails or complains name their seed, and what runs them again."""

import pytest

from ktrial.experiment.trial import complaints_in, replays
from ktrial.model.design import Perturbation, PlannedTrial, Treatment
from ktrial.model.trial import Outcome

PLANNED = PlannedTrial(
    order=0,
    block=7,
    treatment=Treatment(levels={"kernel": "debian:6.1"}),
    perturbation=Perturbation(number=7, layout_seed=4711),
)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("[    1.234567] BUG: KCSAN: data-race in a / b", "BUG: KCSAN: data-race in a / b"),
        (
            "[ 12.0][   T12] WARNING: CPU: 1 PID: 12 at mm/x.c:3 f+0x1/0x2",
            "WARNING: CPU: 1 PID: 12 at mm/x.c:3 f+0x1/0x2",
        ),
        (
            "watchdog: BUG: soft lockup - CPU#1 stuck for 22s!",
            "watchdog: BUG: soft lockup - CPU#1 stuck for 22s!",
        ),
        (
            "rcu: INFO: rcu_sched self-detected stall on CPU",
            "rcu: INFO: rcu_sched self-detected stall on CPU",
        ),
        (
            "INFO: task x:12 blocked for more than 120 seconds.",
            "INFO: task x:12 blocked for more than 120 seconds.",
        ),
        ("[    0.5] no warning here, and no bug", ""),
    ],
)
def test_complaints_are_told_without_their_time(line: str, complaint: str) -> None:
    assert complaints_in(f"{line}\n{line}\n") == ((complaint,) if complaint else ())


def test_a_failed_trial_names_its_seed_and_its_command() -> None:
    (warning,) = replays(PLANNED, Outcome.PANICKED, ())
    assert f"trial {PLANNED.key} (debian:6.1), seed 4711: it ended as panicked" in warning.text
    assert warning.advice.endswith(f"ktrial verify STUDY --trial {PLANNED.key}")


def test_a_warning_of_the_kernel_is_one_of_a_trial_that_completed() -> None:
    (warning,) = replays(PLANNED, Outcome.COMPLETED, ("WARNING: a", "WARNING: b"))
    assert "the kernel said: WARNING: a" in warning.text
    assert replays(PLANNED, Outcome.COMPLETED, ()) == ()
