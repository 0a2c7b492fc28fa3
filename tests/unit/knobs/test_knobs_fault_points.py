"""SIGKILL at every stage of a change and of its undoing, each time: what was there comes back."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fault_points import declared, each_kill_at
from tests.support.killing import directory_in_memory
from tests.support.knob_tree import Kernel, Tree, made

from ktrial.knobs import journal
from ktrial.knobs.apply import Changes, changing
from ktrial.knobs.journal import Kind
from ktrial.knobs.restore import restore
from ktrial.target import Step, StepResult, Write

OF_MOUNTS = ("apply: mounted or loaded", "restore: unmounted or unloaded")
"""Points that only root can reach."""
FOREIGN = "proc/sys/vm/stat_interval"
"""Somebody else changes this one, so that it is left alone."""
COUPLED = {"dirty_ratio": "proc/sys/vm/dirty_bytes", "dirty_bytes": "proc/sys/vm/dirty_ratio"}
OVERWRITTEN = ("vm.stat_interval", True)
"""The entry of that, after it was reported."""


class Coupled(Kernel):
    """As in a kernel, who writes dirty_ratio clears dirty_bytes, and the other way round."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self._files = tree

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        results = super().perform(steps)
        for step in steps:
            if isinstance(step, Write) and (cleared := COUPLED.get(step.path.rpartition("/")[2])):
                self._files.write(cleared, "0")
        return results


@pytest.fixture
def tree() -> Iterator[Tree]:
    """With a coupled pair of knobs, and a mount point; in memory, where fsync does not wait for a disk."""
    with directory_in_memory() as directory:
        tree = made(directory)
        tree.write("proc/sys/vm/dirty_ratio", "0")
        tree.write("proc/sys/vm/dirty_bytes", "8192")
        point(tree).mkdir()
        yield tree
        while is_mounted(tree):
            subprocess.run(["umount", point(tree)], check=True)


def point(tree: Tree) -> Path:
    return tree.root / "mount point"


def is_mounted(tree: Tree) -> bool:
    return journal.state(Kind.MOUNT, str(point(tree))) != ""


def mount(tree: Tree) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "ktrial-test", point(tree)], check=True)


def leave_something_to_undo(tree: Tree) -> None:
    """As killed processes do: a change, one that somebody overwrote, a damaged entry and half a one."""
    tree.leave(("vm.stat_interval", "2"))
    tree.write(FOREIGN, "5")
    tree.leave(("read_ahead_kb@vda", "256"))
    (tree.root / "journal/changes/00000003.json").write_text("{")
    (tree.root / "journal/changes/00000004.new").write_text("{")


def undo_change_and_undo(tree: Tree) -> None:
    """All that a process does to the journal, and a change of another purpose on top of it."""
    target, journal = Coupled(tree), tree.journal()
    with changing(target, "a study", journal=journal) as changes:
        changes.apply(("vm.swappiness", "10"), ("vm.dirty_ratio", "30"))
        lasting = Changes(target, journal, "knob set", lasting=True)
        lasting.apply(("vm.swappiness", "20"))
        if os.geteuid() == 0:
            changes.attach(Kind.MOUNT, str(point(tree)), lambda: mount(tree))
        changes.undo()
        assert tree.read("proc/sys/vm/swappiness") == "20"
        lasting.undo()
    with journal.held():
        restore(journal, target, forget=True)


@pytest.mark.parametrize("name", declared("knobs"))
def test_what_was_there_comes_back_after_a_kill_at(name: str, tree: Tree) -> None:
    if name in OF_MOUNTS and os.geteuid() != 0:
        pytest.skip("only root may mount")
    first = tree.values() | {FOREIGN: "5"}
    leave_something_to_undo(tree)
    for kill in each_kill_at(name, lambda: undo_change_and_undo(tree)):
        assert restored(tree) == first, kill
        assert not is_mounted(tree), kill
        tree.write(FOREIGN, "1")
        leave_something_to_undo(tree)
    assert restored(tree) == first, "the one that was not killed"


def restored(tree: Tree) -> dict[str, str]:
    """All values, after `ktrial host restore` has put back what it may, and the user has dropped the rest."""
    journal = tree.journal()
    with journal.held():
        restore(journal, Coupled(tree))
        left, damaged = journal.entries()
        assert {(entry.knob, entry.reported) for entry in left} <= {OVERWRITTEN}
        assert not damaged
        restore(journal, tree.target, forget=True)
    assert not tree.entries
    return tree.values()
