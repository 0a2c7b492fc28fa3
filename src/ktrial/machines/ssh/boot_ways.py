"""How a machine is booted into a kernel once: by kexec, or by its boot loader's entry for one boot."""

import shlex
from typing import Protocol

from ktrial.machines.ssh import boot_loader_scripts, boot_scripts
from ktrial.machines.ssh.own_kernel import Looked

KEXEC, GRUB, SYSTEMD_BOOT = "kexec", "grub", "systemd-boot"
_GRUB_WRITES = ("ext2", "xfs", "fat", "jfs", "ufs2")
"""As grub-probe calls them (ext2: up to ext4), of those on which GRUB can write to its own file."""
_NAMES = {"mark": boot_loader_scripts.MARK, "entry": boot_loader_scripts.ENTRY}


class BootWay(Protocol):
    """How the machine is booted, once."""

    name: str

    def lacks(self, own: Looked) -> list[str]:
        """What keeps it from being used there, in words."""
        ...

    def script(self, own: Looked, image: str, initrd: str, command_line: str) -> str:
        """What boots it. `image`, `initrd`: quoted for the shell. Raises ValueError."""
        ...


class _Kexec:
    name = KEXEC

    def lacks(self, own: Looked) -> list[str]:
        needed = {
            "it has no kexec (apt install kexec-tools, dnf install kexec-tools)": "kexec" in own.said,
            "its kernel takes no other by kexec (CONFIG_KEXEC, kernel.kexec_load_disabled)": (
                "kexec_kernel" in own.said
            ),
        }
        return [what for what, there in needed.items() if not there]

    def script(self, own: Looked, image: str, initrd: str, command_line: str) -> str:
        words = shlex.quote(f"--command-line={command_line}")
        return boot_scripts.KEXEC.format(image=image, initrd=initrd, command_line=words)


class _Grub:
    name = GRUB

    def lacks(self, own: Looked) -> list[str]:
        if "grub" not in own.said:
            return ["it has no GRUB (grub-reboot, /boot/grub/grub.cfg)"]
        disk, system = own.said.get("grub_disk", ""), own.said.get("grub_fs", "")
        needed = {
            "its grub.cfg reads no custom.cfg or no next_entry: update-grub": "grub_menu" in own.said,
            "it has a /boot/grub/custom.cfg of its own": "grub_custom" not in own.said,
            f"GRUB cannot write to {disk or system or 'its disk'}, and would not forget what it boots": (
                not disk and system in _GRUB_WRITES
            ),
        }
        return [what for what, there in needed.items() if not there]

    def script(self, own: Looked, image: str, initrd: str, command_line: str) -> str:
        if wrong := sorted(set(command_line) & set("'\"\\")):
            raise ValueError(f"GRUB's menu takes no {' '.join(wrong)} in a command line")
        words = " ".join(shlex.quote(f"'{word}'") for word in command_line.split())
        facts = {"grub": own.said["grub"], "image": image, "initrd": initrd, "words": words}
        return boot_loader_scripts.GRUB.format(**_NAMES, **facts) + boot_loader_scripts.GO


class _SystemdBoot:
    name = SYSTEMD_BOOT

    def lacks(self, own: Looked) -> list[str]:
        return [] if "systemd_boot" in own.said else ["it was not booted by systemd-boot (bootctl status)"]

    def script(self, own: Looked, image: str, initrd: str, command_line: str) -> str:
        path, words = shlex.quote(own.said["systemd_boot"]), shlex.join(command_line.split())
        place = {"path": path, "file": boot_loader_scripts.FILE}
        facts = {**place, "image": image, "initrd": initrd, "words": words}
        return boot_loader_scripts.SYSTEMD_BOOT.format(**_NAMES, **facts) + boot_loader_scripts.GO


WAYS: dict[str, BootWay] = {one.name: one for one in (_Kexec(), _SystemdBoot(), _Grub())}
"""The one that is taken where the user's configuration says nothing comes first."""


def way_of(own: Looked, asked: str) -> tuple[BootWay, list[str]]:
    """The way that was asked for, or else the first that can be used; and what it lacks."""
    if asked:
        return WAYS[asked], WAYS[asked].lacks(own)
    usable = (way for way in WAYS.values() if not way.lacks(own))
    if way := next(usable, None):
        return way, []
    every = [what for way in WAYS.values() for what in way.lacks(own)]
    return WAYS[KEXEC], every
