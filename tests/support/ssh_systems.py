"""A real sshd of the tests' own: on 127.0.0.1, with its own keys, configuration and known hosts."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# A real sshd of the tests' own: on 127.0.0.1, with its own keys, configuration and known hosts.

_SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin")


HOST = "lab1"
"""What the client's configuration calls the server."""


@dataclass
class SshServer:
    """A server that runs, and how a client reaches it."""

    process: "subprocess.Popen[bytes]"
    config: Path
    """For KTRIAL_SSH_CONFIG."""

    def children(self) -> list[int]:
        """The processes that serve one connection each."""
        pid = self.process.pid
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def ssh_server(directory: Path, programs: Path | None = None, forced: str = "") -> Iterator[SshServer]:
    """Start one; it, and what it started, ends with the block. `programs`: a directory, first in its PATH.
    `forced`: the command that it runs in place of each that it is asked for.
    """
    if _SSHD is None:
        raise FileNotFoundError("sshd is not here: apt-get install openssh-server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name in ("host", "user"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)]
        subprocess.run(key, check=True, stdin=subprocess.DEVNULL)
    (directory / "authorized").write_bytes((directory / "user.pub").read_bytes())
    host_key = (directory / "host.pub").read_text().split()
    (directory / "known").write_text(f"[127.0.0.1]:{port} {host_key[0]} {host_key[1]}\n")
    (directory / "sshd").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {directory}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {directory}/authorized\nPasswordAuthentication no\nStrictModes no\n"
        "PermitRootLogin prohibit-password\nMaxSessions 50\nMaxStartups 100\n"
        + (f"SetEnv PATH={programs}:/usr/bin:/bin\n" if programs else "")
        + (f"ForceCommand {forced}\n" if forced else "")
    )
    config = directory / "config"
    config.write_text(
        f"Host {HOST}\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {directory}/user\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {directory}/known\n  StrictHostKeyChecking yes\n"
        "  IdentityAgent none\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where sshd separates its privileges
    log = (directory / "log").open("wb")
    server = subprocess.Popen([_SSHD, "-D", "-e", "-f", str(directory / "sshd")], stderr=log)
    log.close()
    try:
        _wait_for(port, server)
        yield SshServer(server, config)
    finally:
        server.terminate()
        server.wait()


def _wait_for(port: int, server: "subprocess.Popen[bytes]") -> None:
    for _ in range(1000):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        if server.poll() is not None:
            break
        time.sleep(0.02)
    raise AssertionError("sshd does not listen")


# A system with a POSIX shell, ssh, and no more: busybox alone, without /proc and /sys, of 32 bits.
#
# A server of the tests' own puts whoever comes into it: a directory that is the root there.

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
