"""What reading 64 KB of a stranger's may take: 5 s of CPU time and 256 MB of memory. More is a finding.

Memory is held by the system (RLIMIT_DATA), so that what a library allocates counts too. CPU time is asked of
a timer of the process: how busy the machine is makes no difference.
"""

import resource
import signal
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST = 64 << 10
"""Bytes of an input."""
SECONDS = 5.0
BYTES = 256 << 20
_STATM = Path("/proc/self/statm")
_DATA_FIELD = 5
"""Of /proc/PID/statm: pages of data and stack (proc(5))."""


class TooSlow(BaseException):
    """The input took too much CPU time. No `except Exception` of what is tried catches it."""


class TooLarge(BaseException):
    """The input took too much memory."""


@contextmanager
def limited(seconds: float = SECONDS, size: int = BYTES) -> Iterator[None]:
    """Raises TooSlow, TooLarge where the block takes more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    taken = int(_STATM.read_text().split()[_DATA_FIELD]) * resource.getpagesize()
    before = signal.signal(signal.SIGPROF, _end)
    resource.setrlimit(resource.RLIMIT_DATA, (taken + size, hard))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except MemoryError as error:
        raise TooLarge(f"more than {size >> 20} MB of memory") from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
        signal.signal(signal.SIGPROF, before)


def _end(_signal: int, _frame: types.FrameType | None) -> None:
    raise TooSlow("more CPU time than an input may take")
