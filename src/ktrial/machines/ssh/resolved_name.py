"""What a host's name leads to, by the user's OpenSSH configuration: users may call a machine differently."""

import hashlib
import os
import socket
import subprocess
from ipaddress import ip_address

from ktrial.machines.ssh.connection import CONFIG

_SECONDS = 20.0
_NONE = {"", "none"}


def resolved(host: str) -> str:
    """`lab1.example.org:22`, with the way there where there is one; the name itself where ssh cannot say.

    `ssh -G` reads the configuration and connects to nothing. What a user's alias is, and who logs in, is not
    part of it. A command that makes the connection (ProxyCommand) is told apart, and not repeated.
    """
    config = os.environ.get(CONFIG)
    chosen = ["-F", config] if config else []
    try:
        said = subprocess.run(
            ["ssh", *chosen, "-G", "--", host],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=True,
            start_new_session=True,
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.SubprocessError):
        return host.rpartition("@")[2]
    options = dict(line.split(" ", 1) for line in said.splitlines() if " " in line)
    name = options.get("hostname", host)
    return f"{name}:{options.get('port', '22')}{_way(name, options)}"


def _way(name: str, options: dict[str, str]) -> str:
    jump, command = options.get("proxyjump", ""), options.get("proxycommand", "")
    if jump not in _NONE:
        return f" by {jump}"
    if command not in _NONE:
        return f" by a command ({hashlib.sha256(command.encode()).hexdigest()[:8]})"
    return f" of {socket.gethostname()}" if _is_here(name) else ""


def _is_here(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
