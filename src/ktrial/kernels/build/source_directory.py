"""A directory as a source: which of its files are source, and what they hold; read again where changed."""

import fnmatch
import json
import os
import re
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from ktrial.kernels.build.recipes import EXECUTABLE, LINK, PLAIN, Manifest, object_of
from ktrial.kernels.cache.atomic_write import write_atomically

_PRODUCT = re.compile(
    "|".join(
        fnmatch.translate(pattern)
        for pattern in (
            *(
                "*.o",
                "*.a",
                "*.ko",
                "*.mod",
                "*.mod.c",
                "*.cmd",
                "*.order",
                "*.dtb",
                "*.so",
                "*.so.dbg",
                "*.s",
            ),
            *("*.orig", "*.rej", "*~", ".config", ".config.old", ".tmp_*", ".version", "*.symtypes", "*.su"),
            *(
                "vmlinux",
                "vmlinux.*[!Sh]",
                "System.map",
                "Module.symvers",
                "modules.builtin*",
                "modules.order",
            ),
            *("*.tab.[ch]", "*.lex.c", "tags", "TAGS", "cscope.*", "bzImage"),
        )
    )
)
"""What make writes when it builds in place, and what editors leave: see Linux's .gitignore."""
_KEPT = frozenset({"vmlinux.lds.S", "vmlinux.lds.h"})
_PRODUCT_DIRECTORIES = ("include/generated", "include/config", "arch/x86/include/generated")
_RACY_NS = 2_000_000_000
"""A file that was changed this short ago may change again without another time stamp."""

Remembered = dict[str, list[int | str]]
"""Path → size, mtime, ctime, inode, and what the manifest says of it."""


def manifest_of(directory: Path, memory: Path | None = None) -> Manifest:
    """The manifest of a directory's source files; `.git`, and what builds and editors leave, is left out.

    `memory`: a file that keeps what was read, so that only files whose size or times differ are read again.
    """
    known = _remembered(memory)
    entries: Remembered = {}
    now = time.time_ns()
    for path in source_files(directory):
        try:
            facts = os.lstat(os.path.join(directory, path))  # noqa: PTH118 - 80000 times
        except FileNotFoundError:
            continue  # git lists what it tracks, and it is deleted
        if not (stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode)):
            continue
        stamp = [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino]
        old = known.get(path)
        if old is not None and old[:4] == stamp and _mode(facts) == str(old[4])[:6]:
            entries[path] = old
        else:
            racy = now - max(facts.st_mtime_ns, facts.st_ctime_ns) < _RACY_NS
            entries[path] = [*([0] * 4 if racy else stamp), _entry(directory / path, facts)]
    if memory is not None and entries != known:
        memory.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(memory, json.dumps(entries))
    return Manifest({path: str(one[4]) for path, one in entries.items()})


def manifest_of_all(directory: Path) -> Manifest:
    """The manifest of every file in a directory, whatever it is called."""
    entries = {}
    for parent, directories, names in os.walk(directory):
        links = [name for name in directories if os.path.islink(f"{parent}/{name}")]  # noqa: PTH114
        for name in [*names, *links]:
            path = Path(parent, name)
            entries[str(path.relative_to(directory))] = _entry(path, path.lstat())
    return Manifest(entries)


def source_files(directory: Path) -> Iterator[str]:
    """What is source: in a git tree what git does not ignore, elsewhere what make did not write. Relative.

    Debian's source has a .gitignore that ignores all of it, as their repository has debian/ only: there it is
    what git tracks, and what make did not write.
    """
    if ignores_source(directory):
        tracked = _git_lists(directory, "--cached") or set()
        return iter(sorted(tracked.union(_walked(directory))))
    listed = _git_lists(directory, "--cached", "--others", "--exclude-standard")
    return iter(sorted(listed)) if listed is not None else _walked(directory)


def ignores_source(directory: Path) -> bool:
    """Whether the directory is a git tree that ignores what every kernel's source has."""
    if not (directory / ".git").exists():
        return False
    # Also where it is tracked all the same: new files beside it would not be.
    command = ["git", "-C", str(directory), "check-ignore", "--quiet", "--no-index", "Makefile"]
    try:
        return (
            subprocess.run(command, stdin=subprocess.DEVNULL, check=False, capture_output=True).returncode
            == 0
        )
    except FileNotFoundError:
        return False


def content_of(path: Path) -> bytes:
    """A file's content, or a symbolic link's target."""
    return os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes()  # noqa: PTH115 - exact


def _remembered(memory: Path | None) -> Remembered:
    try:
        return dict(json.loads(memory.read_bytes())) if memory is not None else {}
    except (OSError, ValueError):
        return {}


def _mode(facts: os.stat_result) -> str:
    if stat.S_ISLNK(facts.st_mode):
        return LINK
    return EXECUTABLE if facts.st_mode & stat.S_IXUSR else PLAIN


def _entry(path: Path, facts: os.stat_result) -> str:
    return f"{_mode(facts)} {object_of(content_of(path))}"


def _git_lists(directory: Path, *which: str) -> set[str] | None:
    """None where the directory is not the top of a git tree, or git does not say."""
    if not (directory / ".git").exists():
        return None
    command = ["git", "-C", str(directory), "ls-files", "-z", *which]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        return None
    return None if done.returncode else {os.fsdecode(path) for path in done.stdout.split(b"\0") if path}


def _walked(directory: Path) -> Iterator[str]:
    for parent, directories, names in os.walk(directory):
        below = os.path.relpath(parent, directory)
        before = "" if below == "." else f"{below}/"
        links = [name for name in directories if os.path.islink(f"{parent}/{name}")]  # noqa: PTH114
        directories[:] = sorted(
            name
            for name in directories
            if name != ".git" and name not in links and not _is_output(directory, f"{before}{name}")
        )
        for name in [*names, *links]:
            if name in _KEPT or not _PRODUCT.match(name):
                yield f"{before}{name}"


def _is_output(directory: Path, path: str) -> bool:
    """Whether the directory was written by make: one of its own, or another build's O=."""
    return path in _PRODUCT_DIRECTORIES or (directory / path / "include/config/auto.conf").exists()
