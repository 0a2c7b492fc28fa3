"""How many builds run at once, over all ktrial processes of this user: as cores and memory allow."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ktrial.kernels.cache.cache import cache_directory
from ktrial.kernels.cache.locks import held_if_free
from ktrial.kernels.progress import Progress

_CORES_A_BUILD = 8
"""More jobs than this gain little: make reads its directories one after another, and the link is one job."""
_MEMORY_A_BUILD = 4 << 30
_POLL_SECONDS = 0.5


@contextmanager
def slot(progress: Progress) -> Iterator[int]:
    """Wait until one more build may run, and yield how many jobs it may have."""
    directory = cache_directory() / "trees" / "slots"
    directory.mkdir(parents=True, exist_ok=True)
    told = False
    while True:
        for number in range(slots()):
            with ExitStack() as stack:
                if stack.enter_context(held_if_free(directory / f"{number}.lock")):
                    yield max(1, _cores() // slots())
                    return
        if not told:
            progress("waiting for another build to end")
            told = True
        time.sleep(_POLL_SECONDS)


def slots() -> int:
    """How many builds may run at once."""
    return max(1, min(_cores() // _CORES_A_BUILD, _memory() // _MEMORY_A_BUILD))


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
