"""Recipes: what was built, from what, so that it is known again, and can be built again by its name alone.

<cache>/recipes/<name>.json     one for each kernel that was built
<cache>/recipes/files/<sha256>  its patches and configuration files, as they were
<cache>/recipes/aliases.json    other names, given by the user
"""

import hashlib
import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from ktrial.installation import cache_directory
from ktrial.kernels.build.lately_used import LatelyUsed
from ktrial.kernels.errors import BadKernelName, KernelNameAmbiguous
from ktrial.kernels.files import write_atomically
from ktrial.model.base import Model
from ktrial.model.kernel import Build

PREFIX = "build:"
_SHORTEST_KEY = 4
_SHOWN = 6
"""Of several kernels that a name may mean."""


class Recipe(Model):
    """How one kernel was built."""

    build: Build
    fingerprint: str
    """Of everything that was asked, and of the source's content and the compiler then."""
    content: str
    """Of what was compiled: source, final configuration, flags, compiler. One content, one kernel."""
    cpu_seconds: float | None = None
    """What make and all that it ran took of the processors; None where nothing counted it."""


def keep(recipe: Recipe) -> None:
    """Write a recipe down, with the files that it needs."""
    files = _directory() / "files"
    files.mkdir(parents=True, exist_ok=True)
    contents = {patch.digest: patch.path for patch in recipe.build.patches}
    if recipe.build.config_digest:
        contents[recipe.build.config_digest] = recipe.build.config_file
    for digest, path in contents.items():
        keep_content(digest, Path(path))
    write_atomically(_path(recipe.build.name), recipe.model_dump_json())


def keep_content(digest: str, path: Path) -> None:
    """Keep a copy of the file, if it has that digest."""
    copy = _directory() / "files" / digest
    if copy.exists():
        return
    try:
        content = path.read_bytes()
    except OSError:
        return
    if hashlib.sha256(content).hexdigest() == digest:
        copy.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(copy, content)


def recipe_of(name: str) -> Recipe | None:
    """The recipe of a kernel's whole name."""
    return _read(_path(name))


def recipes() -> Iterator[Recipe]:
    """All that are kept."""
    for path in sorted(_directory().glob("build-*.json")):
        if recipe := _read(path):
            yield recipe


def content_kept(digest: str) -> Path | None:
    """The copy of a file with that digest, where one is kept."""
    path = _directory() / "files" / digest
    return path if digest and path.exists() else None


def whole_name(name: str) -> str:
    """A kernel's whole name, for its alias, its key's start, or its name's start; else as it is.

    Raises KernelNameAmbiguous where several are meant.
    """
    short_name = name.removeprefix(PREFIX)
    if short_name in (alias_names := aliases()):
        return alias_names[short_name]
    names = [recipe.build.name for recipe in recipes()]
    if f"{PREFIX}{short_name}" in names or len(short_name) < _SHORTEST_KEY:
        return f"{PREFIX}{short_name}"
    key = short_name.removeprefix("@")
    matches = [
        candidate
        for candidate in names
        if candidate.startswith(f"{PREFIX}{short_name}") or candidate.rpartition("@")[2].startswith(key)
    ]
    if len(matches) > 1:
        more = [f"and {len(matches) - _SHOWN} more (ktrial kernel list)"] if len(matches) > _SHOWN else []
        raise KernelNameAmbiguous(name=name, problem="", allowed="; ".join([*matches[:_SHOWN], *more]))
    return matches[0] if matches else f"{PREFIX}{short_name}"


def aliases() -> dict[str, str]:
    """Names that the user gave → whole names."""
    try:
        return dict(json.loads((_directory() / "aliases.json").read_bytes()))
    except (OSError, ValueError):
        return {}


def check_alias(alias: str) -> None:
    """Raise BadKernelName where a kernel cannot be called so."""
    if not alias or not alias.replace("-", "").replace(".", "").replace("_", "").isalnum():
        allowed = "letters, digits, '.', '-' and '_'"
        raise BadKernelName(name=alias, problem="it cannot be a kernel's other name", allowed=allowed)


def give_alias(alias: str, name: str) -> None:
    """Call a built kernel `build:ALIAS` too. Raises BadKernelName."""
    check_alias(alias)
    _directory().mkdir(parents=True, exist_ok=True)
    write_atomically(_directory() / "aliases.json", json.dumps(aliases() | {alias: name}))


def _directory() -> Path:
    return cache_directory() / "recipes"


def _path(name: str) -> Path:
    return _directory() / f"build-{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"


def _read(path: Path) -> Recipe | None:
    try:
        return Recipe.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


PLAIN, EXECUTABLE, LINK = "100644", "100755", "120000"
"""The modes of files as git writes them."""


