"""What a name among `files` stands for: a file, a directory with all that is below it, or a pattern.

Directories are walked without following links: a link stays one, with the target that it has. What is neither
file, directory nor link (a socket, a FIFO, a device), or cannot be read, is left out, and told.
"""

import glob
import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ktrial.format import number_format
from ktrial.model.machine import CarriedFile
from ktrial.workloads.errors import FileNotCarried, TooMuchToCarry

MOST_BYTES = 1 << 30
"""Of all files of a workload together: the guest holds them in its memory."""
MOST_FILES = 100_000
_KINDS = {
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


@dataclass
class FileTree:
    """What some names stand for."""

    files: list[str] = field(default_factory=list)
    """Named one by one: they bring what programs need."""
    inside: list[str] = field(default_factory=list)
    """Files found in directories and by patterns: they bring what is found of what programs need."""
    around: list[CarriedFile] = field(default_factory=list)
    """Directories and links."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Path → what it is, or why it cannot be read."""
    walked: set[Path] = field(default_factory=set)

    def check_size(self, workload: str) -> None:
        """Raise TooMuchToCarry, which names the directories that hold the most."""
        sizes = {name: size_of(name) for name in dict.fromkeys((*self.files, *self.inside))}
        count, total = len(sizes) + len(self.around), sum(sizes.values())
        if count <= MOST_FILES and total <= MOST_BYTES:
            return
        heaviest: Counter[str] = Counter()
        for name, size in sizes.items():
            heaviest[str(Path(name).parent)] += size
        most = ", ".join(f"{place} ({number_format.size(size)})" for place, size in heaviest.most_common(3))
        # Not all were looked at.
        files = f"more than {MOST_FILES:,}" if count > MOST_FILES else f"{count:,}"
        facts = {"count": files, "size": number_format.size(total), "most": most}
        limits = {"files": f"{MOST_FILES:,}", "bytes": number_format.size(MOST_BYTES)}
        raise TooMuchToCarry(workload=workload, **facts, **limits)


def is_pattern(name: str) -> bool:
    """Whether the name is a pattern (`*`, `?`, `[…]`, `**`), and no file of that very name."""
    return glob.has_magic(name) and not os.path.lexists(name)


def matches(pattern: str) -> list[str]:
    """What an absolute pattern finds, sorted."""
    return sorted(str(path) for path in Path("/").glob(pattern.lstrip("/")))


def expanded(workload: str, names: tuple[str, ...], *, keep_links: bool = False) -> FileTree:
    """What the names stand for; `keep_links`: a name that is a link is that, and what it leads to.

    Raises FileNotCarried (nothing there), TooMuchToCarry."""
    tree = FileTree()
    for name in names:
        path = Path(name)
        if keep_links and path.is_symlink():
            _add(tree, path)
            if path.is_file():
                tree.inside.append(name)
        elif is_pattern(name):
            matching = matches(name)
            if not matching:
                raise FileNotCarried(workload=workload, path=name, problem="no file matches this pattern")
            for each in map(Path, matching):
                _add(tree, each)
                if each.is_dir() and not each.is_symlink():
                    _walk(tree, each)
        elif path.is_dir():
            _walk(tree, path.absolute())
        else:
            tree.files.append(name)
    tree.check_size(workload)
    return tree


def _walk(tree: FileTree, top: Path) -> None:
    if not tree.walked.isdisjoint((top, *top.parents)):
        return
    tree.walked.add(top)
    _directory(tree, top)
    for place, directories, files in os.walk(top, onerror=lambda error: _unreadable(tree, error)):
        directories.sort()
        for name in sorted((*directories, *files)):
            _add(tree, Path(place, name))
        if len(tree.inside) + len(tree.around) > MOST_FILES:
            return  # what follows would only make the error slower


def _add(tree: FileTree, path: Path) -> None:
    try:
        mode = path.lstat().st_mode
        target = str(path.readlink()) if stat.S_ISLNK(mode) else ""
        f"{path}{target}".encode()
    except OSError as error:
        _unreadable(tree, error)
    except UnicodeEncodeError:
        tree.left_out[os.fsencode(path).decode(errors="backslashreplace")] = "its name is not UTF-8"
    else:
        if target:
            tree.around.append(CarriedFile(host=path, guest=str(path), link=target))
        elif stat.S_ISDIR(mode):
            _directory(tree, path)
        elif not stat.S_ISREG(mode):
            tree.left_out[str(path)] = _KINDS.get(stat.S_IFMT(mode), "no file")
        elif not os.access(path, os.R_OK):
            tree.left_out[str(path)] = "it cannot be read"
        else:
            tree.inside.append(str(path))


def _directory(tree: FileTree, path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    tree.around.append(CarriedFile(host=path, guest=str(path), mode=mode, directory=True))


def _unreadable(tree: FileTree, error: OSError) -> None:
    tree.left_out[str(error.filename)] = (error.strerror or "it cannot be read").lower()


def size_of(path: str) -> int:
    """Bytes of a file; 0 where it is not there."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def directories(workload: str, paths: tuple[str, ...]) -> Iterator[CarriedFile]:
    """Directories that a guest has, empty; with the mode that they have here, else 755."""
    for path in paths:
        try:
            mode = stat.S_IMODE(Path(path).stat().st_mode)
        except OSError:
            mode = 0o755
        yield CarriedFile(host=Path(path), guest=path, mode=mode, directory=True)
