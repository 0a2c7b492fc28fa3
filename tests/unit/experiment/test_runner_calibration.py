"""A/A studies and confirmations: what is run, again, and what it says."""

import pytest
from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, scripted_resources
from tests.unit.experiment.test_runner_timed import Interrupting, noisy

from ktrial.analysis.calibration import (
    calibration_of,
    calibration_study,
    newest_calibration,
    next_calibration,
)
from ktrial.analysis.errors import AnalysisError, AnalysisUsageError
from ktrial.experiment.session import run
from ktrial.experiment.single_kernel import confirmation_of
from ktrial.model.comparison import Estimand
from ktrial.model.design import FactorKind
from ktrial.model.study import MachineSettings, Stopping, Study, StudyRecord, Timing, plan
from ktrial.model.workload import Mode
from ktrial.store.store import Store


def aa_study(blocks: int = 12) -> Study:
    machine = MachineSettings(kind="host", kernel="debian:6.1")
    return calibration_study(a_study(workloads=("fork",), machine=machine, timing=Timing()), blocks)


def run_on(store: Store, study: Study) -> StudyRecord:
    machine = ScriptedMachine(noisy(0.0, sd=0.01), mode=Mode.TIMED)
    return run(study, store=store, machine=machine, resources=scripted_resources())


def test_a_calibration_changes_nothing_but_names() -> None:
    study = aa_study()
    (factor,) = study.factors
    assert (factor.kind, factor.levels) == (FactorKind.NOTHING, ("A", "B"))
    assert study.timing == Timing(blocks=12, stopping=Stopping.FIXED)
    assert len(plan(study).trials) == 24


@pytest.mark.nightly
def test_it_tells_the_noise_and_what_can_be_found_in_it(store: Store) -> None:
    # The scripted numbers are those of the command line: both arms get the same noise, unless seeds differ.
    record = run_on(store, aa_study())
    assert {trial.planned.treatment.label for trial in record.trials} == {"arm=A", "arm=B"}
    calibration = calibration_of(record)
    (metric,) = calibration.metrics
    assert (metric.workload, metric.blocks) == ("fork", 12)
    assert metric.ratio_spread == 0.0
    assert newest_calibration(store, "host") == calibration


def test_it_goes_on_where_it_was_interrupted_and_is_new_otherwise(store: Store) -> None:
    study = aa_study()
    with pytest.raises(RuntimeError):
        run(
            study,
            store=store,
            machine=ScriptedMachine(noisy(0.0), mode=Mode.TIMED),
            resources=scripted_resources(),
            observer=Interrupting(5),
        )
    assert next_calibration(store, aa_study()) == study
    run_on(store, study)
    fresh = next_calibration(store, aa_study())
    assert fresh.seed != study.seed
    assert fresh.model_copy(update={"seed": study.seed}) == study


def test_without_enough_blocks_there_is_no_calibration(store: Store) -> None:
    with pytest.raises(AnalysisError, match="host has not been calibrated"):
        newest_calibration(store, "host")
    record = run_on(store, aa_study(blocks=5))
    with pytest.raises(AnalysisError, match="at least 10"):
        calibration_of(record)


def test_a_confirmation_is_fresh_and_fixed() -> None:
    study = a_study(timing=Timing(alpha=0.01, budget_seconds=60))
    confirmation = confirmation_of(study, 20)
    assert confirmation.seed != study.seed
    assert confirmation.name == "quick-confirmation"
    assert confirmation.timing == Timing(blocks=20, stopping=Stopping.FIXED, alpha=0.01, budget_seconds=60)
    assert confirmation.factors == study.factors


def test_a_confirmation_has_the_blocks_that_its_verdicts_take() -> None:
    study = a_study(timing=Timing(estimand=Estimand.TOTAL))
    assert confirmation_of(study, 30).timing == Timing(
        estimand=Estimand.TOTAL, blocks=30, stopping=Stopping.FIXED
    )
    with pytest.raises(AnalysisUsageError, match="its verdicts take 30 blocks at least, and 20 are too few"):
        confirmation_of(study, 20)


def test_exact_numbers_need_no_confirmation() -> None:
    with pytest.raises(AnalysisUsageError, match="the same numbers to the last digit"):
        confirmation_of(a_study(), 20)
