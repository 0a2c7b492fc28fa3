"""Workloads with input and output on a disk in the guest: checked, the same twice, and their causes named."""

import shutil
from pathlib import Path

import pytest

from ktrial import workloads
from ktrial.analysis.store_queries import profile_of
from ktrial.experiment import guest_storage
from ktrial.experiment.explain import stored_explanations
from ktrial.experiment.session import run
from ktrial.machines.errors import MachineToolMissing
from ktrial.model.design import Factor, FactorKind
from ktrial.model.machine import CgroupLimits
from ktrial.model.study import Disk, DiskKind, MachineSettings, Study, StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import CountedBy, WorkloadUse
from ktrial.report.attribution import whys
from ktrial.store.store import open_store

pytestmark = pytest.mark.guest

SMALL: dict[str, dict[str, int | float | str]] = {
    "seq-read": {"size": 4},
    "random-read": {"size": 4, "reads": 200},
    "stream-write": {"size": 4},
    "metadata": {"count": 60},
    "oltp": {"size": 4, "transactions": 20},
    "fileio": {"size": 4, "requests": 60, "sync": 20},
    "file-server": {"small": 64, "medium": 32, "large": 6, "requests": 60},
}
"""Workload → parameters with which it takes little."""
SIZES = ("4 KiB", "32 KiB", "1 MiB")
PERCENTILES = ("p50", "p90", "p99", "p99.9", "max")
METHODS = ("sendfile-nonblocking", "read-write", "splice", "mmap-send")
SLOW_DISK = Disk(latency_us=100, bandwidth_mib=200)


def a_use(name: str, **more: int | float | str) -> WorkloadUse:
    return WorkloadUse(name=name, parameters={"path": "/mnt", "passes": 1, **SMALL[name], **more})


def a_study(*uses: WorkloadUse, kernels: tuple[str, ...], **machine: object) -> Study:
    factor = Factor(name="kernel", kind=FactorKind.KERNEL, levels=kernels, baseline=kernels[0])
    settings = MachineSettings.model_validate({"disk": SLOW_DISK, **machine})
    return Study(name="io", machine=settings, factors=(factor,), workloads=uses, perturbations=1)


def run_in(directory: Path, study: Study) -> StudyRecord:
    with open_store(directory / "trials.db") as store:
        record = run(study, store=store, jobs=1)
    assert {(trial.outcome, trial.reason) for trial in record.trials} == {(Outcome.COMPLETED, "")}
    return record


def values(trial: Trial, workload: str) -> dict[str, float]:
    return {sample.metric: sample.value for sample in trial.samples if sample.workload.startswith(workload)}


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", ["debian:5.10", "debian:7.2"])
def test_every_workload_runs_and_repeats_to_the_last_digit(tmp_path: Path, kernel: str) -> None:
    assert set(SMALL) == set(workloads.DISK)
    uses = (*map(a_use, SMALL), *(a_use("file-server", method=method) for method in METHODS))
    study = a_study(*uses, kernels=(kernel,))
    once, again = (run_in(tmp_path / name, study).trials for name in ("once", "again"))
    assert [trial.samples for trial in once] == [trial.samples for trial in again]
    (trial,) = once
    read = values(trial, "seq-read")
    assert read["read"] == 4096, "KiB, each of them once"
    assert read["average read size"] * read["read requests"] == pytest.approx(4096)
    assert read["latency p50"] < read["latency max"]
    assert read["latency max"] > SLOW_DISK.latency_us
    written = values(trial, "stream-write")
    assert written["written"] >= 4096
    for use in uses:
        if use.name == "file-server":
            served = values(trial, use.label)
            assert served["evictions"] == served["refaults"] == 0, "there is memory for all files"
            # Each file is read at most once: those that nobody asked for in the pass before.
            assert served["read for 4 KiB files"] == 4 * served["misses of 4 KiB files"] > 0
            assert served["read for 32 KiB files"] == 32 * served["misses of 32 KiB files"] > 0
            of_files = sum(served[f"read for {size} files"] for size in SIZES)
            # Beside files, the file system may read a block of its own: 5.10 reads one of 4 KiB.
            assert of_files <= served["read"] <= of_files + 4


@pytest.mark.nightly
def test_with_less_memory_than_files_pages_are_evicted_and_read_again(tmp_path: Path) -> None:
    parameters = {"path": "/mnt", "requests": 300, "passes": 1}
    uses = [WorkloadUse(name="file-server", parameters={**parameters, "memory": limit}) for limit in (0, 24)]
    (trial,) = run_in(tmp_path, a_study(*uses, kernels=("debian:6.12",))).trials
    enough, little = (values(trial, use.label) for use in uses)
    assert enough["evictions"] == enough["refaults"] == 0
    assert little["evictions"] > 1000
    assert little["refaults"] > 100
    assert little["read"] > enough["read"]
    for each in (enough, little):
        percentiles = [each[f"latency {one}"] for one in PERCENTILES]
        assert percentiles == sorted(percentiles)
        assert percentiles[0] > 0
    # Who does not find a file in memory waits for the disk. Half of the requests find it, and wait for each
    # other.
    waits = {one: little[f"latency {one}"] - enough[f"latency {one}"] for one in PERCENTILES[1:]}
    assert all(wait > SLOW_DISK.latency_us for wait in waits.values()), waits
    for size in SIZES:
        assert little[f"misses of {size} files"] >= enough[f"misses of {size} files"]
        assert enough[f"evictions of {size} files"] == 0
    evicted = sum(little[f"evictions of {size} files"] for size in SIZES)
    assert evicted == pytest.approx(little["evictions"], rel=0.05), "all pages are some file's"


