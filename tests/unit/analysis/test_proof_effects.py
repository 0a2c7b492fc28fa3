"""What trials with one thing taken back say: its part of the difference, or why there is no number."""

from datetime import UTC, datetime

import pytest
from tests.support.making import a_sample, a_study, a_trial, planned

from ktrial.analysis.attribution import proof
from ktrial.analysis.attribution.proof import Counts, effect_of, helpful
from ktrial.analysis.errors import NotCounted
from ktrial.model.attribution import Candidate, CauseKind, ProofSide, Status, Tried
from ktrial.model.comparison import Result
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import STRING_BYTES, Mode

CANDIDATE = Candidate(name="HRTICK", kind=CauseKind.FEATURE, target="features", before="off", after="on")
TREATMENT = planned().treatment
ENDS = {ProofSide.FROM: (1000.0, 1010.0), ProofSide.TO: (1500.0, 1520.0)}


def counted(number: int, *means: float | None) -> Trial:
    """A trial with so many counts of instructions, of which the median is 7."""
    samples = tuple(a_sample(value=7.0, mean=mean, mode=Mode.EXACT_PLUGIN) for mean in means)
    return a_trial(planned(number=number), samples=samples)


def counts_of(*trials: Trial) -> Counts:
    record = StudyRecord(
        id=1,
        study=a_study(),
        study_digest="",
        created=datetime(2026, 11, 25, tzinfo=UTC),
        planned=len(trials),
        trials=trials,
        result=Result(study="quick", question="", answer="", comparisons=()),
    )
    return Counts(record, "fork")


def judged(*means: float, control: tuple[float, ...] = (1.0, 1.0), side: ProofSide = ProofSide.TO) -> Tried:
    trials = [counted(number, mean) for number, mean in enumerate(means)]
    return proof.tested(CANDIDATE, side, counts_of(*trials), TREATMENT, ENDS, control)


def test_an_effect_is_what_is_gone_in_the_second_and_what_has_come_in_the_first() -> None:
    assert effect_of(ProofSide.TO, (1400.0, 1500.0), ENDS) == (100.0, 20.0)
    assert effect_of(ProofSide.FROM, (1100.0, 1020.0), ENDS) == (100.0, 10.0)


def test_counts_are_means_in_the_order_of_perturbations_and_medians_where_there_is_no_mean() -> None:
    counts = counts_of(counted(1, 12.0), counted(0, 11.0), counted(2, None))
    assert counts.values(TREATMENT) == (11.0, 12.0, 7.0)
    assert [trial.planned.perturbation.number for trial in counts.trials(TREATMENT)] == [0, 1, 2]


def test_only_a_count_of_instructions_by_plugin_counts() -> None:
    wrong = (
        a_sample(value=1.0, mode=Mode.EXACT_CLOCK),
        a_sample(value=2.0, mode=Mode.EXACT_PLUGIN, unit="cycles"),
        a_sample("pipe", 3.0, mode=Mode.EXACT_PLUGIN),
        a_sample(value=4.0, mode=Mode.EXACT_PLUGIN, metric=STRING_BYTES.name),
    )
    right = a_sample(value=5.0, mean=5.5, mode=Mode.EXACT_PLUGIN)
    assert counts_of(a_trial(samples=(*wrong, right))).values(TREATMENT) == (5.5,)
    with pytest.raises(NotCounted, match="it has no metric that is a count of instructions"):
        counts_of(a_trial(samples=wrong)).values(TREATMENT)


def test_a_treatment_without_trials_or_with_one_that_ended_is_told_so() -> None:
    with pytest.raises(NotCounted) as nothing:
        counts_of().values(TREATMENT)
    assert "ended as" not in nothing.value.message
    panicked = a_trial(planned(number=1), outcome=Outcome.PANICKED, reason="no init")
    with pytest.raises(NotCounted, match="a trial of it ended as panicked: no init"):
        counts_of(counted(0, 1.0), panicked).values(TREATMENT)


@pytest.mark.parametrize(
    ("outcome", "status", "reason"),
    [
        (Outcome.REFUSED, Status.REFUSED, "EINVAL"),
        (Outcome.PANICKED, Status.FAILED, "panicked: EINVAL"),
    ],
)
def test_what_a_kernel_refuses_is_told_from_what_brings_it_down(
    outcome: Outcome, status: Status, reason: str
) -> None:
    counts = counts_of(counted(0, 1.0), a_trial(planned(number=1), outcome=outcome, reason="EINVAL"))
    result = proof.tested(CANDIDATE, ProofSide.TO, counts, TREATMENT, ENDS, ())
    assert (result.status, result.reason, result.effects, result.side) == (status, reason, (), ProofSide.TO)


@pytest.mark.parametrize(
    ("means", "status"),
    [
        ((1500.0, 1520.0), Status.NOTHING),
        ((1499.0, 1519.0), Status.NOTHING),  # as the control
        ((1490.0, 1525.0), Status.UNCERTAIN),
        ((1490.0, 1520.0), Status.UNCERTAIN),  # nothing under one perturbation is no direction
        ((1490.0, 1519.0), Status.UNCERTAIN),  # no further than the control
        ((1490.0, 1518.0), Status.MEASURED),
        ((1510.0, 1522.0), Status.MEASURED),
        ((1510.0, 1521.0), Status.UNCERTAIN),
    ],
)
def test_what_moves_the_count_further_than_a_control_in_one_direction_is_measured(
    means: tuple[float, ...], status: Status
) -> None:
    assert judged(*means).status is status


def test_each_judgement_says_why() -> None:
    assert judged(1500.0, 1520.0).reason.startswith("not one instruction more or less")
    assert judged(1490.0, 1525.0).reason == "it does not go in one direction under all perturbations"
    assert judged(1490.0, 1519.0).reason == (
        "a scheduler feature that changes nothing moves the count as far"
    )
    assert judged(1490.0, 1518.0).reason == ""
    assert judged(1499.0, 1519.0, control=()).status is Status.MEASURED, "there is no control to be as far as"


def test_those_help_that_have_a_part_of_the_difference_and_not_of_its_opposite() -> None:
    part, opposite = judged(1400.0, 1500.0), judged(1600.0, 1540.0)
    uncertain = judged(1490.0, 1525.0)
    assert helpful((opposite, part, uncertain), 500.0) == (part,)
    assert helpful((opposite, part, uncertain), -500.0) == (opposite,)
    assert helpful((part,), 0.0) == ()
