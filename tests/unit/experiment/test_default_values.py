"""A kernel's settings, read in its guest once: what is kept, what is no setting, what differs."""

from pathlib import Path

import pytest
from tests.support.scripted import a_kernel

from ktrial.analysis.attribution.conditions_diff import differing_values, setting_owner
from ktrial.analysis.errors import AnalysisError
from ktrial.experiment.default_settings import NO_SETTINGS, default_values, is_setting, kept_values
from ktrial.kernels.errors import UnknownModule
from ktrial.machines.fake import FakeMachine
from ktrial.model.attribution import KernelValues
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot
from ktrial.target import Failure, LoadModule, Push, Step, StepResult, Walk, Write

FILES = {
    "/proc/sys/vm/swappiness": "60",
    "/proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456",
    "/proc/sys/kernel/version": "#1 SMP",
}


class Guest:
    """What the guest has, and what it was asked."""

    def __init__(self) -> None:
        self.files = dict(FILES)
        self.failure: Failure | None = None
        self.machine = FakeMachine(self.answer)

    def answer(self, _boot: Boot, step: Step) -> StepResult:
        if not isinstance(step, Walk):
            return StepResult(step=0, do=step.do)
        left_out = {"/proc/sys/vm/drop_caches": "unreadable"}
        return StepResult(step=0, do="walk", files=self.files, left_out=left_out, failure=self.failure)

    @property
    def steps(self) -> list[Step]:
        return [step for performed in self.machine.performed for step in performed.steps]


@pytest.fixture
def guest() -> Guest:
    return Guest()


def boot(directory: Path, **changes: object) -> Boot:
    kernel = a_kernel(image=directory / "vmlinuz")
    return Boot.model_validate({"kernel": kernel, **changes})


def test_values_are_read_once_for_each_way_to_boot(guest: Guest, tmp_path: Path) -> None:
    plain, quiet = boot(tmp_path), boot(tmp_path, parameters=("quiet",))
    assert kept_values(plain) is None
    first = default_values(guest.machine, plain)
    assert default_values(guest.machine, plain) == first == kept_values(plain)
    assert default_values(guest.machine, quiet).parameters == ("quiet",)
    assert len(guest.machine.performed) == 2
    assert default_values(guest.machine, boot(tmp_path, memory_mib=1024)) == first
    assert len(guest.machine.performed) == 3


def test_what_is_no_setting_is_left_out_and_what_follows_from_memory_too(
    guest: Guest, tmp_path: Path
) -> None:
    defaults = default_values(guest.machine, boot(tmp_path))
    assert defaults.values == {
        "/proc/sys/vm/swappiness": "60",
        "/proc/sys/net/ipv4/tcp_rmem": "4096 131072",
    }
    assert defaults.left_out == {"/proc/sys/vm/drop_caches": "unreadable"}


def test_what_was_kept_and_is_damaged_is_read_again(guest: Guest, tmp_path: Path) -> None:
    first = default_values(guest.machine, boot(tmp_path))
    (file,) = (tmp_path / "values").iterdir()
    file.write_text('{"kernel": ')
    assert default_values(guest.machine, boot(tmp_path)) == first
    assert len(guest.machine.performed) == 2


def test_one_bit_in_a_kept_value_is_noticed_and_read_again(guest: Guest, tmp_path: Path) -> None:
    first = default_values(guest.machine, boot(tmp_path))
    (file,) = (tmp_path / "values").iterdir()
    text = file.read_bytes()
    file.write_bytes(text.replace(b'swappiness":"60"', b'swappiness":"61"'))
    assert file.read_bytes() != text
    assert kept_values(boot(tmp_path)) is None
    assert default_values(guest.machine, boot(tmp_path)) == first
    assert file.read_bytes() == text


@pytest.mark.parametrize("files", [FILES, {}])
def test_a_guest_that_does_not_tell_is_an_error_and_nothing_is_kept(
    guest: Guest, tmp_path: Path, files: dict[str, str]
) -> None:
    guest.files = files
    guest.failure = Failure(text="walk: stopped after 3 files") if files else None
    with pytest.raises(AnalysisError, match="stopped after 3 files" if files else "there is none") as raised:
        default_values(guest.machine, boot(tmp_path))
    assert "--no-values" in raised.value.advice
    assert not (tmp_path / "values").exists()


def test_disks_are_made_of_the_modules_that_the_kernel_has(
    guest: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("configfs.ko", "null-blk.ko"):
        (tmp_path / name).write_text("module")

    def resolve(kernel: Kernel, names: list[str]) -> tuple[Path, ...]:
        if names != ["null_blk"]:
            raise UnknownModule(name=kernel.name, module=names[0], similar="", directory=tmp_path)
        return (tmp_path / "configfs.ko", tmp_path / "null-blk.ko")

    monkeypatch.setattr("ktrial.experiment.default_settings.resolve", resolve)
    default_values(guest.machine, boot(tmp_path))
    pushed = [step.path for step in guest.steps if isinstance(step, Push)]
    loaded = [(step.path, step.parameters) for step in guest.steps if isinstance(step, LoadModule)]
    assert pushed == [path for path, _ in loaded]
    assert [parameters.split() for _, parameters in loaded] == [[], ["nr_devices=1", "max_sectors=8192"]]
    assert [step.path for step in guest.steps if isinstance(step, Write)] == [
        "/sys/block/nullb0/queue/rotational"
    ]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/proc/sys/vm/swappiness", True),
        ("/sys/block/nullb0/queue/read_ahead_kb", True),
        ("/proc/sys/fs/file-nr", False),
        ("/proc/sys/fs/file-max", False),
        ("/proc/sys/kernel/random/boot_id", False),
        ("/proc/sys/user/max_net_namespaces", False),
        ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", True),
        ("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", False),
        ("/sys/kernel/mm/ksm/pages_shared", False),
        ("/sys/kernel/mm/ksm/run", True),
    ],
)
def test_counts_names_and_what_follows_from_memory_are_no_settings(path: str, expected: bool) -> None:
    assert is_setting(path) is expected
    assert all(NO_SETTINGS)


def values(left_out: tuple[str, ...] = (), **value: str) -> KernelValues:
    return KernelValues(kernel="k", values=value, left_out=dict.fromkeys(left_out, "EPERM"))


def test_differing_values_come_before_those_of_one_side_only() -> None:
    before = values(a="1", b="2", gone="3", same="4")
    after = values(a="1", b="5", came="6", same="4")
    differing = [
        (differing_value.path, differing_value.before, differing_value.after)
        for differing_value in differing_values(before, after)
    ]
    assert differing == [("b", "2", "5"), ("came", None, "6"), ("gone", "3", None)]


@pytest.mark.parametrize(("old", "new"), [("1", "Y"), ("0", "N"), ("0x10", "16"), ("4 5", "4 5")])
def test_the_same_value_written_in_another_way_is_no_difference(old: str, new: str) -> None:
    assert differing_values(values(a=old), values(a=new)) == ()


def test_what_could_not_be_read_on_one_side_is_no_difference() -> None:
    assert differing_values(values(a="1"), values(left_out=("a",))) == ()


@pytest.mark.parametrize(
    ("path", "subsystem"),
    [
        ("/proc/sys/vm/swappiness", "mm"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "page tables"),
        ("/proc/sys/kernel/sched_rt_runtime_us", "scheduler"),
        ("/sys/block/nullb0/queue/read_ahead_kb", "block devices"),
        ("/proc/sys/kernel/panic", ""),
    ],
)
def test_the_subsystem_of_a_setting_is_told_by_its_place(path: str, subsystem: str) -> None:
    assert setting_owner(path) == subsystem
