"""What the other machine is: its kernel, its processor."""

import contextlib
import gzip
import shlex
from pathlib import Path

from ktrial.machines.ssh.connection import NAME, Connection
from ktrial.machines.ssh.errors import UnlikeSystem
from ktrial.model.base import digest
from ktrial.model.kernel import Kernel, Origin

_NEEDED = ("Linux", "x86_64")


def running_kernel(connection: Connection) -> Kernel:
    """The kernel that runs there. Raises UnlikeSystem, ConnectionLost."""
    said = connection.script("uname -s; uname -m; uname -r; uname -v\n").decode(errors="replace")
    system, architecture, release, version = (said.splitlines() + [""] * 4)[:4]
    if (system, architecture) != _NEEDED:
        needed = " on ".join(_NEEDED)
        raise UnlikeSystem(
            machine=NAME, host=connection.host, system=system, architecture=architecture, needed=needed
        )
    config = _config(connection, release)
    config_digest = digest(config) if config else ""
    return Kernel(
        name="running",
        release=release,
        architecture=architecture,
        origin=Origin(provider="running", source=connection.host, version=version),
        digest=digest([release, version, config_digest]),
        config_digest=config_digest,
        image=Path(),
        vmlinux_reason="it runs already, on another machine",
    )


def cpu_model(connection: Connection) -> str:
    """As /proc/cpuinfo there has it."""
    said = connection.script("cat /proc/cpuinfo 2>/dev/null; :\n").decode(errors="replace")
    facts: dict[str, str] = {}
    for line in said.splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    details = [f"{key} {facts[key]}" for key in ("stepping", "microcode") if facts.get(key)]
    name = facts.get("model name", "unknown")
    return f"{name} ({', '.join(details)})" if details else name


def _config(connection: Connection, release: str) -> str:
    boot = shlex.quote(f"/boot/config-{release}")
    content = connection.script(f"cat /proc/config.gz 2>/dev/null || cat {boot} 2>/dev/null; :\n")
    if content.startswith(b"\x1f\x8b"):
        with contextlib.suppress(OSError, EOFError):
            return gzip.decompress(content).decode(errors="replace")
        return ""
    return content.decode(errors="replace")
