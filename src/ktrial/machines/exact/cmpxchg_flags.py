"""The flags behind `cmpxchg8b` and `cmpxchg16b`, which QEMU mistakes before 8.0 (crates/lockstep)."""

import os
import subprocess
from functools import lru_cache
from pathlib import Path

from ktrial.machines.guest_programs import lockstep
from ktrial.machines.qemu.program import Qemu

_FIRST_RIGHT = (8, 0, 0)
_SPEAKER = "lockstep: "
_PATIENCE = 20.0


def mistaken(installed: Qemu) -> str:
    """What `lockstep.so` says of a QEMU whose flags it cannot mend; empty where they are right.

    Raises GuestProgramsMissing.
    """
    return "" if installed.version >= _FIRST_RIGHT else _said(installed.program, lockstep())


@lru_cache
def _said(program: Path, preloaded: Path) -> str:
    """It speaks as soon as the program is loaded, whatever the program is asked for."""
    environment = {**os.environ, "LD_PRELOAD": str(preloaded)}
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_PATIENCE, check=False,
            env=environment,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"whether they are cannot be told: {error}"
    said = (line for line in done.stderr.splitlines() if line.startswith(_SPEAKER))
    return next((line.removeprefix(_SPEAKER) for line in said), "")
