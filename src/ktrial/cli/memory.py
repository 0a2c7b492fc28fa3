"""Memory that ends: one line and an exit code, and never a program that spins or dies without a word.

Python raises MemoryError. Libraries in other languages do not: where `ulimit -v` leaves them too little,
OpenBLAS tries for minutes in a loop that no signal ends, and V8, which draws the charts, traps. What they
need is known, so it is looked at before they are loaded. A process that a control group's limit ends is told
nothing.
"""

import errno
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType

from ktrial.errors import KtrialError

NOT_ENOUGH_MEMORY = 71
"""EX_OSERR of sysexits.h, whose example is that nothing can be forked."""
_MB = 1 << 20
LEAST = 96 * _MB
"""With less not even the smallest command comes to an end."""
_KEPT = 2 * _MB
"""Given back when memory has ended, so that this can be told."""
_NOT_MAPPED = ("failed to map segment", "cannot allocate memory")
"""What the loader of shared objects says, dlerror(3)."""


_ALLOW = "allow more in the shell that starts ktrial: ulimit -v unlimited"


@dataclass(frozen=True)
class _Need:
    purpose: str
    address_space: int
    hint: str = _ALLOW


_NEEDS = {
    "numpy": _Need("NumPy, which computes verdicts", 160 * _MB),
    "scipy": _Need("SciPy, which computes verdicts", 256 * _MB),
    # V8 reserves 64 GB of addresses, of which it uses some 80 MB.
    "vl_convert": _Need(
        "vl-convert, which draws charts",
        68 << 30,
        f"{_ALLOW}; or do without charts: ktrial show, ktrial report --markdown, ktrial run --no-html",
    ),
}
"""Package → what it takes of the address space: NumPy 80 MB, SciPy 150 MB, as measured, and some for data."""


class NotEnoughMemory(KtrialError):
    """The address space that this process may have is too small."""

    text = (
        "There is not enough memory for {purpose}: it needs {needed} of address space; {left} are left of "
        "the {limit} that this process may use."
    )
    exit_code = NOT_ENOUGH_MEMORY


class _Reserve:
    """Of the whole process: memory is one for all of its threads."""

    held: bytearray | None = None


def prepare() -> None:
    """See to it that the end of memory is told from now on. Raises NotEnoughMemory."""
    # Its threads take 40 MB of addresses each, and wait busily for each other over matrices so small; and
    # sums depend on how many there are. Programs that are measured have an environment of their own.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    limit = _limit()
    if limit is None:
        return
    if limit < LEAST:
        raise _too_little(_Need("ktrial", LEAST), limit, limit)
    _Reserve.held = bytearray(_KEPT)
    if not any(isinstance(finder, _Guard) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Guard())


def why_memory_ended(error: BaseException) -> tuple[str, str] | None:
    """Message and hint, where the end of memory is behind an error; None where it is not.

    What was kept for this moment is given back.
    """
    if not any(map(_is_of_memory, _chain(error))):
        return None
    _Reserve.held = None
    error.__traceback__ = None  # its frames hold what took so much
    if isinstance(error, NotEnoughMemory):
        return error.message, error.advice
    limit = _limit()
    if limit is None:
        return (
            "There is not enough memory.",
            "free -h says what is left on this system; fewer jobs (--jobs) and smaller studies need less",
        )
    return (
        f"There is not enough memory: this process may use {_size(limit)} of address space.",
        _ALLOW,
    )


class _Guard:
    """A finder of modules that finds none: it raises where one that is to be loaded would not find room."""

    def find_spec(self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> None:
        """As importlib.abc.MetaPathFinder has it. Raises NotEnoughMemory."""
        need, limit = _NEEDS.get(name), _limit()
        if need and limit is not None:
            left = max(0, limit - _in_use())
            if left < need.address_space:
                raise _too_little(need, limit, left)


def _too_little(need: _Need, limit: int, left: int) -> NotEnoughMemory:
    return NotEnoughMemory(
        purpose=need.purpose,
        needed=_size(need.address_space),
        limit=_size(limit),
        left=_size(left),
        hint=need.hint,
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that it came of."""
    seen: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in seen:
        seen.append(following)
        following = following.__cause__ or following.__context__
    yield from seen


def _is_of_memory(error: BaseException) -> bool:
    match error:
        case MemoryError() | NotEnoughMemory() | OSError(errno=errno.ENOMEM):
            return True
        case ImportError():
            return any(words in str(error).lower() for words in _NOT_MAPPED)
        case RuntimeError():  # a thread's stack is addresses, too
            return _limit() is not None and "can't start new thread" in str(error)
        case _:
            return False


def _limit() -> int | None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def _in_use() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - pathlib would be one more import
        return int(file.read().split()[0]) * resource.getpagesize()


def _size(count: int) -> str:
    return f"{count >> 30} GB" if count >= 10 << 30 else f"{count // _MB} MB"
