"""One program that watches others: started beside them, asked to end after them, and never left behind.

What it prints goes to memory files, which cannot be full and need no reader: nothing of ktrial runs while
programs are measured.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from ktrial.target import TracerProgram
from ktrial.target.errors import MonitorFailed

PATIENCE = 60.0
"""Seconds: bpftrace compiles its script first, and takes apart what it attached at its end."""
_MOMENT = 0.02
_AGAIN = 5.0
"""Seconds until it is asked once more: it has maps to print, and probes to detach."""
_ENDED_WELL = frozenset({0, -signal.SIGINT})
"""perf ends itself by the signal that ended it, once all is printed."""


def _nobody_asks() -> None:
    """Nothing else can end the wait."""


class Watcher:
    """A program beside others, as a context manager: at its end it is gone. Raises MonitorFailed."""

    def __init__(self, tracer: TracerProgram, pid: int) -> None:
        """`pid`: the process whose descendants it is to watch."""
        self.name = tracer.name
        self._tracer = tracer
        self._pid = pid
        self._kept = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as resources:
            self._said, self._complaints = (
                resources.enter_context(_memory(name)) for name in ("said", "stderr")
            )
            self._child = self._spawn()
            resources.callback(self._kill)
            self._kept = resources.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kept.close()

    def wait_until_ready(self, check: Callable[[], None] = _nobody_asks, patience: float = PATIENCE) -> None:
        """Return as soon as it watches. `check` is called now and then, and may raise to end the wait."""
        end = time.monotonic() + patience
        while self._tracer.ready not in _text(self._said):
            check()
            if self._child.poll() is not None:
                raise self._failed(f"ended before it watched anything: {self._last_words()}")
            if time.monotonic() > end:
                raise self._failed(f"was not ready after {patience:g} s: {self._last_words()}")
            time.sleep(_MOMENT)

    def end(self, patience: float = PATIENCE) -> str:
        """Ask it to end, and return all that it printed."""
        deadline = time.monotonic() + patience
        while (status := self._asked_to_end(deadline)) is None:
            if time.monotonic() >= deadline:
                raise self._failed(f"did not end within {patience:g} s")
        if status not in _ENDED_WELL:
            raise self._failed(f"ended with status {status}: {self._last_words()}")
        return _text(self._said)

    def _asked_to_end(self, deadline: float) -> int | None:
        """Its status; None: not yet. bpftrace 0.17 overhears the signal where it does not wait just then."""
        with contextlib.suppress(ProcessLookupError):  # perf ends with the process that it watches
            self._child.send_signal(signal.SIGINT)
        try:
            return self._child.wait(min(_AGAIN, max(0.0, deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            return None

    def _spawn(self) -> subprocess.Popen[bytes]:
        argv = [word.replace("{pid}", str(self._pid)) for word in self._tracer.argv]
        say = self._tracer.say
        try:
            # A session of its own: a terminal's Ctrl-C is for ktrial. setpriv: it does not outlive ktrial.
            child = subprocess.Popen(
                [*_dies_with_us(), *_hears_us(), *argv],
                stdin=subprocess.PIPE if say else subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._complaints,
                env={"LC_ALL": "C", "PATH": os.environ.get("PATH", os.defpath)},
                start_new_session=True,
            )
        except OSError as error:
            raise self._failed(f"cannot be started: {argv[0]}: {error.strerror}") from None
        if child.stdin:
            with contextlib.suppress(BrokenPipeError):  # it ended at once, which the wait finds out
                child.stdin.write(say.encode())
                child.stdin.flush()
        return child

    def _kill(self) -> None:
        if self._child.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._child.stdin.close()
        self._child.kill()
        self._child.wait()

    def _last_words(self) -> str:
        lines = (_text(self._complaints) or _text(self._said)).split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")

    def _failed(self, problem: str) -> MonitorFailed:
        return MonitorFailed(monitor=self._tracer.name, problem=problem)


def _dies_with_us() -> tuple[str, ...]:
    return ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()


def _hears_us() -> tuple[str, ...]:
    """A shell's background jobs ignore SIGINT, and so would what they start: it would never end."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return ("env", "--default-signal=INT") if ignored else ()


@contextlib.contextmanager
def _memory(name: str) -> Iterator[int]:
    descriptor = os.memfd_create(name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _text(descriptor: int) -> str:
    """All that was written so far; perf ends its answer with a NUL."""
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, 0).decode(errors="replace").replace("\0", "")
