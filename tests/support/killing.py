"""Kills a process that changes knobs over and over, and has `ktrial host restore` put them back."""

import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from ktrial import interruption
from ktrial.cli.app import app
from ktrial.cli.error_handling import ErrorHandling
from ktrial.cli.main import main
from ktrial.knobs.apply import KnobSetting, changing
from ktrial.knobs.journal_location import CHANGES, VARIABLE
from ktrial.knobs.lookup import System, find
from ktrial.target import Target
from ktrial.target.local import LocalTarget

SLOW_AND_ROOT = [
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may change this system's knobs"),
    pytest.mark.timeout(3600),
]
"""Marks of tests that kill at many instants."""
ROUNDS = 2.0
"""The random instant lies within so many rounds of changes, however long one takes on this machine now."""


IMPORTED_ONCE = app
"""What `main` imports when it is called: here, and not in each of the processes that are forked."""


def forked(work: Callable[[], object]) -> int:
    """Do the work in another process; return its id."""
    process = os.fork()
    if process:
        return process
    try:
        work()
    finally:
        os._exit(1)


def change_for_ever(target: Target, rounds: Iterable[tuple[KnobSetting, ...]], begun: int) -> NoReturn:
    """Set and put back, with a word to the pipe `begun` at the start of each round."""
    while True:
        for settings in rounds:
            with changing(target, "a study") as changes:
                os.write(begun, b"x")
                changes.apply(*settings)
                changes.apply(*reversed(settings))


def change_and_wait(target: Target, settings: tuple[KnobSetting, ...], begun: int) -> None:
    """As `ktrial` itself does it: change, tell the pipe, and look for a signal that ends it, for ever."""
    with ErrorHandling(), changing(target, "a study") as changes:
        changes.apply(*settings)
        os.write(begun, b"x")
        while True:
            interruption.check()
            time.sleep(0.01)


def begun(work: Callable[[int], object]) -> int:
    """Start the work in another process; return its id once it has told its pipe that it has begun."""
    read, write = os.pipe()
    process = forked(lambda: work(write))
    os.close(write)
    told = os.read(read, 1)
    os.close(read)
    assert told == b"x"
    return process


def kill_at_a_random_instant(work: Callable[[int], object], chance: random.Random) -> None:
    """Start the work (told a pipe to write to at the start of each round), see a round, and kill it."""
    read, write = os.pipe()
    process = forked(lambda: work(write))
    os.close(write)
    with os.fdopen(read, "rb", buffering=0) as rounds:
        assert rounds.read(1) == b"x"
        start = time.monotonic()
        assert rounds.read(1) == b"x"
        time.sleep(chance.uniform(0, ROUNDS * (time.monotonic() - start)))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def has_left_something(journal: Path) -> bool:
    """Whether there is an entry in the journal."""
    return any((journal / CHANGES).glob("*.json"))


def first_change(journal: Path, process: int) -> bool:
    """Wait for it. Return whether the process has ended instead, well: nothing was left to be run."""
    while not has_left_something(journal):
        if has_ended(process):
            return True
        time.sleep(0.002)
    return False


def has_ended(process: int, how: int = os.WNOHANG) -> bool:
    """Whether it has, well. `how` it is asked: `os.WUNTRACED` waits until it has ended or stopped."""
    known, status = os.waitpid(process, how)
    if not known or os.WIFSTOPPED(status):
        return False
    assert os.waitstatus_to_exitcode(status) == 0
    return True


def changes_in_force(journal: Path) -> set[tuple[str, int]]:
    """The journal's entries; one that is written later under the same name is another one."""
    entries = set()
    for path in (journal / CHANGES).glob("*.json"):
        with suppress(FileNotFoundError):
            entries.add((path.name, path.stat().st_mtime_ns))
    return entries


def killed_at_a_random_instant(
    arguments: tuple[str, ...], journal: Path, chance: random.Random, starts: float
) -> bool:
    """Run the command line, wait for its first change, and kill it at a random instant from then.

    `starts`: within so many times what it took to come there, however long that is on this machine now.
    Return whether it had ended by itself before.
    """
    start = time.monotonic()
    process = forked(partial(run_command, *arguments))
    if first_change(journal, process):
        return True
    time.sleep(chance.uniform(0, starts * (time.monotonic() - start)))
    if os.waitpid(process, os.WNOHANG)[0]:
        return True
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return False


def killed_amid_changes(arguments: tuple[str, ...], journal: Path, changes: int) -> bool:
    """Run the command line, and kill it while settings are in force, after at least so many changes.

    That is certain, however busy the machine is: it is stopped, and killed if the journal has an entry then.
    Return whether it had ended by itself before.
    """
    process, seen = forked(partial(run_command, *arguments)), set[tuple[str, int]]()
    while not has_ended(process):
        seen |= changes_in_force(journal)
        if len(seen) >= changes:
            os.kill(process, signal.SIGSTOP)
            if has_ended(process, os.WUNTRACED):
                return True
            if has_left_something(journal):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
                return False
            os.kill(process, signal.SIGCONT)
        time.sleep(0.002)
    return True


@contextmanager
def directory_in_memory() -> Iterator[Path]:
    """Where writing through to a disk takes no time: SIGKILL loses nothing of what was written."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        yield Path(directory)


@contextmanager
def journal_in_memory(patch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A journal of its own."""
    with directory_in_memory() as directory:
        patch.setenv(VARIABLE, str(directory / "journal"))
        yield directory / "journal"


def values_now(names: Iterable[str]) -> dict[str, str]:
    """Of knobs of this system."""
    return {name: find(System(LocalTarget()), name)[0].value for name in names}


def run_ktrial(*arguments: str) -> int:
    """The exit status of the command line, run in another process."""
    _, status = os.waitpid(forked(lambda: run_command(*arguments)), 0)
    return os.waitstatus_to_exitcode(status)


def run_command(*arguments: str) -> NoReturn:
    """Be the command line, without a word, to the end of this process."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    sys.argv = ["ktrial", *arguments]
    try:
        main()
    except SystemExit as ended:
        os._exit(ended.code if isinstance(ended.code, int) else 0)
