"""The journal: what was changed on this system, written to disk before it is changed.

One file an entry, in a directory that is there only while something is to be undone. Its text is one JSON
object, `{"entry": {…}, "sha256": "…"}`, put in place by rename: an entry is whole, or damaged and found out.
"""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout
from pydantic import Field, ValidationError

from ktrial.fault_points import fault_point
from ktrial.knobs.errors import JournalError, JournalHeld
from ktrial.knobs.journal_location import CHANGES, journal_directory
from ktrial.model.base import Model, digest
from ktrial.text_lines import lines_of

Say = Callable[[str], None]
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_WRITABLE_BY_OTHERS = 0o022
_LONGEST_ENTRY = 1 << 20
_START_TIME = 22 - 3
"""Field `starttime` of /proc/PID/stat (proc(5)), counted from the state, which is behind the name."""
# What was added to this system, and is taken away again: mounts and modules.
MOUNTS = Path("/proc/self/mountinfo")
"""This process's mounts (proc_pid_mountinfo(5))."""
MODULES = Path("/sys/module")
"""The modules that are loaded."""
_PATIENCE = 60.0


class Stage(StrEnum):
    """How far a change got."""

    PLANNED = "planned"
    """On disk; nothing was written to the kernel."""
    WRITING = "writing"
    """The kernel may have it, perhaps rounded."""
    MADE = "made"
    """Written and read back."""


class Owner(Model):
    """The process that made a change."""

    pid: int
    started: int
    """Clock ticks after boot (proc(5)): with the pid, one process and no later one."""
    command: str = ""


class Kind(StrEnum):
    """What a change is."""

    KNOB = "knob"
    """A file that was written."""
    MOUNT = "mount"
    """A file system; its path is the mount point."""
    MODULE = "module"
    """A module; its path is the one below /sys/module."""


class Entry(Model):
    """One change."""

    number: int
    boot: str
    """The kernel's boot_id: values of another boot are gone anyway."""
    time: float
    """Seconds since 1970."""
    owner: Owner
    purpose: str
    """`knob set`, `quiesce`, a study's name."""
    lasting: bool = False
    """Kept after its owner's end, until the user asks for its undoing."""
    kind: Kind = Kind.KNOB
    knob: str
    """Its name; of what was mounted or loaded, what messages call it."""
    path: str
    old: str
    """What has to be written to undo the change; of what was mounted or loaded, what was there before."""
    new: str
    """What was asked for."""
    stage: Stage = Stage.PLANNED
    made: str = ""
    """What the kernel made of it: the text that its file had afterwards."""
    beside: dict[str, str] = Field(default_factory=dict)
    """Files that the kernel may change with this one → what was in them before."""
    beside_made: dict[str, str] = Field(default_factory=dict)
    """The same afterwards; empty until it was made."""
    reported: bool = False
    """The user was told that somebody else has changed it since."""


class Damaged(NamedTuple):
    """An entry that cannot be trusted."""

    path: Path
    problem: str


