"""Studies in real time: blocks until every comparison is decided, and no more."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.making import a_study
from tests.support.runs_of_tests import at_night
from tests.support.scripted import ScriptedMachine, ends, scripted_resources

from ktrial.analysis import interim
from ktrial.experiment.observer import Observer
from ktrial.experiment.session import run
from ktrial.model.base import digest
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.machine import Boot
from ktrial.model.study import Stopping, Study, StudyRecord, Timing
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import Mode
from ktrial.store.store import Store, open_store
from ktrial.target import Run, StepResult

BASELINE, OTHER = "debian:6.1", "debian:6.12"


def noisy(effect: float, sd: float = 0.01) -> Callable[[Boot, Run], StepResult]:
    """Numbers around 1000 with this relative standard deviation; on the other kernel `effect` more."""

    def answer(boot: Boot, run: Run) -> StepResult:
        drawn = random.Random(digest([boot.kernel.name, run.argv])).gauss(0.0, sd)
        mean = 1000 * (1 + effect * (boot.kernel.name == OTHER))
        return StepResult(step=0, do="run", exit=0, stdout=str(mean * (1 + drawn)))

    return answer


def study(**timing: object) -> Study:
    return a_study(workloads=("fork",), timing=Timing.model_validate(timing))


def run_on(store: Store, which: Study, answer: Callable[[Boot, Run], StepResult]) -> StudyRecord:
    machine = ScriptedMachine(answer, mode=Mode.TIMED)
    return run(which, store=store, machine=machine, resources=scripted_resources(), observer=Observer())


def only(record: StudyRecord) -> Comparison:
    (comparison,) = record.result.comparisons
    return comparison


def blocks(record: StudyRecord) -> int:
    return 1 + max(trial.planned.block for trial in record.trials)


def test_a_large_effect_is_decided_at_the_first_look(store: Store) -> None:
    record = run_on(store, study(), noisy(0.50))
    comparison = only(record)
    assert (comparison.verdict, comparison.mode, blocks(record)) == (Verdict.WORSE, Mode.TIMED, 6)
    assert comparison.low is not None
    assert comparison.high is not None
    assert comparison.low < 1.50 < comparison.high
    assert len(record.trials) == record.planned == 12
    kinds = {warning.kind for warning in record.result.warnings}
    assert "early-stopping" in kinds, "an effect that stopped a study looks larger than it is"


def test_no_effect_is_equivalent_and_noise_without_end_is_inconclusive(store: Store) -> None:
    quiet = run_on(store, study(), noisy(0.0, sd=0.004))
    assert only(quiet).verdict is Verdict.EQUIVALENT
    assert blocks(quiet) in interim.design_of(quiet.study).looks
    loud = run_on(store, study(blocks=10), noisy(0.0, sd=0.2))
    assert only(loud).verdict is Verdict.INCONCLUSIVE
    assert blocks(loud) == 10


def test_in_every_block_each_treatment_runs_once_and_the_order_is_drawn(store: Store) -> None:
    record = run_on(store, study(blocks=20), noisy(0.0, sd=0.2))
    orders = set()
    for block in range(20):
        of_block = [trial for trial in record.trials if trial.planned.block == block]
        labels = [trial.planned.treatment.label for trial in of_block]
        assert sorted(labels) == [BASELINE, OTHER]
        assert len({trial.planned.perturbation.number for trial in of_block}) == 1
        orders.add(tuple(labels))
    assert len(orders) == 2


class Interrupting(Observer):
    """Stops the run after a number of trials."""

    def __init__(self, after: int) -> None:
        self.left = after

    def trial_finished(self, *_: object) -> None:
        self.left -= 1
        if not self.left:
            raise RuntimeError("the host is gone")


@pytest.mark.parametrize("after", [at_night(1), 5, at_night(12), 13])
def test_an_interrupted_study_ends_as_if_it_had_not_been(tmp_path: Path, after: int) -> None:
    which, answer = study(), noisy(0.015)
    with open_store(tmp_path / "whole.db") as store:
        complete = run_on(store, which, answer)
    with open_store(tmp_path / "parts.db") as store:
        machine = ScriptedMachine(answer, mode=Mode.TIMED)
        with pytest.raises(RuntimeError):
            run(
                which,
                store=store,
                machine=machine,
                resources=scripted_resources(),
                observer=Interrupting(after),
            )
        parts = run_on(store, which, answer)
    assert parts.result == complete.result
    assert [trial.planned.key for trial in parts.trials] == [trial.planned.key for trial in complete.trials]


def test_a_finished_study_runs_nothing_more(store: Store) -> None:
    first = run_on(store, study(), noisy(0.10))
    machine = ScriptedMachine(noisy(0.10), mode=Mode.TIMED)
    again = run(study(), store=store, machine=machine, resources=scripted_resources())
    assert not machine.programs
    assert again == first


def test_a_spent_budget_ends_the_study_with_what_is_there(store: Store) -> None:
    machine = ScriptedMachine(noisy(0.0, sd=0.2), mode=Mode.TIMED, seconds=0.02)
    which = study(budget_seconds=0.25)
    record = run(which, store=store, machine=machine, resources=scripted_resources())
    assert only(record).verdict is Verdict.INCONCLUSIVE
    assert blocks(record) < 20
    assert interim.InterimData(which, record.trials).budget_is_spent


def test_a_fixed_number_of_blocks_is_run_to_its_end(store: Store) -> None:
    record = run_on(store, study(stopping=Stopping.FIXED, blocks=8), noisy(0.10))
    assert (blocks(record), only(record).verdict) == (8, Verdict.WORSE)
    assert not [warning for warning in record.result.warnings if warning.kind == "early-stopping"]


def test_an_open_ended_study_looks_after_every_block(store: Store) -> None:
    record = run_on(store, study(stopping=Stopping.OPEN_ENDED, blocks=200), noisy(0.06, sd=0.01))
    assert only(record).verdict is Verdict.WORSE
    assert 3 <= blocks(record) < 15


def failing(boot: Boot, step: Run) -> StepResult:
    if boot.kernel.name == OTHER:
        raise ends(Outcome.PANICKED, "Fatal exception")
    return noisy(0.0)(boot, step)


def test_a_treatment_that_never_completes_is_given_up(store: Store) -> None:
    record = run_on(store, study(), failing)
    comparison = only(record)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert "3 of 3 trials panicked" in comparison.reason
    assert len(record.trials) == 2 * interim.GIVEN_UP_AFTER


def test_a_single_failure_leaves_its_block_out(store: Store) -> None:
    def once(boot: Boot, step: Run) -> StepResult:
        if boot.kernel.name == OTHER and step.argv[1] == "2":
            raise ends(Outcome.HUNG, "no answer")
        return noisy(0.10)(boot, step)

    record = run_on(store, study(), once)
    assert only(record).verdict is Verdict.WORSE
    assert [trial.outcome for trial in record.trials].count(Outcome.HUNG) == 1
    assert "failed-trials" in {warning.kind for warning in record.result.warnings}


@dataclass
class Looking(Observer):
    """Keeps what it is told about looks."""

    looks: list[tuple[int, int]] = field(default_factory=list)

    def blocks_wanted(self, ended: int, target: int, comparisons: object) -> None:
        self.looks.append((ended, target))


def test_the_observer_is_told_of_every_block(store: Store) -> None:
    looking = Looking()
    machine = ScriptedMachine(noisy(0.0, sd=0.2), mode=Mode.TIMED)
    run(study(blocks=12), store=store, machine=machine, resources=scripted_resources(), observer=looking)
    assert looking.looks == [
        *[(ended, 6) for ended in range(6)],
        *[(ended, 10) for ended in range(6, 10)],
        *[(ended, 12) for ended in range(10, 12)],
    ]


@dataclass
class Watching(Observer):
    """Keeps the verdicts so far, each time that they are made anew."""

    seen: list[object] = field(default_factory=list)

    def blocks_wanted(self, ended: int, target: int, comparisons: object) -> None:
        if comparisons and not any(comparisons is comparison for comparison in self.seen):
            self.seen.append(comparisons)


def test_trials_are_read_once_and_verdicts_so_far_are_made_ever_more_seldom(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings: list[int] = []
    read = store.trials

    def reading(number: int) -> tuple[Trial, ...]:
        readings.append(number)
        return read(number)

    monkeypatch.setattr(store, "trials", reading)
    watching = Watching()
    machine = ScriptedMachine(noisy(0.0, sd=0.2), mode=Mode.TIMED)
    fixed = study(blocks=30, stopping=Stopping.FIXED)
    record = run(fixed, store=store, machine=machine, resources=scripted_resources(), observer=watching)
    assert (blocks(record), len(record.trials)) == (30, 60)
    assert len(readings) <= 2, "of 30 blocks each read all trials of those before"
    assert 11 <= len(watching.seen) <= 22


def test_what_another_has_stored_meanwhile_is_not_overlooked(store: Store) -> None:
    """A second ktrial on the same study: its trials count, and are not run again."""
    fixed = study(blocks=8, stopping=Stopping.FIXED)

    @dataclass
    class Helped(Observer):
        helped: bool = False

        def blocks_wanted(self, ended: int, target: int, comparisons: object) -> None:
            if ended == 4 and not self.helped:
                self.helped = True
                run_on(store, fixed, noisy(0.0))

    machine = ScriptedMachine(noisy(0.0), mode=Mode.TIMED)
    record = run(fixed, store=store, machine=machine, resources=scripted_resources(), observer=Helped())
    assert len(record.trials) == len({trial.planned.key for trial in record.trials}) == 16
