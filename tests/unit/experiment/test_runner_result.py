"""A study's result follows from its trials alone."""

import random
from pathlib import Path

import pytest
from tests.support.making import a_sample, a_study, a_trial

from ktrial.analysis.result import load_record, result
from ktrial.model.comparison import Comparison, Result, Verdict
from ktrial.model.design import Factor, FactorKind, Perturbation
from ktrial.model.study import Study, perturbation, plan
from ktrial.model.trial import Outcome, Provenance, Trial
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Direction, Metric, Mode, WorkloadUse
from ktrial.store.store import open_store

PROVENANCE = {"machine": "exact", "qemu": "7.2.22", "cpu_model": "max", "kernel_digest": "d"}


def trials_of(study: Study, values: dict[str, float], growth: float = 1.1) -> list[Trial]:
    """All trials; the treatments that are not the baseline give values `growth` times as large."""
    planned = plan(study)
    trials_made = []
    for trial in planned.trials:
        factor = 1.0 if trial.treatment == planned.baseline else growth
        provenance = Provenance.model_validate(PROVENANCE | {"kernel_digest": trial.treatment.key})
        scaled = {name: value * factor for name, value in values.items()}
        trials_made.append(a_trial(trial, scaled, provenance=provenance))
    return trials_made


def answered(study: Study, trials: list[Trial]) -> Result:
    return result(
        study, trials, described=lambda use: (Metric(name="x", unit="y", direction=Direction.LOWER),)
    )


def only(answer: Result) -> Comparison:
    (comparison,) = answer.comparisons
    return comparison


def changed(trials: list[Trial], kernel: str, number: int, **changes: object) -> list[Trial]:
    """The trials, with one of them changed."""
    return [
        trial.model_copy(update=changes)
        if (trial.planned.treatment.label, trial.planned.perturbation.number) == (kernel, number)
        else trial
        for trial in trials
    ]


def kinds(answer: Result) -> list[WarningKind]:
    return [warning.kind for warning in answer.warnings]


FORK = a_study(workloads=("fork",))
TRIALS = trials_of(FORK, {"fork": 1000.0})


def test_comparisons_are_ordered_by_workload_then_metric_then_treatment() -> None:
    study = a_study(kernels=("debian:6.1", "debian:7.2", "debian:6.12"), workloads=("pipe", "fork"))
    trials = [
        trial.model_copy(
            update={"samples": (*trial.samples, a_sample("fork", 5.0, metric="faults", unit="faults"))}
        )
        for trial in trials_of(study, {"fork": 1000.0, "pipe": 500.0})
    ]
    seen = [
        (comparison.workload, comparison.metric, comparison.treatment)
        for comparison in answered(study, trials).comparisons
    ]
    assert seen == [
        ("pipe", "instructions", "debian:7.2"),
        ("pipe", "instructions", "debian:6.12"),
        ("fork", "instructions", "debian:7.2"),
        ("fork", "instructions", "debian:6.12"),
        ("fork", "faults", "debian:7.2"),
        ("fork", "faults", "debian:6.12"),
    ]


def test_the_result_does_not_depend_on_the_order_in_which_trials_ended() -> None:
    study = a_study(kernels=("debian:6.1", "debian:7.2", "debian:6.12"))
    trials = trials_of(study, {"fork": 1000.0, "pipe": 500.3})
    expected = answered(study, trials).model_dump_json()
    for seed in range(10):
        shuffled = random.Random(seed).sample(trials, len(trials))
        assert answered(study, shuffled).model_dump_json() == expected


def test_the_result_does_not_depend_on_when_and_how_long_trials_ran() -> None:
    later = [
        trial.model_copy(update={"seconds": 99.0, "started": trial.started.replace(year=2031)})
        for trial in TRIALS
    ]
    assert answered(FORK, later) == answered(FORK, TRIALS)


