"""Power and console of a machine by labgrid: what commands do elsewhere, a process of this module does.

    python -m ktrial.machines.ssh.labgrid_target lab.yaml main power cycle
    python -m ktrial.machines.ssh.labgrid_target lab.yaml main console

lab.yaml is labgrid's own file (its environment), main the name of a target in it. A process of its own: its
drivers wait without an end, and ktrial needs none of what they import.
"""

import os
import signal
import sys
import time
from typing import Protocol

_READ_SECONDS, _READ_BYTES = 0.5, 4096
_PAUSE_SECONDS = 0.05


def main(arguments: list[str]) -> int:
    """Raises labgrid's own errors."""
    sys.tracebacklimit = 0  # the last line of its errors says what is wrong
    file, name, device, *order = arguments
    from labgrid import Environment
    from labgrid.protocol import ConsoleProtocol, PowerProtocol

    environment = Environment(file)
    target = environment.get_target(name)
    if target is None:
        sys.exit(f"{file} has no target {name}; it has {', '.join(environment.config.get_targets())}")
    try:
        if device == "power":
            getattr(target.get_driver(PowerProtocol), order[0])()
        else:
            _print_all(target.get_driver(ConsoleProtocol))
    finally:
        environment.cleanup()
    return 0


class _Console(Protocol):
    def read(self, *, size: int, timeout: float) -> bytes: ...


def _print_all(console: _Console) -> None:
    """What it prints, until this process is told to end, or who started it has ended."""
    from pexpect import TIMEOUT

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    parent = os.getppid()
    while os.getppid() == parent:
        try:
            content = console.read(size=_READ_BYTES, timeout=_READ_SECONDS)
        except TIMEOUT:
            continue
        os.write(sys.stdout.fileno(), content) if content else time.sleep(_PAUSE_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
