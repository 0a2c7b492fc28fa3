"""Named points at which a test can kill this process, or send it a signal, to see what that leaves behind.

Every stage of what has to survive SIGKILL has one: the journal of knobs, the store, the workers of a study.
"""

import os
import signal

VARIABLE = "KTRIAL_FAULT_POINT"
"""The environment variable that arms one: its name, `NAME#3` for the third time that it is reached, or
`NAME#3+` for that time and for every point of whatever name that is reached after it."""
SIGNAL = "KTRIAL_FAULT_SIGNAL"
"""The environment variable that names another signal than SIGKILL: `SIGTERM`."""

_reached: dict[str, int] = {}


def fault_point(name: str) -> None:
    """Send this process the signal if the point is armed (`VARIABLE`); else do nothing."""
    armed = os.environ.get(VARIABLE)
    if armed is None:
        return
    _reached[name] = _reached.get(name, 0) + 1
    first, insistent = armed.removesuffix("+"), armed.endswith("+")
    reached = first in {name, f"{name}#{_reached[name]}"}
    if reached or (insistent and _reached.get(VARIABLE)):
        _reached[VARIABLE] = 1
        os.kill(os.getpid(), signal.Signals[os.environ.get(SIGNAL, "SIGKILL")])
