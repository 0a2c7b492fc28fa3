"""What a machine that is to be booted is: its own kernel, how it boots, what it lacks for that."""

import hashlib
import re
from dataclasses import dataclass

from ktrial.machines.ssh.boot_scripts import MAKERS, TOKEN
from ktrial.model.kernel import Kernel

RUNNING = "running"
"""What studies call the machine's own kernel."""

_TOKEN = re.compile(rf"(?:^|\s){re.escape(TOKEN)}=([0-9a-f]+)(?=\s|$)")
_NOT_HANDED_ON = re.compile(rf"(?:^|\s)(?:BOOT_IMAGE|initrd|{re.escape(TOKEN)})=\S*")
"""What boot loaders add about their own boot."""
LONGEST = 2047
"""Bytes of a command line (COMMAND_LINE_SIZE of arch/x86/include/asm/setup.h, less its end)."""


@dataclass(frozen=True)
class Looked:
    """What the machine said of itself, by name."""

    said: dict[str, str]

    @property
    def boot_id(self) -> str:
        """Another one after each boot."""
        return self.said.get("boot_id", "")

    @property
    def release(self) -> str:
        """`uname -r`."""
        return self.said.get("release", "")

    @property
    def command_line(self) -> str:
        """The kernel's."""
        return self.said.get("command_line", "")

    @property
    def token(self) -> str:
        """Which boot of ktrial's it is; empty: its own kernel."""
        return token_of(self.command_line)

    def lacks(self) -> list[str]:
        """What keeps it from being booted in any way, in words."""
        needed = {
            "ktrial has to log in there as root, or to be let do so by sudo": self.said.get("uid") == "0",
            "it has no systemd": "systemd" in self.said,
            f"it has nothing that makes an initial RAM disk ({' or '.join(MAKERS)})": (
                "initrd_tool" in self.said
            ),
            f"there is no /boot/vmlinuz-{self.release}, the image of its own kernel": "image" in self.said,
        }
        return [what for what, there in needed.items() if not there]


def looked(printed: bytes) -> Looked:
    """What a script printed: lines of `name=value`."""
    lines = printed.decode(errors="replace").splitlines()
    return Looked({name: value for name, _, value in (line.partition("=") for line in lines)})


def token_of(command_line: str) -> str:
    """The token of ktrial's; empty where there is none."""
    match = _TOKEN.search(command_line)
    return match[1] if match else ""


def command_line(own: str, parameters: tuple[str, ...], token: str) -> str:
    """The machine's own, the treatment's behind it (the later one counts), and what leads back."""
    kept = " ".join(_NOT_HANDED_ON.sub(" ", own).split())
    return " ".join((kept, *parameters, "panic=10", f"{TOKEN}={token}"))


def config_digest(kernel: Kernel) -> str:
    """SHA-256 of its configuration's text; empty where it is not at hand."""
    return hashlib.sha256(kernel.config.read_bytes()).hexdigest() if kernel.config else ""
