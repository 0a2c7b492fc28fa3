"""virtme-ng, where it is installed: `vng` boots a kernel on the host's own file system and runs a command."""

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ktrial.model.kernel import Kernel

INSTALL = "virtme-ng is not installed: {python} -m pip install virtme-ng, and apt-get install busybox-static"
_LONGEST = 300.0


class VngFailed(Exception):
    """It did not boot the kernel, or the command failed in it."""


@dataclass(frozen=True)
class Vng:
    """The program `vng`."""

    program: Path

    @classmethod
    def find(cls) -> "Vng | None":
        """From PATH, or from the environment that this Python runs in."""
        beside = shutil.which("vng", path=Path(sys.executable).parent)
        program = shutil.which("vng") or beside
        return cls(Path(program)) if program else None

    @property
    def version(self) -> str:
        """`virtme-ng 1.42`."""
        told = subprocess.run((self.program, "--version"), capture_output=True, text=True, check=True)
        return told.stdout.strip()

    def boot(self, kernel: Kernel) -> None:
        """Boot it under TCG, run a command in it that leaves a file on the host, end. Raises VngFailed.

        The file tells whether the command ran. The exit status does not: it is 255 where the host has no udev
        to load virtio_console in the guest, because the command's own does not come back then.
        """
        # 9p and not virtiofs, which it would rather use: that takes a virtiofsd newer than Debian 12's.
        with tempfile.TemporaryDirectory(dir="/var/tmp") as home:
            ran = Path(home) / "ran"
            options = ("--disable-kvm", "--force-9p", f"--rwdir={home}", "--exec", f"touch {ran}")
            try:
                done = subprocess.run(
                    (self.program, "--run", kernel.image, *options),
                    # The command starts in the current directory, which must be there in the guest too.
                    cwd=home,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=_LONGEST,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise VngFailed(f"it did not end in {_LONGEST:g} s") from None
            if not ran.exists():
                said = (done.stderr or done.stdout).strip().splitlines()
                raise VngFailed(f"exit status {done.returncode}: {said[-1] if said else 'it said nothing'}")
