"""Kills a child process at each fault point that the source declares, every time that it is reached."""

import ast
import os
import signal
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from tests.support.places import ROOT
from tests.support.runs_of_tests import is_night

from ktrial.fault_points import VARIABLE, fault_point

SOURCE = ROOT / "src/ktrial"


def declared(*rooms: str) -> tuple[str, ...]:
    """The names of all fault points in these files or directories of the source; each is there once."""
    names = [name for room in rooms for path in _files(SOURCE / room) for name in _names(path)]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"two fault points of one name: {twice}"
    assert names, f"no fault point in {rooms}"
    return tuple(names)


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _names(path: Path) -> Iterator[str]:
    text = path.read_text()
    if f"{fault_point.__name__}(" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == fault_point.__name__:
            (name,) = node.args
            assert isinstance(name, ast.Constant), f"{path}:{node.lineno}: the name has to be a literal"
            yield str(name.value)


def each_kill_at(point: str, work: Callable[[], object]) -> Iterator[str]:
    """Do the work in a child, which is killed when it reaches the point: the first time, the second, …

    For each change at the first time, at night at all of them.

    After each kill: yield which one it was, for the caller to see what is left, and to prepare the next.
    Ends with a child that is not killed.
    """
    for time in count(1) if is_night() else (1,):
        if not _killed_at(f"{point}#{time}", work):
            assert time > 1, f"'{point}' is never reached"
            return
        yield f"{point}, time {time}"
    assert not _killed_at("", work)


def _killed_at(armed: str, work: Callable[[], object]) -> bool:
    """Whether it was; else it has come to its end."""
    child = os.fork()
    if not child:
        try:
            os.environ[VARIABLE] = armed
            work()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert status == 0, f"the child failed before it came to {armed}"
    return False
