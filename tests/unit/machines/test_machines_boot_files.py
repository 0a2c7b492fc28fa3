"""What is told of a kernel and of memory before QEMU is started."""

from pathlib import Path

import pytest

from ktrial.file_digests import digest_of_bytes
from ktrial.machines import guest_programs
from ktrial.machines.errors import HostProblem, MachineError
from ktrial.machines.qemu.boot import TooSmall, boot_files, check_memory
from ktrial.machines.qemu.process import memory_file
from ktrial.model.kernel import BootImage, Kernel, Origin
from ktrial.model.machine import Boot
from ktrial.target.errors import GuestEnded

MIB = 1 << 20


def boot(image: Path, recorded: BootImage | None, memory_mib: int = 64) -> Boot:
    origin = Origin(provider="path", source="k")
    kernel = Kernel(name="k", release="6.1.0", origin=origin, digest="d", image=image, boot_image=recorded)
    return Boot(kernel=kernel, memory_mib=memory_mib)


@pytest.fixture
def guest(tmp_path: Path) -> Path:
    directory = tmp_path / "guest"
    directory.mkdir()
    for name in (guest_programs.AGENT, guest_programs.WORK):
        (directory / name).write_bytes(name.encode())
    return directory


def test_a_kernel_that_is_shorter_than_it_was_is_no_kernel(tmp_path: Path, guest: Path) -> None:
    image = tmp_path / "vmlinuz"
    image.write_bytes(bytes(100))
    with pytest.raises(GuestEnded, match="cut short: 100 bytes of 101") as caught:
        boot_files(boot(image, BootImage(size=101, memory_end=0)), guest, "exact")
    assert caught.value.outcome == "not-a-kernel"
    complete = boot_files(boot(image, BootImage(size=100, memory_end=0)), guest, "exact")
    assert complete.kernel == image


def test_a_kernel_that_is_another_than_it_was_is_refused(tmp_path: Path, guest: Path) -> None:
    image = tmp_path / "vmlinuz"
    image.write_bytes(bytes(100))
    noted = BootImage(size=100, memory_end=0, digest=digest_of_bytes(bytes(100)))
    assert boot_files(boot(image, noted), guest, "exact").kernel_digest == noted.digest
    image.write_bytes(bytes(99) + b"!")
    with pytest.raises(HostProblem, match=f"{image} is not what it was when it was looked at"):
        boot_files(boot(image, noted), guest, "exact")


def test_a_kernel_that_has_gone_is_named(tmp_path: Path, guest: Path) -> None:
    with pytest.raises(MachineError, match="cannot be read: No such file"):
        boot_files(boot(tmp_path / "vmlinuz", None), guest, "exact")


@pytest.mark.parametrize(
    ("kernel_end", "initrd", "memory_mib", "fits"),
    [
        (48 * MIB, 16 * MIB, 64, True),
        (48 * MIB, 16 * MIB + 1, 64, False),
        (65 * MIB, 0, 64, False),
        (None, 64 * MIB, 64, True),
        (None, 65 * MIB, 64, False),
    ],
)
def test_kernel_and_initial_ram_disk_have_to_fit(
    kernel_end: int | None, initrd: int, memory_mib: int, fits: bool
) -> None:
    recorded = None if kernel_end is None else BootImage(size=1, memory_end=kernel_end)
    with memory_file("initrd", bytes(initrd)) as file:
        request = boot(Path("/k/vmlinuz"), recorded, memory_mib)
        if fits:
            check_memory(request, file)
        else:
            with pytest.raises(TooSmall):
                check_memory(request, file)
