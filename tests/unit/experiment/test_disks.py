"""Disks inside the guest: which steps make them, and what a study file may say of them."""

from pathlib import Path

import pytest

from ktrial.analysis.reach import inert_factors
from ktrial.analysis.result import load_record, result
from ktrial.cli.studies import registry
from ktrial.experiment import guest_storage
from ktrial.experiment.manipulation import settings_of
from ktrial.model.machine import CgroupLimits
from ktrial.model.study import Disk, DiskKind, Study, treatments
from ktrial.model.warnings import WarningKind
from ktrial.store.store import open_store
from ktrial.studyfile.errors import StudyError
from ktrial.studyfile.reader import load
from ktrial.studyfile.writer import study_toml
from ktrial.target import Failure, LoadModule, StepResult, Write
from ktrial.target.errors import GuestError

MACHINE = """
workloads = ["syscall"]
[factors.kernel]
levels = ["debian:6.1", "debian:6.12"]
[machine]
"""


def attributes(disk: Disk) -> dict[str, str]:
    return {
        step.path.rpartition("/")[2]: step.value
        for step in guest_storage.steps(disk)
        if isinstance(step, Write)
    }


def study_file(directory: Path, machine: str) -> Path:
    file = directory / "mine.toml"
    file.write_text(MACHINE + machine)
    return file


def test_a_disk_that_turns_has_large_requests_and_says_so() -> None:
    values = attributes(Disk(rotational=True))
    assert values["max_sectors"] == "8192"
    assert values["rotational"] == "1"
    assert "max_sectors" not in attributes(Disk())


@pytest.mark.parametrize("bandwidth", [1, 5, 80, 200, 1000])
@pytest.mark.parametrize("rotational", [False, True])
def test_no_request_is_larger_than_what_the_bandwidth_lets_through_in_a_tick(
    bandwidth: int, rotational: bool
) -> None:
    """null_blk would wait for ever: it lets through a fiftieth of a second's bytes at a time."""
    values = attributes(Disk(bandwidth_mib=bandwidth, rotational=rotational))
    largest = int(values.get("max_sectors", 254)) * 512
    assert 4096 <= largest < bandwidth * (1 << 20) / 50


def test_a_ram_disk_is_loaded_with_its_size_and_persistent_memory_is_taken_from_the_guests_end() -> None:
    brd, pmem = Disk(kind=DiskKind.BRD, size_mib=64), Disk(kind=DiskKind.PMEM, size_mib=64)
    first, *_ = guest_storage.steps(brd)
    assert isinstance(first, LoadModule)
    assert first.parameters == "rd_nr=1 rd_size=65536"
    assert guest_storage.memory_mib(brd) == 0
    assert guest_storage.boot_parameters(brd, 512) == ()
    assert guest_storage.memory_mib(pmem) > 64
    assert guest_storage.boot_parameters(pmem, 512) == ("memmap=64M!512M",)


def test_a_limit_of_requests_that_a_kernel_lacks_is_no_error_and_anything_else_is() -> None:
    lacks = Failure(name="EACCES", text="write /sys/kernel/config/nullb/nullb1/max_sectors: not permitted")
    guest_storage.check((StepResult(step=0, do="write", failure=lacks),), Disk())
    refused = Failure(name="EINVAL", text="write /sys/kernel/config/nullb/nullb1/max_sectors: invalid")
    with pytest.raises(GuestError, match="ext4 on null_blk"):
        guest_storage.check((StepResult(step=0, do="write", failure=refused),), Disk())


def test_a_limit_of_memory_is_set_before_the_group_is_entered() -> None:
    written = [
        step
        for step in guest_storage.memory_limit_steps(CgroupLimits(memory_mib=32))
        if isinstance(step, Write)
    ]
    assert [(step.path.rpartition("/")[2], step.value) for step in written] == [
        ("cgroup.subtree_control", "+memory"),
        ("memory.max", str(32 << 20)),
        ("cgroup.procs", "0"),
    ]
    assert guest_storage.memory_limit_steps(None) == ()
    failed = StepResult(step=0, do="write", failure=Failure(name="ENOENT", text="no such file"))
    with pytest.raises(GuestError, match="no such file"):
        guest_storage.check_memory_limit((failed,))


@pytest.mark.parametrize(
    ("machine", "problem"),
    [
        ('[machine.disk]\nkind = "brd"\nlatency_us = 5', "latency_us"),
        ('[machine.disk]\nkind = "pmem"\nrotational = true', "rotational"),
        ('[machine.disk]\nkind = "floppy"', "null_blk"),
        ('[machine.disk]\nfilesystem = "xfs"\nsize = "128M"', "not made below 300M"),
        ("[machine.cgroup]\ncpus = 0.5", "in a guest it is the memory"),
    ],
)
def test_what_a_disk_or_a_limit_cannot_be_is_said(tmp_path: Path, machine: str, problem: str) -> None:
    with pytest.raises(StudyError, match=problem):
        load(study_file(tmp_path, machine), registry())