def test_a_change_beyond_margin_and_spread_has_its_verdict() -> None:
    seen = only(answered(FORK, TRIALS))
    assert (seen.verdict, seen.mode, seen.reason) == (Verdict.WORSE, Mode.EXACT_CLOCK, "")
    assert seen.baseline_value == 1000.0
    assert seen.value == pytest.approx(1100.0)
    assert seen.ratio == seen.low == seen.high == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("outcome", "reason", "said"),
    [
        (Outcome.PANICKED, "oops", "debian:6.12: 1 of 3 trials panicked (oops)"),
        (Outcome.HUNG, "", "debian:6.12: 1 of 3 trials hung"),
        (Outcome.REFUSED, "EINVAL", "debian:6.12: 1 of 3 trials had a setting refused (EINVAL)"),
        (
            Outcome.KERNEL_MISSING,
            "no network.",
            "debian:6.12: 1 of 3 trials had no kernel (it could not be had) (no network)",
        ),
    ],
)
def test_a_failed_trial_leaves_no_verdict_but_its_reason(outcome: Outcome, reason: str, said: str) -> None:
    failed = changed(TRIALS, "debian:6.12", 1, outcome=outcome, reason=reason, samples=())
    answer = answered(FORK, failed)
    assert (only(answer).verdict, only(answer).reason) == (Verdict.INCONCLUSIVE, said)
    assert only(answer).value == pytest.approx(1100.0), "what is there is shown"
    assert only(answer).ratio is None, "what cannot be paired is not divided"
    assert kinds(answer) == [WarningKind.FAILED_TRIALS]
    assert answer.warnings[0].text == said
    assert "ktrial show quick --console" in answer.warnings[0].advice


def test_a_failed_workload_leaves_the_others_their_verdicts() -> None:
    study = a_study()
    trials = trials_of(study, {"fork": 1000.0, "pipe": 500.0})
    fork_only = [
        trial.model_copy(
            update={
                "outcome": Outcome.WORKLOAD_FAILED,
                "reason": "short read",
                "samples": tuple(sample for sample in trial.samples if sample.workload == "fork"),
            }
        )
        for trial in trials
    ]
    fork, pipe = answered(study, fork_only).comparisons
    assert (fork.workload, fork.verdict) == ("fork", Verdict.WORSE)
    assert (pipe.workload, pipe.verdict) == ("pipe", Verdict.INCONCLUSIVE)
    assert pipe.reason == "debian:6.1: 3 of 3 trials had a workload that failed (short read)"


def test_different_failures_are_counted_apart() -> None:
    failed = changed(TRIALS, "debian:6.12", 1, outcome=Outcome.PANICKED, reason="oops", samples=())
    failed = changed(failed, "debian:6.12", 2, outcome=Outcome.HUNG, reason="", samples=())
    failed = changed(failed, "debian:6.12", 0, outcome=Outcome.PANICKED, reason="oops", samples=())
    assert only(answered(FORK, failed)).reason == (
        "debian:6.12: 2 of 3 trials panicked (oops), 1 more failed otherwise"
    )


def test_trials_that_have_not_run_yet_leave_no_verdict() -> None:
    seen = only(answered(FORK, [trial for trial in TRIALS if trial.planned.order < 5]))
    assert seen.verdict is Verdict.INCONCLUSIVE
    assert "1 of 3 trials have not run yet" in seen.reason


def test_a_study_without_any_trial_still_lists_what_it_will_compare() -> None:
    answer = answered(FORK, [])
    seen = only(answer)
    assert (seen.workload, seen.metric, seen.unit) == ("fork", "x", "y")
    assert (seen.verdict, seen.baseline_value, seen.value) == (Verdict.INCONCLUSIVE, None, None)
    assert seen.reason == "debian:6.1: 3 of 3 trials have not run yet"
    assert answer.answer.startswith("By instructions counted, not time: it is undecided whether")


