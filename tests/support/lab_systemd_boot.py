"""A lab machine with UEFI firmware (OVMF): systemd-boot boots it from a partition of its own.

Its entry has no `sort-key`, and no `default` names it: as people write them by hand, and the hardest case.
"""

import os
import shutil
import subprocess
from pathlib import Path

from tests.support import lab_machine
from tests.support.lab_machine import FIRMWARE, VARIABLES

BUILT = "KTRIAL_LAB_SYSTEMD_BOOT_IMAGE"
"""The environment variable that names a directory with an image that was built before."""
_PACKAGES = f"{lab_machine.PACKAGES},systemd-boot"
_ROOT = "/dev/vda2"
_SECTOR, _SECTORS_A_MIB = 512, 2048
_LOADER_MIB, _MIB = 128, 1500
_ENTRY = f"""title Debian
linux /debian/vmlinuz
initrd /debian/initrd
options root={_ROOT} rw console=ttyS0 net.ifnames=0
"""


def can_run() -> str:
    """Why there can be none here; empty where there can."""
    needed = {"sfdisk": shutil.which("sfdisk", path="/usr/sbin:/sbin"), "mtools": shutil.which("mcopy")}
    missing = [name for name, there in {**needed, "ovmf": FIRMWARE.exists()}.items() if not there]
    return lab_machine.can_run() or (f"needs {', '.join(missing)}" if missing else "")


def build(directory: Path) -> Path:
    """Have disk, firmware's variables and keys in the directory, or in the one that `BUILT` names."""
    directory = Path(os.environ.get(BUILT, directory))
    if not (directory / "disk.img").exists():
        directory.mkdir(parents=True, exist_ok=True)
        root = lab_machine.make_root(directory, _PACKAGES, _ROOT)
        (root / "efi").mkdir()
        with (root / "etc/fstab").open("a") as table:
            table.write("/dev/vda1 /efi vfat umask=0077 0 0\n")
        shutil.copy(FIRMWARE.with_name("OVMF_VARS_4M.fd"), directory / VARIABLES)
        _make_disk(directory / "disk.new", root)
        (directory / "disk.new").rename(directory / "disk.img")
    return directory


def _make_disk(disk: Path, root: Path) -> None:
    first, second = _SECTORS_A_MIB, (1 + _LOADER_MIB) * _SECTORS_A_MIB
    with disk.open("wb") as file:
        file.truncate((second + (_MIB + 1) * _SECTORS_A_MIB) * _SECTOR)
    table = f"label: gpt\nstart={first}, size={_LOADER_MIB}MiB, type=uefi\nstart={second}, size={_MIB}MiB\n"
    subprocess.run(["sfdisk", "--quiet", str(disk)], input=table.encode(), check=True)
    _put_loader(f"{disk}@@{first * _SECTOR}", root)
    lab_machine.put_root(disk, second * _SECTOR, root, _MIB)


def _put_loader(partition: str, root: Path) -> None:
    """On the partition that the firmware reads, as `bootctl install` has it there."""
    place = root.with_name("partition")
    program = root / "usr/lib/systemd/boot/efi/systemd-bootx64.efi"
    (kernel,), (initrd,) = ((root / "boot").glob(name) for name in ("vmlinuz-*", "initrd.img-*"))
    for name, content in {
        "EFI/BOOT/BOOTX64.EFI": program.read_bytes(),
        "EFI/systemd/systemd-bootx64.efi": program.read_bytes(),
        "debian/vmlinuz": kernel.read_bytes(),
        "debian/initrd": initrd.read_bytes(),
        "loader/loader.conf": b"timeout 0\n",
        "loader/entries/debian.conf": _ENTRY.encode(),
    }.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    sectors = _LOADER_MIB * _SECTORS_A_MIB
    made = ["mformat", "-i", partition, "-T", str(sectors), "-h", "64", "-s", "32", "-H", str(_SECTORS_A_MIB)]
    subprocess.run([*made, "-F", "::"], check=True)
    subprocess.run(["mcopy", "-i", partition, "-s", *map(str, place.iterdir()), "::"], check=True)
    shutil.rmtree(place)
