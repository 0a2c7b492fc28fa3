"""A tree of files that stands for /proc/sys and /sys, and the journal of a system that has it."""

import errno
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from ktrial.knobs.apply import Changes, changing
from ktrial.knobs.journal import Journal
from ktrial.knobs.lookup import System
from ktrial.knobs.restore import Undone, restore
from ktrial.target import Failure, Step, StepResult, Target, Write
from ktrial.target.local import LocalTarget

FILES = {
    "proc/mounts": "debugfs /sys/kernel/debug debugfs rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
    "proc/sys/kernel/osrelease": "6.12.1-test\n",
    "proc/sys/vm/swappiness": "60\n",
    "proc/sys/vm/dirty_writeback_centisecs": "500\n",
    "proc/sys/vm/dirty_ratio": "20\n",
    "proc/sys/vm/dirty_bytes": "0\n",
    "proc/sys/vm/stat_interval": "1\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/kernel/debug/sched/base_slice_ns": "700000\n",
    "sys/kernel/debug/sched/features": "PLACE_LAG NO_NEXT_BUDDY\n",
    "sys/devices/vda/queue/read_ahead_kb": "128\n",
    "sys/devices/vdb/queue/read_ahead_kb": "64\n",
    "sys/fs/cgroup/app.slice/cpu.weight": "100\n",
}
BOOT = "11111111-2222-3333-4444-555555555555"


@dataclass(frozen=True)
class Tree:
    """A small system."""

    root: Path

    @property
    def target(self) -> LocalTarget:
        return LocalTarget(self.root / "system")

    @property
    def system(self) -> System:
        return System(self.target)

    def journal(self, boot: str = BOOT) -> Journal:
        return Journal(self.root / "journal", boot=boot)

    @property
    def entries(self) -> list[Path]:
        return sorted((self.root / "journal/changes").glob("*.json"))

    def read(self, path: str) -> str:
        return (self.root / "system" / path.lstrip("/")).read_text().strip()

    def write(self, path: str, text: str) -> None:
        (self.root / "system" / path.lstrip("/")).write_text(f"{text}\n")

    def values(self) -> dict[str, str]:
        """What is in every file, without line ends."""
        return {path: self.read(path) for path in FILES}

    def leave(self, *settings: tuple[str, str], lasting: bool = False) -> None:
        """Change knobs and end without putting them back, as after SIGKILL."""
        journal = self.journal()
        with journal.held():
            Changes(self.target, journal, "a study", lasting=lasting).apply(*settings, exactly=False)

    def restore(
        self, boot: str = BOOT, *, force: bool = False, forget: bool = False, dry_run: bool = False
    ) -> tuple[Undone, ...]:
        journal = self.journal(boot)
        with journal.held():
            return restore(journal, self.target, force=force, forget=forget, dry_run=dry_run)

    def changing(
        self, target: Target | None = None, *, lasting: bool = False
    ) -> AbstractContextManager[Changes]:
        return changing(target or self.target, "a study", journal=self.journal(), lasting=lasting)


def made(root: Path) -> Tree:
    """The tree, made below `root`; files as above, links as in a real /sys."""
    for name, text in FILES.items():
        path = root / "system" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    blocks = root / "system/sys/block"
    blocks.mkdir()
    for disk in ("vda", "vdb"):
        (blocks / disk).symlink_to(f"../devices/{disk}")
    return Tree(root)


Mind = Callable[[str], str | Failure]
"""What a kernel makes of a value that is written: another value, or a failure."""


class Kernel:
    """A target with a kernel's own mind about some files, by the last part of their paths."""

    def __init__(self, tree: Tree, **minds: Mind) -> None:
        self._tree = tree
        self._minds = minds
        self.writes: list[Write] = []

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        return tuple(self._do(number, step) for number, step in enumerate(steps))

    def _do(self, number: int, step: Step) -> StepResult:
        if isinstance(step, Write):
            self.writes.append(step)
            mind = self._minds.get(step.path.rpartition("/")[2])
            answer = mind(step.value) if mind else step.value
            if isinstance(answer, Failure):
                return StepResult(step=number, do="write", failure=answer)
            step = step.model_copy(update={"value": answer})
        return self._tree.target.step(number, step)


def refusal(name: str) -> Failure:
    return Failure(errno=getattr(errno, name), name=name, text=f"write: {name}")
