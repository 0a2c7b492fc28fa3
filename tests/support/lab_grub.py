"""A lab machine that GRUB boots from its disk, by the menu that Debian's own `update-grub` makes there."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.support import lab_machine
from tests.support.lab_machine import LabMachine

BUILT = "KTRIAL_LAB_GRUB_IMAGE"
"""The environment variable that names a directory with an image that was built before."""
_PACKAGES = f"{lab_machine.PACKAGES},grub-common,grub2-common,grub-pc-bin"
_ROOT = "/dev/vda1"
_START_SECTOR, _SECTOR, _MIB = 2048, 512, 1500
_FIRST_MODULES = ("biosdisk", "part_msdos", "ext2", "normal", "linux")
_COMMAND_LINE = "console=ttyS0 net.ifnames=0"
_DEFAULTS = (
    f'GRUB_TIMEOUT=0\nGRUB_DISTRIBUTOR=Lab\nGRUB_CMDLINE_LINUX="{_COMMAND_LINE}"\nGRUB_TERMINAL=console\n'
)


def can_run() -> str:
    """Why there can be none here; empty where there can."""
    return lab_machine.can_run() or ("" if shutil.which("sfdisk", path="/usr/sbin:/sbin") else "needs sfdisk")


def build(directory: Path) -> Path:
    """Have disk and keys in the directory, or in the one that `BUILT` names."""
    directory = Path(os.environ.get(BUILT, directory))
    if not (directory / "disk.img").exists():
        directory.mkdir(parents=True, exist_ok=True)
        root = lab_machine.make_root(directory, _PACKAGES, _ROOT)
        core = _with_grub(root)
        _make_disk(directory, root, core)
        _make_menu(directory)
        (directory / "disk.new").rename(directory / "disk.img")
    return directory


def _with_grub(root: Path) -> bytes:
    """Have GRUB's modules and a first menu there; return what the firmware loads."""
    grub, modules = root / "boot/grub", root / "usr/lib/grub/i386-pc"
    shutil.copytree(modules, grub / "i386-pc")
    subprocess.run(["chroot", str(root), "grub-editenv", "/boot/grub/grubenv", "create"], check=True)
    (kernel,) = (root / "boot").glob("vmlinuz-*")
    release = kernel.name.removeprefix("vmlinuz-")
    linux = f"linux /boot/{kernel.name} root={_ROOT} rw {_COMMAND_LINE}"
    (grub / "grub.cfg").write_text(f"{linux}\ninitrd /boot/initrd.img-{release}\nboot\n")
    (root / "etc/default/grub").write_text(_DEFAULTS)
    image = ["grub-mkimage", "-O", "i386-pc", "-p", "(hd0,msdos1)/boot/grub", "-o", "/core.img"]
    subprocess.run(["chroot", str(root), *image, *_FIRST_MODULES], check=True)
    core, first = root / "core.img", (modules / "boot.img").read_bytes()[:440]
    content = first.ljust(_SECTOR, b"\0") + core.read_bytes()
    core.unlink()
    return content


def _make_disk(directory: Path, root: Path, loader: bytes) -> None:
    disk = directory / "disk.new"
    start = _START_SECTOR * _SECTOR
    assert len(loader) < start
    with disk.open("wb") as file:
        file.truncate(start + (_MIB << 20))
    table = f"label: dos\nstart={_START_SECTOR}, type=83, bootable\n"
    subprocess.run(["sfdisk", "--quiet", str(disk)], input=table.encode(), check=True)
    lab_machine.put_root(disk, start, root, _MIB)
    with disk.open("r+b") as file:
        table_of_partitions = file.read(_SECTOR)[440:]
        file.seek(0)
        file.write(loader[:440] + table_of_partitions + loader[_SECTOR:])


def _make_menu(directory: Path) -> None:
    """Boot it, and have it make its own menu."""
    disk = directory / "disk.img"
    (directory / "disk.new").rename(disk)
    try:
        machine = LabMachine(directory, directory / "first", by_loader=True)
        machine.start()
        assert (
            machine.wait("update-grub >/dev/null 2>&1; grep -q next_entry /boot/grub/grub.cfg; echo $?", "0")
            == "0"
        )
        machine.run("systemctl poweroff --no-block")
        machine.wait_until_off()
        machine.disk.rename(directory / "disk.new")
    finally:
        disk.unlink()
        shutil.rmtree(directory / "first", ignore_errors=True)
