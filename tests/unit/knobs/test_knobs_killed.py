"""SIGKILL at 200 random instants: every knob has its first value again, in all 200.

Those at random run at night; test_knobs_fault_points kills at each stage, for every change.
"""

import os
import random
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.killing import (
    begun,
    change_and_wait,
    change_for_ever,
    has_left_something,
    kill_at_a_random_instant,
    run_ktrial,
)
from tests.support.knob_tree import made

from ktrial.knobs.apply import KnobSetting
from ktrial.knobs.journal_location import VARIABLE
from ktrial.knobs.lookup import System, find
from ktrial.target.local import LocalTarget

INSTANTS = 200
ENOUGH = INSTANTS // 10
"""So many kills at least have to leave something to be put back, or the test shows nothing."""
HARMLESS = {
    "vm.dirty_writeback_centisecs": ("600", "700"),
    "vm.dirty_expire_centisecs": ("2500", "3500"),
    "vm.stat_interval": ("2", "3"),
    "vm.vfs_cache_pressure": ("90", "110"),
    "net.core.netdev_budget": ("310", "320"),
}
IN_THE_TREE = {
    "vm.swappiness": ("10", "20"),
    "vm.dirty_ratio": ("5", "30"),
    "transparent_hugepage": ("always", "never"),
    "queue/read_ahead_kb@*": ("256", "512"),
    "cpu.weight@app.slice": ("200", "300"),
}

SWITCHED = {name: IN_THE_TREE[name] for name in ("vm.swappiness", "vm.dirty_ratio")}


def put_whole(path: Path, value: str) -> int:
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(value)
    beside.replace(path)
    return len(value.encode())


def rounds(knobs: dict[str, tuple[str, str]]) -> tuple[tuple[KnobSetting, ...], ...]:
    return tuple(tuple((name, values[each]) for name, values in knobs.items()) for each in (0, 1))


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """In memory: SIGKILL loses nothing of what was written, so that a disk would only cost time."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        monkeypatch.setenv(VARIABLE, f"{directory}/journal")
        yield Path(directory) / "journal"


@pytest.fixture
def first_values() -> Iterator[dict[str, str]]:
    """Of this system's knobs; whatever happens they are there again at the end."""
    before = now()
    yield before
    for name, value in before.items():
        (knob,) = find(System(LocalTarget()), name)
        if knob.value != value:
            Path(knob.path).write_text(value)


def now() -> dict[str, str]:
    return {name: find(System(LocalTarget()), name)[0].value for name in HARMLESS}


@pytest.mark.nightly
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change this system's knobs")
def test_on_this_system(journal: Path, first_values: dict[str, str]) -> None:
    chance, left = random.Random(1), 0
    for instant in range(INSTANTS):
        kill_at_a_random_instant(
            lambda begun: change_for_ever(LocalTarget(), rounds(HARMLESS), begun), chance
        )
        left += has_left_something(journal)
        assert run_ktrial("host", "restore") == 0
        assert now() == first_values, f"instant {instant}"
        assert not has_left_something(journal)
    assert left >= ENOUGH


@pytest.mark.nightly
def test_in_a_tree_of_files(journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = made(tmp_path)
    # A file keeps what is written, a kernel shows all choices.
    tree.write("sys/kernel/mm/transparent_hugepage/enabled", "madvise")
    first, chance, left = tree.values(), random.Random(2), 0
    monkeypatch.setattr("ktrial.target.local.LocalTarget", lambda: tree.target)
    # A kernel takes a value whole. A file is empty for an instant, in which a kill would lose its value.
    monkeypatch.setattr("ktrial.target.local.write_at_once", put_whole)
    for instant in range(INSTANTS):
        kill_at_a_random_instant(
            lambda begun: change_for_ever(tree.target, rounds(IN_THE_TREE), begun), chance
        )
        left += has_left_something(journal)
        # Any command puts back what a killed one has left; `restore` says what it did.
        command = ("host", "restore") if instant % 2 else ("knob", "show", "vm.swappiness")
        assert run_ktrial(*command) == 0
        assert tree.values() == first, f"instant {instant}"
        assert not has_left_something(journal)
    assert left >= ENOUGH


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_can_be_caught_puts_back_at_once(
    number: signal.Signals, journal: Path, tmp_path: Path
) -> None:
    tree = made(tmp_path)
    settings = tuple((name, values[0]) for name, values in SWITCHED.items())
    process = begun(lambda pipe: change_and_wait(tree.target, settings, pipe))
    assert tree.read("proc/sys/vm/swappiness") == "10"
    os.kill(process, number)
    os.waitpid(process, 0)
    assert tree.read("proc/sys/vm/swappiness") == "60"
    assert not (journal / "changes").exists()


def test_what_a_living_process_has_changed_is_left_alone(
    journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = made(tmp_path)
    monkeypatch.setattr("ktrial.target.local.LocalTarget", lambda: tree.target)
    settings = tuple((name, values[0]) for name, values in SWITCHED.items())
    process = begun(lambda pipe: change_and_wait(tree.target, settings, pipe))
    assert run_ktrial("knob", "show", "vm.swappiness") == 0
    assert run_ktrial("host", "restore", "--no-wait") == 1
    assert tree.read("proc/sys/vm/swappiness") == "10"
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    assert run_ktrial("knob", "show", "vm.swappiness") == 0
    assert tree.read("proc/sys/vm/swappiness") == "60"
