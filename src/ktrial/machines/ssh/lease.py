"""Whose a machine is that is booted: a file there with a heartbeat, which holds while it boots, too.

As long as a connection stands, the keeper's lock on `/` holds the machine; a boot ends it. The file outlives
that: it is whoever's wrote it until nobody has been heard of for `LEASE_SECONDS`, or until the process that
took it has ended, where that was on this very system.
"""

import os
import re
import secrets
import shlex
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ktrial import process_identity
from ktrial.machines.ssh import boot_scripts
from ktrial.machines.ssh.boot_scripts import LEASE_SECONDS

_LINES = 5
"""Key, who, process, when it was born, and the age."""


def who() -> str:
    """`alice@desk since 2026-11-24T11:30Z`: of letters that no shell takes for more."""
    named = f"{process_identity.user()}@{socket.gethostname()}"
    return f"{re.sub(r'[^A-Za-z0-9@._-]', '_', named)[:80]} since {datetime.now(UTC):%Y-%m-%dT%H:%MZ}"


@dataclass(frozen=True)
class Lease:
    """One that is held, or was."""

    key: str
    who: str
    process: int
    born: str
    """See process_identity: its first word is the boot of the system that the process ran on."""
    age: float
    """Seconds since its holder was last heard of."""

    @property
    def is_over(self) -> bool:
        """Whether nobody holds it any more."""
        if self.age > LEASE_SECONDS:
            return True
        here = process_identity.same_boot(self.born, process_identity.born(os.getpid()))
        return here and process_identity.born(self.process) != self.born


@dataclass(frozen=True)
class OwnLease:
    """What this process takes."""

    key: str = field(default_factory=lambda: secrets.token_hex(8))
    who: str = field(default_factory=who)

    def script(self) -> str:
        """Takes the machine, whoever had it."""
        process = os.getpid()
        lines = (self.key, self.who, str(process), process_identity.born(process))
        return boot_scripts.lease(" ".join(map(shlex.quote, lines)))


def held(run: Callable[[str], bytes]) -> Lease | None:
    """The lease that is there; `run` has a script run there."""
    lines = run(boot_scripts.HELD).decode(errors="replace").splitlines()
    if len(lines) < _LINES:
        return None
    key, named, process, born, age = lines[0], lines[1], lines[2], lines[3], lines[-1]
    shown = re.sub(r"[^A-Za-z0-9@._: -]", "_", named)[:120]
    return Lease(key, shown, int(process) if process.isdecimal() else 0, born, float(age))
