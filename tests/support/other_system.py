"""A system with a POSIX shell, ssh, and no more: busybox alone, without /proc and /sys, of 32 bits.

A server of the tests' own puts whoever comes into it: a directory that is the root there.
"""

import shutil
import subprocess
from pathlib import Path

BUSYBOX = shutil.which("busybox")
SAYS = ("Linux", "i686")
"""Its `uname -s` and `uname -m`."""


def made(directory: Path) -> Path:
    """Have the system's root there."""
    if BUSYBOX is None:
        raise FileNotFoundError("busybox is not here: apt-get install busybox-static")
    root = directory / "root"
    for name in ("bin", "tmp", "dev", "etc"):
        (root / name).mkdir(parents=True)
    (root / "dev/null").touch()
    shutil.copy(BUSYBOX, root / "bin/busybox")
    names = subprocess.run([BUSYBOX, "--list"], capture_output=True, check=True).stdout.decode().split()
    for name in {*names, "sh"} - {"busybox"}:
        (root / "bin" / name).symlink_to("busybox")
    return root


def forced(root: Path) -> str:
    """What a server runs in place of what it is asked for: the same, in there."""
    enter = root.parent / "enter"
    enter.write_text(
        f"#!/bin/sh\nPATH=$PATH:/usr/sbin:/sbin\nmount --bind /dev/null {root}/dev/null\n"
        f'exec env -i PATH=/bin:/usr/sbin:/sbin HOME=/tmp chroot {root} /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n'
    )
    enter.chmod(0o755)
    return f"setarch i686 unshare --user --map-root-user --mount {enter}"