def test_a_workload_that_gives_no_number_is_warned_about() -> None:
    study = a_study(workloads=("fork", "silent"))
    answer = answered(study, trials_of(study, {"fork": 1000.0}))
    assert kinds(answer) == [WarningKind.MISSING_WORKLOAD]
    assert answer.comparisons[1].reason == "debian:6.1: silent gave no number in 3 of 3 trials"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"qemu": "10.0.2"}, "the trials ran with a different QEMU build: 10.0.2 and 7.2.22"),
        ({"cpu_model": "host"}, "the trials ran with a different CPU model: host and max"),
    ],
)
def test_numbers_of_different_machines_are_not_compared(change: dict[str, str], reason: str) -> None:
    mixed = [
        trial.model_copy(update={"provenance": trial.provenance.model_copy(update=change)})
        if trial.planned.treatment.label == "debian:6.12"
        else trial
        for trial in TRIALS
    ]
    answer = answered(FORK, mixed)
    assert (only(answer).verdict, only(answer).reason, only(answer).ratio) == (
        Verdict.INCONCLUSIVE,
        reason,
        None,
    )
    assert kinds(answer) == [WarningKind.DIFFERENT_MACHINES]


def test_two_kernels_under_one_name_are_not_mixed() -> None:
    other = TRIALS[0].provenance.model_copy(update={"kernel_digest": "another"})
    answer = answered(FORK, changed(TRIALS, "debian:6.12", 2, provenance=other))
    assert only(answer).verdict is Verdict.INCONCLUSIVE
    assert only(answer).reason.startswith("debian:6.12: its trials ran on different kernels")
    assert kinds(answer) == [WarningKind.DIFFERENT_KERNELS]


def test_numbers_of_different_modes_are_not_compared() -> None:
    mixed = [
        trial.model_copy(update={"samples": (a_sample("fork", 1000.0, mode=Mode.EXACT_PLUGIN),)})
        if trial.planned.treatment.label == "debian:6.12"
        else trial
        for trial in TRIALS
    ]
    seen = only(answered(FORK, mixed))
    assert (seen.verdict, seen.ratio) == (Verdict.INCONCLUSIVE, None)
    assert "counted by the plugin, others read from the guest's clock" in seen.reason
    assert "--count plugin or --count clock" in seen.reason


def test_a_spread_beyond_the_margin_is_warned_about() -> None:
    wide = changed(TRIALS, "debian:6.1", 1, samples=(a_sample("fork", 1100.0),))
    answer = answered(FORK, wide)
    assert kinds(answer) == [WarningKind.WIDE_SPREAD]
    assert (
        "differs by 10 % from one perturbation to another, more than the margin of 1 %"
        in answer.warnings[0].text
    )
    assert only(answer).verdict is Verdict.INCONCLUSIVE


def test_a_spread_that_hinders_no_verdict_is_no_reason_to_warn() -> None:
    wide = changed(TRIALS, "debian:6.1", 1, samples=(a_sample("fork", 1050.0),))
    answer = answered(FORK, wide)
    assert kinds(answer) == []
    assert only(answer).verdict is Verdict.WORSE, (
        "1100 is more than 1 % above the largest of 1000, 1050, 1000"
    )


def test_a_spread_that_both_sides_share_is_no_reason_to_warn() -> None:
    both = changed(TRIALS, "debian:6.1", 1, samples=(a_sample("fork", 1050.0),))
    both = changed(both, "debian:6.12", 1, samples=(a_sample("fork", 1155.0),))
    answer = answered(FORK, both)
    assert kinds(answer) == []
    assert only(answer).verdict is Verdict.WORSE
    assert only(answer).low == pytest.approx(1.1)


def test_numbers_of_different_perturbations_are_not_paired() -> None:
    """A study with another seed: the numbers of its perturbations are the same, and they are others."""
    moved = [changed_by(trial, 1.05) if trial.planned.perturbation.number == 1 else trial for trial in TRIALS]
    assert only(answered(FORK, moved)).verdict is Verdict.WORSE
    changed = [
        with_perturbation(trial, perturbation(99, trial.planned.perturbation.number))
        if trial.planned.treatment.label == "debian:6.12"
        else trial
        for trial in moved
    ]
    seen = only(answered(FORK, changed))
    assert seen.low == pytest.approx(1.1 / 1.05)
    assert seen.high == pytest.approx(1.1 * 1.05)