def test_a_disk_and_a_limit_survive_being_written_out(tmp_path: Path) -> None:
    text = '[machine.disk]\nrotational = true\nsize = "64M"\n[machine.cgroup]\nmemory = "32M"\n'
    study = load(study_file(tmp_path, text), registry())
    again = tmp_path / "again"
    again.mkdir()
    file = again / "mine.toml"
    file.write_text(study_toml(study))
    assert load(file, registry()) == study
    assert study.machine.cgroup == CgroupLimits(memory_mib=32)
    assert study.machine.disk == Disk(rotational=True, size_mib=64)


READ_AHEAD = """
workloads = [{{ name = "{workload}" }}]
[factors."queue/read_ahead_kb{at}"]
levels = [128, 8192]
[machine]
kernel = "debian:6.12"
"""


def a_read_ahead_study(directory: Path, at: str, disk: str, workload: str = "seq-read") -> Study:
    path = ', path = "/mnt"' if workload == "seq-read" else ""
    file = directory / "mine.toml"
    text = READ_AHEAD.format(workload=workload, at=at).replace(f'"{workload}"', f'"{workload}"{path}')
    file.write_text(text + disk)
    return load(file, registry())


@pytest.mark.parametrize(
    ("disk", "device"),
    [
        ("disk = {}", "nullb1"),
        ('disk = { kind = "brd" }', "ram0"),
        ('disk = { kind = "pmem" }', "pmem0"),
    ],
)
def test_a_setting_of_the_study_s_disk_is_written_to_the_disk_that_is_made(
    tmp_path: Path, disk: str, device: str
) -> None:
    study = a_read_ahead_study(tmp_path, "@disk", disk)
    assert study.machine.disk
    (setting,) = settings_of(study, treatments(study)[1], "6.12.1")
    values = guest_storage.directory(study.machine.disk)
    assert setting.path == f"{values}/read_ahead_kb" == f"/sys/block/{device}/queue/read_ahead_kb"
    assert setting.name == "queue/read_ahead_kb@disk"
    assert list(inert_factors(study)) == []


@pytest.mark.parametrize(
    ("machine", "inert"),
    [
        ("", ["vm.dirty_ratio", "vm.swappiness"]),
        ("[machine.disk]\n", ["vm.swappiness"]),
        ('swap = "64M"\n', ["vm.dirty_ratio"]),
        ('kind = "kvm"\n', ["vm.dirty_ratio", "vm.swappiness"]),
        ('kind = "host"\n', []),
    ],
)
def test_what_guests_do_not_have_no_setting_acts_on(tmp_path: Path, machine: str, inert: list[str]) -> None:
    kernel = "" if "host" in machine else 'kernel = "debian:6.1"\n'
    knobs = "".join(
        f'[factors."{name}"]\nlevels = [20, 10]\n'
        for name in ("vm.dirty_ratio", "vm.swappiness", "vm.vfs_cache_pressure")
    )
    file = tmp_path / "mine.toml"
    file.write_text(f'workloads = ["syscall"]\n{knobs}[machine]\n{kernel}{machine}')
    texts = [item.warning.text for item in inert_factors(load(file, registry()))]
    assert [text.partition(" cannot act")[0] for text in texts] == inert


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("@disk", "@disk is the study's own disk, and it has none: [machine.disk] makes one"),
        ("", '"queue/read_ahead_kb@NAME", or the study\'s own: "queue/read_ahead_kb@disk"'),
        ("@*", '"queue/read_ahead_kb@NAME", or the study\'s own: "queue/read_ahead_kb@disk"'),
    ],
)
def test_a_disk_that_is_not_one_is_refused_before_anything_boots(tmp_path: Path, at: str, said: str) -> None:
    with pytest.raises(StudyError) as refused:
        a_read_ahead_study(tmp_path, at, "")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("at", "disk", "workload", "said"),
    [
        ("@nullb0", "disk = {}", "seq-read", "is set on nullb0, the study's disk is nullb1"),
        ("@nullb0", "", "seq-read", "is set on nullb0, and the study has no disk"),
        ("@disk", "disk = {}", "fork", "no workload names a path on it (/mnt)"),
    ],
)
def test_a_setting_that_reaches_nothing_is_told_with_the_result(
    tmp_path: Path, at: str, disk: str, workload: str, said: str
) -> None:
    study = a_read_ahead_study(tmp_path, at, disk, workload)
    (warning,) = [
        warning for warning in result(study, ()).warnings if warning.kind is WarningKind.OUT_OF_REACH
    ]
    assert said in warning.text
    with open_store(str(tmp_path / "s.db")) as store:
        number = store.study(study)
        stored = load_record(store, number)
    assert warning in stored.result.warnings, "what `run` and `show` print is of the stored study"


def test_of_the_study_s_own_disk_nothing_is_told_when_it_is_stored(tmp_path: Path) -> None:
    study = a_read_ahead_study(tmp_path, "@disk", "disk = {}")
    with open_store(str(tmp_path / "s.db")) as store:
        stored = load_record(store, store.study(study)).result
    assert not [warning for warning in stored.warnings if warning.kind is WarningKind.OUT_OF_REACH]
