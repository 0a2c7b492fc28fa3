"""A fleet in a network of its own, whose only interface is away for some time in the middle of a study.

`unshare --user --map-root-user --net python -m tests.support.fleet_network DIRECTORY SECONDS`
"""

import fcntl
import json
import os
import socket
import struct
import sys
import threading
import time
from pathlib import Path

from tests.support.fleet_processes import PERTURBATIONS, connected, fleet_processes
from tests.support.fleets import BEHAVIOUR, Heard, behave, run_on, study_of, with_all_there

from ktrial.store.store import open_store

_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
"""SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP (linux/sockios.h, linux/if.h)."""
_AFTER = 4
"""Trials that have ended when the network goes."""


def set_loopback(*, up: bool) -> None:
    """Take the interface `lo` up or down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sh22x", b"lo", 0)
        _, flags = struct.unpack("16sh22x", fcntl.ioctl(any_socket, _GET_FLAGS, asked))
        wanted = flags | _UP if up else flags & ~_UP
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh22x", b"lo", wanted))


class Dropping(Heard):
    """Takes the network away when so many trials have ended, and back later."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds, self._thread = seconds, threading.Thread(target=self._drop)
        self.before = self.finished = 0
        self.away = 0.0

    def trial_finished(self, trial: object, finished: int, total: int, seconds_left: object) -> None:
        self.finished = finished
        if finished >= _AFTER and not self.before:
            self.before = finished
            self._thread.start()

    def _drop(self) -> None:
        began = time.monotonic()
        set_loopback(up=False)
        time.sleep(self._seconds)
        set_loopback(up=True)
        self.away = time.monotonic() - began

    def ended(self) -> None:
        self._thread.join()


def main(directory: Path, seconds: float) -> None:
    """Run the study, and say how it went."""
    os.environ[BEHAVIOUR] = str(directory)
    behave(directory, "all", seconds=0.2)
    set_loopback(up=True)
    dropping = Dropping(seconds)
    with fleet_processes(directory) as processes, open_store(processes.store) as store:
        for number in (1, 2):
            processes.start_worker(number)
        with connected(processes) as fleet:
            run_on(with_all_there(fleet, 2), study_of(PERTURBATIONS), store, dropping)
        dropping.ended()
    told = {"away": dropping.away, "before": dropping.before, "after": dropping.finished}
    print(json.dumps(told | {"notices": dropping.notices}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