def changed_by(trial: Trial, factor: float) -> Trial:
    samples = tuple(sample.model_copy(update={"value": sample.value * factor}) for sample in trial.samples)
    return trial.model_copy(update={"samples": samples})


def with_perturbation(trial: Trial, met: Perturbation) -> Trial:
    return trial.model_copy(update={"planned": trial.planned.model_copy(update={"perturbation": met})})


def test_one_perturbation_is_warned_about() -> None:
    study = a_study(workloads=("fork",), perturbations=1)
    answer = answered(study, trials_of(study, {"fork": 1000.0}))
    assert kinds(answer) == [WarningKind.NO_SPREAD]
    assert only(answer).verdict is Verdict.WORSE


def test_warnings_of_trials_are_said_once() -> None:
    warned = [trial.model_copy(update={"warnings": WARNED}) for trial in TRIALS]
    assert answered(FORK, warned).warnings == WARNED


WARNED = answered(a_study(workloads=("fork",), perturbations=1), []).warnings


def test_the_same_workload_with_other_parameters_is_another() -> None:
    uses = (
        WorkloadUse(name="hackbench", parameters={"groups": 1}),
        WorkloadUse(name="hackbench", parameters={"groups": 8}),
    )
    study = a_study(workloads=()).model_copy(update={"workloads": uses})
    answer = answered(study, trials_of(study, {"hackbench(groups=1)": 10.0, "hackbench(groups=8)": 80.0}))
    assert [comparison.workload for comparison in answer.comparisons] == [
        "hackbench(groups=1)",
        "hackbench(groups=8)",
    ]


def test_every_treatment_of_a_factorial_design_is_compared_with_the_one_baseline() -> None:
    swap = Factor(name="swap", kind=FactorKind.SETTING, levels=(0, 60), baseline=60, target="vm.swappiness")
    study = a_study(workloads=("fork",), factors=(swap,))
    answer = answered(study, trials_of(study, {"fork": 1000.0}))
    assert {comparison.baseline for comparison in answer.comparisons} == {"debian:6.1 · swap=60"}
    assert len(answer.comparisons) == 3


def test_a_stored_study_has_the_result_of_its_trials(tmp_path: Path) -> None:
    with open_store(tmp_path / "trials.db") as store:
        study_id = store.study(FORK)
        for trial in reversed(TRIALS):
            store.add_trial(study_id, trial)
        for name in (study_id, str(study_id), "quick"):
            stored = load_record(store, name)
            assert (stored.id, stored.study, stored.planned) == (study_id, FORK, 6)
            assert stored.trials == tuple(TRIALS)
            assert stored.result == answered(FORK, TRIALS)


def test_of_several_workloads_that_failed_each_has_its_own_reason_and_its_own_unit() -> None:
    reason = "Workload fork: it ended with 3; pipe: killed; and left"
    failed = [
        trial.model_copy(update={"outcome": Outcome.WORKLOAD_FAILED, "reason": reason, "samples": ()})
        for trial in TRIALS
    ]
    both = a_study(workloads=("fork", "pipe"))
    wall = (Metric(name="duration", unit="ns", direction=Direction.LOWER),)
    fork, pipe = result(both, failed, lambda _use: wall).comparisons
    assert fork.reason.endswith("(Workload fork: it ended with 3)")
    assert pipe.reason.endswith("(pipe: killed; and left)")
    # The guest's clock counts instructions; a clock of real time does not.
    assert (fork.unit, pipe.unit) == ("instructions", "instructions")
    counted = (Metric(name="fork", unit="instructions", direction=Direction.LOWER),)
    timed = both.model_copy(update={"machine": both.machine.model_copy(update={"kind": "kvm"})})
    assert {comparison.unit for comparison in result(timed, failed, lambda _use: counted).comparisons} == {
        "ns"
    }
