"""From what a command did to the files and directories that it needs in a guest."""

import os
import stat
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ktrial.workloads.capture.accesses import Accesses
from ktrial.workloads.capture.places import KERNELS, below, is_secret, is_systems, written_by_this_process
from ktrial.workloads.file_trees import size_of

_MOST_UNREAD = 32 << 20
"""Bytes of files that a directory holds, whose names a command read, and not the files."""
_PLAIN_MODE = 0o755
_AT_ONCE = 500
"""Names on a command line."""


@dataclass
class Collected:
    """What is to be carried, and what is not."""

    files: list[str] = field(default_factory=list)
    """Files and links; directories of which all is needed."""
    directories: list[str] = field(default_factory=list)
    """Those that must be there, whatever is in them here."""
    secrets: list[str] = field(default_factory=list)
    """Found by the command, and refused."""
    own: list[str] = field(default_factory=list)
    """What this process is writing: they would change between trials."""
    unreadable: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)
    """Names that are not UTF-8."""
    partial: list[str] = field(default_factory=list)
    """Directories whose names were read, and that hold too much for a guest."""
    made: list[str] = field(default_factory=list)
    """Files that the command made here, and left."""
    changed: list[str] = field(default_factory=list)
    """Files that were there before, and that it changed."""


class Collector:
    """Decides for each path that the command met."""

    def __init__(
        self, accesses: Accesses, began: float, cwd: str, home: str, include: tuple[str, ...] = ()
    ) -> None:
        self._accesses = accesses
        self._began = began
        self._cwd = cwd
        self._home = home
        self._include = include
        self._files: dict[str, None] = {}
        self._directories: dict[str, None] = {}
        self._own = written_by_this_process()
        self._result = Collected()

    def collected(self) -> Collected:
        """What is needed."""
        met = self._accesses
        for path in (*met.executed, *met.found, *self._include):
            self._add(path)
        for path in (*met.written, *(str(Path(each).parent) for each in met.written), *met.passed, self._cwd):
            self._add(path, only_directory=path in met.written)
        for path in met.listed:
            self._add_entries(path)
        self._note_writes()
        self._compact()
        return self._result

    @cached_property
    def _young(self) -> set[str]:
        """Of all paths that were met, and those in directories that were read: made since it began."""
        met = self._accesses
        entries = (each for place in self._listed for each in _entries(place))
        return younger(dict.fromkeys((*met.found, *met.written, *entries)), self._began)

    @cached_property
    def _listed(self) -> list[str]:
        return [each for each in self._accesses.listed if not is_systems(each)]

    def _add(self, path: str, *, only_directory: bool = False) -> None:
        if below(path, *KERNELS) or path in self._files or path in self._young:
            return
        if path in self._own:
            _once(self._result.own, path)
            return
        if is_secret(path, self._home) and not below(path, *self._include):
            _once(self._result.secrets, path)
            return
        try:
            path.encode()
            mode = os.stat(path).st_mode  # noqa: PTH116
        except UnicodeEncodeError:
            _once(self._result.unnamed, os.fsencode(path).decode(errors="backslashreplace"))
        except OSError:
            self._add_link(path)
        else:
            if stat.S_ISDIR(mode):
                self._add_link(path)
                self._directories[path] = None
            elif stat.S_ISREG(mode) and not only_directory:
                self._add_file(path)

    def _add_link(self, path: str) -> None:
        """A link that leads nowhere, or to a directory, is carried as it is; what is gone is not."""
        if Path(path).is_symlink():
            self._files[path] = None

    def _add_file(self, path: str) -> None:
        if os.access(path, os.R_OK):
            self._files[path] = None
        else:
            _once(self._result.unreadable, path)

    def _add_entries(self, place: str) -> None:
        """What a directory holds whose names were read; not all of /usr, of which it needs what it opened."""
        if is_systems(place) or place in self._young or not Path(place).is_dir():
            return
        if is_secret(place, self._home) and not below(place, *self._include):
            return
        self._directories[place] = None
        entries = _entries(place)
        unread = sum(size_of(each) for each in entries if each not in self._files and not Path(each).is_dir())
        if unread > _MOST_UNREAD:
            self._result.partial.append(place)
            return
        for each in entries:
            self._add(each)

    def _note_writes(self) -> None:
        for path in self._accesses.written:
            if below(path, *KERNELS) or not Path(path).is_file():
                continue
            if path in self._young:
                self._result.made.append(path)
            elif Path(path).stat().st_mtime > self._began:
                self._result.changed.append(path)

    def _compact(self) -> None:
        """One name for a directory of which everything is needed; none for one that comes by itself."""
        there = [each for each in self._listed if each in self._directories]
        whole = Whole(self._files, self._directories, there)
        tops = [each for each in there if whole(each) and not whole(str(Path(each).parent))]
        rest = [each for each in self._files if not below(each, *tops)]
        self._result.files = sorted(dict.fromkeys((*tops, *rest)))
        around = {str(above) for each in self._result.files for above in Path(each).parents}
        self._result.directories = sorted(
            each
            for each in self._directories
            if not below(each, *tops) and (each not in around or _mode(each) != _PLAIN_MODE)
        )


class Whole:
    """Whether everything in a directory is needed."""

    def __init__(self, files: Iterable[str], directories: Iterable[str], listed: Iterable[str]) -> None:
        self._needed = {*files, *directories}
        self._listed = set(listed)
        self._known: dict[str, bool] = {}

    def __call__(self, place: str) -> bool:
        """For a directory whose names were read; others are never needed as a whole."""
        if place not in self._known:
            self._known[place] = place in self._listed and all(map(self._is_needed, _entries(place)))
        return self._known[place]

    def _is_needed(self, path: str) -> bool:
        is_directory = Path(path).is_dir() and not Path(path).is_symlink()
        return self(path) if is_directory else path in self._needed


def younger(paths: Iterable[str], moment: float) -> set[str]:
    """Those that were made after the moment (seconds since 1970), where the file system tells it."""
    there = [path for path in paths if "\n" not in path and os.path.lexists(path)]
    young = set()
    for start in range(0, len(there), _AT_ONCE):
        some = there[start : start + _AT_ONCE]
        told = subprocess.run(
            ["stat", "--printf=%.3W\n", "--", *some], capture_output=True, check=False
        ).stdout
        births = told.decode().splitlines()
        if len(births) == len(some):
            young |= {path for path, birth in zip(some, births, strict=True) if _number(birth) > moment}
    return young


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _entries(place: str) -> list[str]:
    try:
        return sorted(entry.path for entry in os.scandir(place))
    except OSError:
        return []


def _mode(path: str) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


def _once(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)
