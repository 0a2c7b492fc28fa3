"""Whole studies on real kernels: settings taken and refused, failing kernels, the same numbers twice.

For each change tests/recorded asks of recorded guests what is nightly here.
"""

from pathlib import Path

import pytest

from ktrial.experiment.errors import StudyRefused
from ktrial.experiment.session import run
from ktrial.model.comparison import Verdict
from ktrial.model.design import Factor, FactorKind, LevelValue
from ktrial.model.study import MachineSettings, Study, StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import WorkloadUse
from ktrial.store.store import open_store

pytestmark = pytest.mark.guest


def study(
    kind: FactorKind, target: str, *levels: LevelValue, workload: str = "syscall", perturbations: int = 1
) -> Study:
    factor = Factor(name="it", kind=kind, target=target, levels=levels, baseline=levels[0])
    return Study(
        name="real",
        machine=MachineSettings(kernel="debian:6.1"),
        factors=(factor,),
        workloads=(WorkloadUse(name=workload),),
        perturbations=perturbations,
    )


def ran(tmp_path: Path, wanted: Study, name: str = "trials.db") -> StudyRecord:
    with open_store(tmp_path / name) as store:
        return run(wanted, store=store)


def of_level(record: StudyRecord, level: LevelValue) -> Trial:
    (trial,) = (trial for trial in record.trials if trial.planned.treatment.levels["it"] == level)
    return trial


@pytest.mark.nightly
def test_a_setting_is_made_read_back_and_refused_with_the_kernels_answer(tmp_path: Path) -> None:
    record = ran(tmp_path, study(FactorKind.SETTING, "vm.overcommit_memory", 0, 1, 500))
    assert of_level(record, 0).settings == {"vm.overcommit_memory": "0"}
    assert of_level(record, 1).settings == {"vm.overcommit_memory": "1"}
    refused = of_level(record, 500)
    assert refused.outcome is Outcome.REFUSED
    assert "vm.overcommit_memory = 500 was refused: EINVAL" in refused.reason
    by_treatment = {one.treatment: one for one in record.result.comparisons}
    assert by_treatment["it=1"].verdict is Verdict.EQUIVALENT
    assert by_treatment["it=500"].verdict is Verdict.INCONCLUSIVE
    assert "EINVAL" in by_treatment["it=500"].reason


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "says"), [("vm.no_such_thing", "there is no"), ("kernel.osrelease", "forbidden .EACCES")]
)
def test_a_setting_that_the_kernel_does_not_have_is_refused_before_any_trial(
    tmp_path: Path, name: str, says: str
) -> None:
    with open_store(tmp_path / "trials.db") as store:
        with pytest.raises(StudyRefused, match=says):
            run(study(FactorKind.SETTING, name, 0, 1), store=store)
        assert store.studies() == ()


@pytest.mark.nightly
def test_a_kernel_without_its_init_is_an_outcome_with_its_console(tmp_path: Path) -> None:
    record = ran(tmp_path, study(FactorKind.BOOT, "rdinit", "", "/none"))
    assert of_level(record, "").outcome is Outcome.COMPLETED
    failed = of_level(record, "/none")
    assert failed.outcome in {Outcome.NO_INIT, Outcome.PANICKED}
    assert "panic" in failed.console
    assert failed.provenance.kernel_digest


@pytest.mark.nightly
def test_a_workloads_parameter_is_a_factor_and_counters_are_kept(tmp_path: Path) -> None:
    record = ran(tmp_path, study(FactorKind.PARAMETER, "mmap.pages", 1, 64, workload="mmap"))
    # 64 times the pages: more instructions, and more bytes that are cleared.
    assert [(one.workload, one.verdict) for one in record.result.comparisons] == [("mmap", Verdict.WORSE)] * 2
    faults = {
        level: next(one.delta for one in of_level(record, level).counters if one.name == "vmstat.pgfault")
        for level in (1, 64)
    }
    assert faults[64] > 10 * faults[1]


@pytest.mark.nightly  # for each change: the quick study, in tests/guest/kernels/test_must_hold.py
def test_a_study_has_the_same_comparisons_in_two_stores(tmp_path: Path) -> None:
    wanted = study(FactorKind.MEMORY, "", "512M", "768M", workload="pipe", perturbations=2)
    first, second = ran(tmp_path, wanted, "one.db"), ran(tmp_path, wanted, "other.db")
    assert [one.metric for one in first.result.comparisons][1:] == ["string-bytes"]
    assert first.result.model_dump_json() == second.result.model_dump_json()
