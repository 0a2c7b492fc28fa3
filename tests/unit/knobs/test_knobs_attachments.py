"""What a trial mounts or loads is taken away at its end; after SIGKILL by `ktrial host restore`."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.killing import run_ktrial

from ktrial.experiment.host_settings import Journaled
from ktrial.knobs import journal as journal_module
from ktrial.knobs.apply import changing
from ktrial.knobs.journal import Journal, Kind
from ktrial.knobs.journal_location import VARIABLE
from ktrial.knobs.restore import RestoreOutcome, restore
from ktrial.machines.host import HostMachine
from ktrial.model.machine import Boot
from ktrial.target import Mount, Run
from ktrial.target.local import LocalTarget

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "journal"))
    return tmp_path / "journal"


@pytest.fixture
def point(tmp_path: Path) -> Iterator[Path]:
    """A mount point with a blank in its name, as the kernel escapes it."""
    path = tmp_path / "a mount"
    path.mkdir()
    yield path
    while is_mounted(path):
        subprocess.run(["umount", path], check=True)


def is_mounted(path: Path) -> bool:
    return journal_module.state(Kind.MOUNT, str(path)) != ""


def mount(path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "ktrial-test", path], check=True)


def killed_while(attach: Callable[[], None], point: Path, *, then: Callable[[], None] = lambda: None) -> None:
    """In a child, which kills itself in `attach` or in `then`."""
    child = os.fork()
    if not child:
        try:
            with changing(LocalTarget(), "a study") as changes:
                changes.attach(Kind.MOUNT, str(point), attach)
                then()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.root
@root_only
def test_a_mount_is_gone_after_a_kill_at_any_stage(journal: Path, point: Path) -> None:
    def mount_and_die() -> None:
        mount(point)
        die()

    for attach, then, left in (
        (die, die, False),
        (mount_and_die, die, True),
        (lambda: mount(point), die, True),
    ):
        killed_while(attach, point, then=then)
        assert is_mounted(point) == left
        assert Journal().entries()[0]
        assert run_ktrial("host", "restore") == 0
        assert not is_mounted(point)
        assert not Journal().entries()[0]


@pytest.mark.root
@root_only
def test_a_steps_mount_goes_through_the_journal(journal: Path, point: Path) -> None:
    machine = HostMachine(allow_changes=True)
    step = Mount(fstype="tmpfs", source="none", path=str(point))
    with changing(LocalTarget(), "a study") as changes:
        machine.writer = Journaled(changes)
        with machine.start(Boot(kernel=machine.kernel())) as target:
            done, shown = target.perform((step, Run(argv=("/bin/cat", "/proc/self/mountinfo"))))
            assert done.failure is None
            assert "a\\040mount" in shown.stdout
            ((entry,), _) = Journal().entries()
            assert (entry.kind, entry.path) == (Kind.MOUNT, str(point))
        assert not is_mounted(point)
        assert not Journal().entries()[0]


@pytest.mark.root
@root_only
def test_somebody_elses_mount_upon_it_is_told_and_left_alone(journal: Path, point: Path) -> None:
    killed_while(lambda: mount(point), point, then=die)
    mount(point)
    with Journal().held():
        (undone,) = restore(Journal(), LocalTarget())
    assert undone.ending is RestoreOutcome.SOMEBODY_ELSE
    assert "lies under another one" in undone.text
    subprocess.run(["umount", point], check=True)
    assert run_ktrial("host", "restore") == 0
    assert not is_mounted(point)


@pytest.mark.root
@root_only
def test_one_in_use_is_told_and_stays_in_the_journal(journal: Path, point: Path) -> None:
    killed_while(lambda: mount(point), point, then=die)
    with (point / "open").open("w"), Journal().held():
        (undone,) = restore(Journal(), LocalTarget())
        assert undone.ending is RestoreOutcome.REFUSED
        assert "busy" in undone.text
    assert run_ktrial("host", "restore") == 0
    assert not is_mounted(point)


def test_a_module_is_unloaded(journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a tree in the place of /sys/module: few systems have a module that may be loaded for a test."""
    modules, bin_ = tmp_path / "module", tmp_path / "bin"
    bin_.mkdir()
    rmmod = bin_ / "rmmod"
    rmmod.write_text(f'#!/bin/sh\nrmdir "{modules}/$1"\n')
    rmmod.chmod(0o755)
    monkeypatch.setattr(journal_module, "MODULES", modules)
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    with changing(LocalTarget(), "a study") as changes:
        changes.attach(Kind.MODULE, "null-blk", lambda: (modules / "null_blk").mkdir(parents=True))
        (undone,) = changes.undo()
    assert (undone.ending, undone.text) == (RestoreOutcome.RESTORED, "the module null-blk is gone again")
    assert not list(modules.iterdir())
