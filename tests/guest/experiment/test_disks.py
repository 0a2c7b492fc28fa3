"""A disk inside the guest: it is there, it is slow where it is to be, and the same twice."""

from pathlib import Path

import pytest

from ktrial.experiment import guest_storage
from ktrial.experiment.session import run
from ktrial.model.comparison import Verdict
from ktrial.model.design import Factor, FactorKind
from ktrial.model.study import Disk, MachineSettings, Study, StudyRecord
from ktrial.model.trial import Outcome
from ktrial.model.workload import CountedBy, WorkloadUse
from ktrial.store.store import open_store
from ktrial.target import StepResult
from ktrial.target.errors import GuestError

pytestmark = pytest.mark.guest


def a_study(kernel: str, disk: Disk, ratios: tuple[int, int] = (20, 4), size: int = 48) -> Study:
    factor = Factor(
        name="vm.dirty_ratio",
        kind=FactorKind.SETTING,
        levels=ratios,
        baseline=ratios[0],
        target="vm.dirty_ratio",
    )
    return Study(
        name="disk",
        machine=MachineSettings(kernel=kernel, disk=disk),
        factors=(factor,),
        workloads=(WorkloadUse(name="aio-stress", parameters={"size": size, "passes": 1, "path": "/mnt"}),),
        perturbations=1,
    )


def run_in(directory: Path, study: Study) -> StudyRecord:
    with open_store(directory / "trials.db") as store:
        return run(study, store=store)


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", ["debian:5.10", "debian:6.12"])
def test_dirty_ratio_is_a_positive_control(tmp_path: Path, kernel: str) -> None:
    """Fewer dirty pages allowed: the writer waits for the disk, which has 80 MiB a second."""
    record = run_in(tmp_path, a_study(kernel, Disk(bandwidth_mib=80, latency_us=100)))
    assert {trial.outcome for trial in record.trials} == {Outcome.COMPLETED}
    by_metric = {one.metric: one for one in record.result.comparisons}
    rate = by_metric["rate before fsync"]
    assert rate.verdict is Verdict.WORSE
    assert rate.ratio is not None
    assert rate.ratio < 0.8
    flushed = by_metric["rate with fsync"].baseline_value
    assert flushed is not None
    assert flushed < 120, "80 MiB a second, and what the last burst brings"


@pytest.mark.nightly
def test_a_disk_as_fast_as_memory_gives_the_same_numbers_twice(tmp_path: Path) -> None:
    study = a_study("debian:6.12", Disk(), size=4)
    # Counted by the clock: to ask a guest for its modules' symbols takes longer than all else.
    machine = study.machine.model_copy(update={"count": CountedBy.CLOCK})
    alone = study.model_copy(update={"factors": (), "machine": machine})
    (once,), (again,) = (run_in(tmp_path / name, alone).trials for name in ("once", "again"))
    assert (once.outcome, again.outcome) == (Outcome.COMPLETED, Outcome.COMPLETED)
    assert once.samples == again.samples


def test_what_keeps_a_disk_from_being_made_is_said() -> None:
    failed = StepResult(step=3, do="run", exit=1, stderr="mke2fs: invalid blocks count")
    with pytest.raises(GuestError, match="mke2fs ended with 1: mke2fs: invalid blocks count"):
        guest_storage.check((failed,), Disk())