@pytest.mark.nightly
def test_a_limit_inside_a_limited_group_is_refused_in_words(tmp_path: Path) -> None:
    use = a_use("seq-read", memory=16)
    study = a_study(use, kernels=("debian:6.12",), cgroup=CgroupLimits(memory_mib=64))
    with open_store(tmp_path / "trials.db") as store:
        (trial,) = run(study, store=store, jobs=1).trials
    assert trial.outcome is not Outcome.COMPLETED
    assert "this program is in the group /workload; limit that one" in trial.reason


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [pytest.param(DiskKind.BRD, marks=pytest.mark.nightly), DiskKind.PMEM])
@pytest.mark.parametrize("kernel", [pytest.param("debian:5.10", marks=pytest.mark.nightly), "debian:6.12"])
def test_other_disks_hold_what_is_written(tmp_path: Path, kernel: str, kind: DiskKind) -> None:
    """Counted by the clock: to ask a guest for its modules' symbols takes longer than all else."""
    study = a_study(
        *(a_use("stream-write"), a_use("seq-read")),
        kernels=(kernel,),
        disk=Disk(kind=kind, size_mib=64),
        count=CountedBy.CLOCK,
    )
    (trial,) = run_in(tmp_path, study).trials
    assert values(trial, "stream-write")["written"] >= 4096
    assert values(trial, "seq-read")["read"] == 4096
    assert trial.settings[f"/sys/block/{Disk(kind=kind).device}/queue/read_ahead_kb"] == "128"


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [DiskKind.BRD, DiskKind.PMEM])
@pytest.mark.parametrize("kernel", ["debian:5.10", "debian:7.2"])
def test_on_other_disks_too_numbers_repeat_to_the_last_digit(
    tmp_path: Path, kernel: str, kind: DiskKind
) -> None:
    uses = map(a_use, ("stream-write", "seq-read", "random-read"))
    study = a_study(*uses, kernels=(kernel,), disk=Disk(kind=kind, size_mib=64))
    once, again = (run_in(tmp_path / name, study).trials for name in ("once", "again"))
    assert [trial.samples for trial in once] == [trial.samples for trial in again]


@pytest.mark.nightly
@pytest.mark.parametrize("filesystem", ["xfs", "btrfs"])
def test_other_file_systems_hold_what_is_written(tmp_path: Path, filesystem: str) -> None:
    disk = SLOW_DISK.model_copy(update={"filesystem": filesystem, "size_mib": 320})
    writing = a_use("stream-write")
    study = a_study(writing, a_use("metadata"), kernels=("debian:6.1",), disk=disk)
    with open_store(tmp_path / "trials.db") as store:
        record = run(study, store=store, jobs=1)
        counted = profile_of(store, record, record.trials[0].planned.treatment, writing.label)
    (trial,) = record.trials
    assert (trial.outcome, trial.reason) == (Outcome.COMPLETED, "")
    assert values(trial, "stream-write")["written"] >= 4096
    assert counted
    inside = sum(one.instructions for one in counted.region.functions if one.module == filesystem)
    assert inside > 0, "the module's functions are counted under its name"


def test_without_the_program_that_makes_the_file_system_the_package_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_args, **_more: None)
    with pytest.raises(MachineToolMissing) as caught:
        guest_storage.program(Disk(filesystem="xfs", size_mib=320))
    assert "xfsprogs" in f"{caught.value} {caught.value.advice}"


@pytest.mark.nightly
def test_another_default_of_read_ahead_is_named_as_the_cause_without_being_told(tmp_path: Path) -> None:
    """This disk says that it turns, as virtual disks do: 7.2 then reads 8 MiB ahead, and 6.12 128 KiB."""
    disk = Disk(latency_us=100, bandwidth_mib=400, rotational=True)
    study = a_study(a_use("seq-read", size=16), kernels=("debian:6.12", "debian:7.2"), disk=disk)
    with open_store(tmp_path / "trials.db") as store:
        record = run(study, store=store, jobs=1)
        (why,) = whys(store, record, stored_explanations)
    first, *_ = why.causes
    assert first.startswith("block/nullb1/queue/read_ahead_kb: 128 → 8192: average read size 128 → ")
    assert "read requests 128 → " in first
    assert why.around[0].lines[0] == first