@dataclass(frozen=True)
class Manifest:
    """All files of a source tree. Two trees with one manifest are the same source."""

    files: Mapping[str, str]
    """Path, relative with slashes → `MODE OBJECT`, where the object is git's name of the content (SHA-1)."""
    _root: "Manifest | None" = field(default=None, compare=False, repr=False)
    """What it was made from by changes: of 80,000 files a patch changes few, and only those are looked at."""
    _changes: Mapping[str, str | None] = field(default_factory=dict, compare=False, repr=False)
    _parts: "dict[re.Pattern[str], Manifest]" = field(default_factory=dict, compare=False, repr=False)
    _compared: "dict[int, tuple[Manifest, set[str]]]" = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over all of it."""
        text = "".join(self._lines)
        return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()

    @cached_property
    def _paths(self) -> list[str]:
        return sorted(self.files)

    @cached_property
    def _lines(self) -> list[str]:
        if self._root is None or not all(
            path in self._root.files and entry for path, entry in self._changes.items()
        ):
            return [_line(path, self.files[path]) for path in self._paths]
        lines = list(self._root._lines)
        for path in self._changes:
            lines[bisect_left(self._root._paths, path)] = _line(path, self.files[path])
        return lines

    @cached_property
    def directories(self) -> frozenset[str]:
        """The paths of all directories."""
        directories: set[str] = set()
        for path in self.files:
            above = path.rpartition("/")[0]
            while above and above not in directories:
                directories.add(above)
                above = above.rpartition("/")[0]
        return frozenset(directories)

    def but(self, changes: Mapping[str, str | None]) -> "Manifest":
        """The same with other files; None: the file is gone."""
        files = dict(self.files)
        for path, entry in changes.items():
            if entry is None:
                files.pop(path, None)
            else:
                files[path] = entry
        return Manifest(files, self._root or self, {**self._changes, **changes})

    def part(self, pattern: re.Pattern[str]) -> "Manifest":
        """Those of the files whose whole path fits the pattern."""
        part = self._parts.get(pattern)
        if part is None:
            if self._root is None:
                chosen = {path: entry for path, entry in self.files.items() if pattern.fullmatch(path)}
                part = Manifest(chosen)
            else:
                changes = {path: entry for path, entry in self._changes.items() if pattern.fullmatch(path)}
                part = self._root.part(pattern)
                part = part.but(changes) if changes else part
            self._parts[pattern] = part
        return part

    def differing(self, previous: "Manifest") -> list[str]:
        """Paths that are not the same in both, sorted."""
        ours, theirs = self._root or self, previous._root or previous
        either = {*self._changes, *previous._changes}
        if ours is not theirs:
            either |= ours._apart_from(theirs)
        before, after = previous.files, self.files
        return sorted(path for path in either if after.get(path) != before.get(path))

    def _apart_from(self, other: "Manifest") -> set[str]:
        """The paths that are not the same in both, worked out once: each build looks at every build tree."""
        seen, paths = self._compared.get(id(other), (None, set[str]()))
        if seen is not other:
            ours, theirs = self.files, other.files
            paths = {path for path, entry in ours.items() if theirs.get(path) != entry}
            paths |= theirs.keys() - ours.keys()
            while len(self._compared) >= _MOST_COMPARED:
                self._compared.pop(next(iter(self._compared)))
            self._compared[id(other)] = other, paths
        return paths


_MOST_COMPARED = 8


def _line(path: str, entry: str) -> str:
    return f"{entry}\t{path}\n"


def object_of(content: bytes) -> str:
    """git's name for a file's content: SHA-1 of `blob SIZE`, NUL, content (git-hash-object)."""
    header = f"blob {len(content)}\0".encode()
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def keep_manifest(manifest: Manifest, path: Path) -> None:
    """Write it down."""
    write_atomically(path, json.dumps(manifest.files))
    with suppress(OSError):  # gone again
        _READ.keep(path, (_state_of(path), manifest))


def kept_manifest(path: Path) -> Manifest | None:
    """The one that was written down; None where there is none that can be read.

    It is read once as long as the file is the same: it has some 80,000 names.
    """
    try:
        state, kept = _state_of(path), _READ.get(path)
        if kept is not None and kept[0] == state:
            return kept[1]
        manifest = Manifest(json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return None
    _READ.keep(path, (state, manifest))
    return manifest


def _state_of(path: Path) -> tuple[int, int, int]:
    seen = path.stat()
    return seen.st_ino, seen.st_size, seen.st_mtime_ns


_READ = LatelyUsed[Path, tuple[tuple[int, int, int], Manifest]](8)
"""More than there are build trees, each of which is looked at before every build, and a source."""
