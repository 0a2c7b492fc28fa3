"""Named points at which a test can kill this process, to see what a kill there leaves behind.

Every stage of what has to survive SIGKILL has one: the journal of knobs, the store, the workers of a study.
"""

import os
import signal

VARIABLE = "KTRIAL_FAULT_POINT"
"""The environment variable that arms one: its name, or `NAME#3` for the third time that it is reached."""

_reached: dict[str, int] = {}


def fault_point(name: str) -> None:
    """Kill this process here if the point is armed (`VARIABLE`); else do nothing."""
    armed = os.environ.get(VARIABLE)
    if armed is None:
        return
    _reached[name] = _reached.get(name, 0) + 1
    if armed in {name, f"{name}#{_reached[name]}"}:
        os.kill(os.getpid(), signal.SIGKILL)