class Journal:
    """The entries in one directory. All but reading is done while it is `held`."""

    def __init__(self, directory: Path | None = None, *, boot: str = "") -> None:
        self.directory = directory or journal_directory()
        self.boot = boot or _BOOT_ID.read_text(encoding="ascii").strip()
        """This boot's id."""
        self._changes = self.directory / CHANGES

    @contextmanager
    def held(self, *, wait: bool = True, say: Say | None = None) -> Iterator[None]:
        """Be the only ktrial that changes knobs here.

        Where another is: tell it to `say` and wait for its end, or raise JournalHeld. Raises JournalError.
        """
        with self._errors():
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            fault_point("journal: directory made")
            self._require_safe()
            # A singleton: who holds it may hold it once more, further down.
            lock = FileLock(self.directory / "lock", is_singleton=True)
            self._acquire(lock, wait, say)
        try:
            fault_point("journal: lock taken")
            with self._errors():
                self._holder.write_text(own_identity().model_dump_json(), encoding="utf-8")
            fault_point("journal: holder written")
            yield
        finally:
            lock.release()

    def entries(self) -> tuple[tuple[Entry, ...], tuple[Damaged, ...]]:
        """All changes that were not undone, oldest first, and what is damaged."""
        good: list[Entry] = []
        damaged: list[Damaged] = []
        with self._errors():
            for path in self._files():
                try:
                    good.append(_read(path))
                except ValueError as error:
                    damaged.append(Damaged(path, str(error)))
        return tuple(sorted(good, key=lambda entry: entry.number)), tuple(damaged)

    def next_number(self) -> int:
        """A number above all that are taken."""
        numbers = [int(path.stem) for path in self._files() if path.stem.isdecimal()]
        return max(numbers, default=0) + 1

    def put(self, entry: Entry, *, durable: bool) -> None:
        """Write the entry, in place of an earlier one of its number. `durable`: it is on disk on return.

        What is not durable still survives this process: only the loss of the whole system loses it, and with
        it every value that it could undo.
        """
        body = entry.model_dump(mode="json")
        text = json.dumps({"entry": body, "sha256": digest(body)}, ensure_ascii=False)
        with self._errors():
            if not self._changes.is_dir():
                self._changes.mkdir(mode=0o700, exist_ok=True)
                _sync(self.directory)
            path = self._changes / f"{entry.number:08}.json"
            written = path.with_suffix(".new")
            descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            fault_point("journal: file of an entry made")
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            fault_point("journal: entry written")
            written.replace(path)
            fault_point("journal: entry in its place")
            if durable:
                _sync(self._changes)
                fault_point("journal: entry on disk")

    def close(self, entry: Entry) -> None:
        """Forget the entry: it was undone, or there is nothing to undo."""
        with self._errors():
            (self._changes / f"{entry.number:08}.json").unlink(missing_ok=True)
            fault_point("journal: entry dropped")

    def set_aside(self, damaged: Damaged) -> Path:
        """Move a damaged entry out of the way, for a person to look at; return where it is now."""
        aside = self.directory / "damaged"
        with self._errors():
            aside.mkdir(mode=0o700, exist_ok=True)
            fault_point("journal: place for damaged entries made")
            moved = damaged.path.rename(aside / f"{time.time_ns()}-{damaged.path.name}")
            fault_point("journal: damaged entry set aside")
            return moved

    def tidy(self) -> None:
        """Remove the directory of the entries if it is empty: one stat tells then that nothing is to do."""
        for unfinished in self._changes.glob("*.new"):
            unfinished.unlink(missing_ok=True)
            fault_point("journal: unfinished entry removed")
        with suppress(OSError):  # not empty, or not there: both are right
            self._changes.rmdir()
            fault_point("journal: empty directory removed")

    def holder(self) -> str:
        """Who held it last, for messages: `ktrial run, process 123`."""
        try:
            owner = Owner.model_validate_json(self._holder.read_text(encoding="utf-8"))
        except (OSError, ValidationError):
            return "unknown"
        return f"{owner.command}, process {owner.pid}"

    @property
    def _holder(self) -> Path:
        return self.directory / "holder.json"

    def _files(self) -> list[Path]:
        return sorted(path for path in self._changes.glob("*") if path.suffix != ".new")

    def _acquire(self, lock: FileLock, wait: bool, say: Say | None) -> None:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if not wait:
                raise JournalHeld(
                    f"Another ktrial is changing knobs on this system ({self.holder()}).",
                    hint="wait for it to end; without --no-wait the command waits by itself",
                ) from None
            if say:
                say(f"another ktrial is changing knobs here ({self.holder()}): waiting for it")
            lock.acquire()

    def _require_safe(self) -> None:
        facts = self.directory.stat()
        if facts.st_uid not in {0, os.geteuid()}:
            problem, fix = f"it belongs to user {facts.st_uid}", f"chown root: {self.directory}"
        elif facts.st_mode & _WRITABLE_BY_OTHERS:
            problem, fix = "others may write to it", f"chmod go-w {self.directory}"
        else:
            return
        raise JournalError(
            f"The journal in {self.directory} is not safe: {problem}.",
            hint="nobody else may write there, since it says what is written to the kernel: " + fix,
        )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise JournalError(
                f"The journal in {self.directory} cannot be written: {error.strerror or error}.",
                hint="check the rights and the space there, or name another directory: KTRIAL_JOURNAL",
            ) from error


def own_identity() -> Owner:
    """This process."""
    words = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    command = Path("/proc/self/cmdline").read_bytes().decode(errors="replace").split("\0")
    return Owner(pid=os.getpid(), started=int(words[_START_TIME]), command=_short(command))


def _short(command: list[str]) -> str:
    """`ktrial run study.toml`, without the interpreter's path."""
    words = [word for word in command if word]
    while len(words) > 1 and "ktrial" not in Path(words[0]).name:
        words = words[1:]
    return " ".join([Path(words[0]).name, *words[1:4]]) if words else "unknown"


def _read(path: Path) -> Entry:
    """The entry. Raises ValueError, which says what is wrong with it."""
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST_ENTRY)
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from None
    if not text:
        raise ValueError("it is empty")
    try:
        document = json.loads(text)
        body, digest_stored = document["entry"], document["sha256"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("it is cut short, or no entry at all") from None
    if digest(body) != digest_stored:
        raise ValueError("its checksum does not match")
    try:
        entry = Entry.model_validate(body)
    except ValidationError:
        raise ValueError("it is not an entry of this version of ktrial") from None
    if path.name != f"{entry.number:08}.json":
        raise ValueError(f"it is number {entry.number}, under another name")
    return entry


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- What was added to this system, and is taken away again: mounts and modules.


def path_of(kind: Kind, name: str) -> str:
    """Where it is seen: of a mount point, without symbolic links; of a module, below /sys/module."""
    if kind is Kind.MODULE:
        return str(MODULES / name.replace("-", "_"))
    return str(Path(name).resolve())


def state(kind: Kind, path: str) -> str:
    """What is there; empty where nothing is.

    Of a mount point: number, file system and source of the topmost mount (proc_pid_mountinfo(5)). Mounts may
    lie upon each other, and the number tells them apart.
    """
    if kind is Kind.MODULE:
        return Path(path).name if Path(path).exists() else ""
    topmost = ""
    for line in lines_of(MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")):
        before, _, after = line.partition(" - ")
        number, *_, point = before.split()[:5]
        if _plain(point) == path:
            topmost = " ".join((number, *after.split()[:2]))
    return topmost


def take_away(kind: Kind, path: str) -> str:
    """Unmount or unload it; return what is wrong, empty where nothing is."""
    command = ("rmmod", Path(path).name) if kind is Kind.MODULE else ("umount", "--", path)
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (finished.stderr.strip() or f"status {finished.returncode}") if finished.returncode else ""


def _plain(escaped: str) -> str:
    r"""The kernel writes blanks, tabs, line ends and backslashes as \040 and so on."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), escaped)
