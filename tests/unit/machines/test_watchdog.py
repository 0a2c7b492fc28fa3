"""What a guest tells last is heard, however soon it ends."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import pytest

from ktrial.machines.qemu.frame_log import FrameLog
from ktrial.machines.qemu.process import QemuProcess, Qmp
from ktrial.machines.qemu.watchdog import Limits, StopReason, Watcher, WatchResult

LIMITS = Limits(instructions=10**9, seconds=60)


@dataclass
class EndedProcess:
    """A process that has ended, and the socket in which its last words wait."""

    qmp: Qmp
    pidfd: int
    pid: int
    status: int

    def wait(self) -> int:
        return self.status

    def check_stopped(self) -> None:
        return

    def has_written_too_much(self) -> bool:
        return False

    def reported(self) -> FrameLog:
        return FrameLog()


@pytest.fixture
def ended() -> Iterator[tuple[EndedProcess, socket.socket]]:
    ours, theirs = socket.socketpair()
    child = subprocess.Popen([sys.executable, "-c", ""])
    pidfd = os.pidfd_open(child.pid)
    status = child.wait()
    with ours, theirs:
        ours.settimeout(5)
        yield EndedProcess(Qmp(ours, "exact"), pidfd, child.pid, status), theirs
    os.close(pidfd)


def _says_and_closes(qemu: socket.socket, last_words: bytes) -> None:
    """Once it has been asked: so that the words come in place of an answer."""
    qemu.recv(4096)
    qemu.sendall(last_words)
    qemu.close()


@pytest.mark.parametrize(
    ("last_words", "reset", "switched_off"),
    [
        (b"", False, False),
        (b'{"event": "SHUTDOWN", "data": {"guest": true, "reason": "guest-reset"}}\n', True, False),
        (b'{"event": "SHUTDOWN", "data": {"guest": true, "reason": "guest-shutdown"}}\n', False, True),
        (b'{"event": "RESET"}\n{"event": "SHUTDOWN", "data": {"reason": "guest-reset"}}\n', True, False),
    ],
)
def test_a_guest_that_ends_before_it_is_asked_its_time_says_how(
    ended: tuple[EndedProcess, socket.socket], last_words: bytes, reset: bool, switched_off: bool
) -> None:
    process, qemu = ended
    last = threading.Thread(target=_says_and_closes, args=(qemu, last_words))
    last.start()
    watcher = Watcher(cast("QemuProcess", process), LIMITS)
    last.join()
    watcher.resume()
    assert watcher.watch() == WatchResult(StopReason.EXITED, 0, reset, switched_off)
