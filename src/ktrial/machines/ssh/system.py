"""What the other machine is: its kernel, its processor."""

import contextlib
import gzip
import shlex
from pathlib import Path
from typing import NamedTuple

from ktrial.machines.ssh.connection import Connection
from ktrial.model.base import digest
from ktrial.model.kernel import Kernel, Origin

_LIKE = ("Linux", "x86_64")
_SAID = "uname -s; uname -m; uname -r; uname -v\n"
_MODEL = 'cat /proc/cpuinfo 2>/dev/null || echo "model name: $(sysctl -n hw.model 2>/dev/null)"; :\n'
"""Linux has the file, and BSD the variable."""


class OtherSystem(NamedTuple):
    """What the other machine says that it is."""

    name: str
    architecture: str
    release: str
    version: str

    @property
    def runs_ktrials(self) -> bool:
        """Whether ktrial's own programs run there."""
        return (self.name, self.architecture) == _LIKE


def system_of(connection: Connection) -> OtherSystem:
    """What it is. Raises ConnectionLost."""
    said = connection.script(_SAID).decode(errors="replace")
    return OtherSystem(*(said.splitlines() + [""] * 4)[:4])


def running_kernel(connection: Connection, system: OtherSystem) -> Kernel:
    """The kernel that runs there. Raises ConnectionLost."""
    config = _config(connection, system.release) if system.name == _LIKE[0] else ""
    config_digest = digest(config) if config else ""
    release = system.release if system.name == _LIKE[0] else f"{system.name} {system.release}"
    return Kernel(
        name="running",
        release=release,
        architecture=system.architecture,
        origin=Origin(provider="running", source=connection.host, version=system.version),
        digest=digest([release, system.version, config_digest]),
        config_digest=config_digest,
        image=Path(),
        vmlinux_reason="it runs already, on another machine",
    )


def cpu_model(connection: Connection) -> str:
    """As /proc/cpuinfo there has it, or a BSD's hw.model."""
    said = connection.script(_MODEL).decode(errors="replace")
    facts: dict[str, str] = {}
    for line in said.splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    details = [f"{key} {facts[key]}" for key in ("stepping", "microcode") if facts.get(key)]
    name = facts.get("model name") or "unknown"
    return f"{name} ({', '.join(details)})" if details else name


def _config(connection: Connection, release: str) -> str:
    boot = shlex.quote(f"/boot/config-{release}")
    content = connection.script(f"cat /proc/config.gz 2>/dev/null || cat {boot} 2>/dev/null; :\n")
    if content.startswith(b"\x1f\x8b"):
        with contextlib.suppress(OSError, EOFError):
            return gzip.decompress(content).decode(errors="replace")
        return ""
    return content.decode(errors="replace")
