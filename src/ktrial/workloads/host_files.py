"""Files of this host that a guest gets: those that the user names, and what the programs among them need.

A program needs itself, its interpreter and their shared libraries. Nothing is executed to find out (`ldd`
runs the program's loader): the files are read. A name stands for a file, for a directory with all that is
below it, or for what a pattern finds.
"""

import glob
import os
import re
import shlex
import shutil
import stat
import subprocess
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from elftools.common.exceptions import ELFError

from ktrial.format import number_format
from ktrial.model.machine import CarriedFile, guest_path_problem
from ktrial.text_lines import lines_of
from ktrial.workloads.errors import BadWorkload, WorkloadError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

MOST_BYTES = 1 << 30
"""Of all files of a workload together: the guest holds them in its memory."""
MOST_FILES = 100_000
_IS_OF_A_SHELL = re.compile(r"[\s|&;<>$*?~`]")
_LOADER_CACHE = "/etc/ld.so.cache"
_MOST_STEPS = 1000
"""Parts of a path that are looked at, links followed: one that leads in a circle ends there."""
_KINDS = {
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}
_DEFAULT_DIRECTORIES = tuple(
    Path(directory)
    for directory in (
        "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    )
)
"""Where the loader looks without its cache: Debian's and Ubuntu's, then everybody's."""
_Wanted = tuple[str, tuple[Path, ...]]
"""A file, and where its libraries are looked for besides the usual places."""


def program_path(workload: str, program: str) -> str:
    """Where the host has the program: a path as it is, a name by the host's PATH. Raises WorkloadError."""
    path = shutil.which(program) if "/" not in program else program
    if path is None or not Path(path).is_file():
        hint = "give its whole path, or install it; it is carried into the guest from here"
        if _IS_OF_A_SHELL.search(program):
            hint = (
                "these words were given as one; write a program and its arguments as separate words; to "
                f"have a shell read them: sh -c {shlex.quote(program)}"
            )
        message = f"Workload {workload}: there is no program {program} on this host."
        raise WorkloadError(message, hint=hint)
    return str(Path(path).absolute())


def with_all_they_need(workload: str, files: tuple[str, ...]) -> tuple[CarriedFile, ...]:
    """The files, and everything that the programs among them need, each once, at the host's own paths.

    A directory brings all that is below it, a pattern what it finds; of what the programs among those need
    comes what is here.

    Raises WorkloadError.
    """
    tree = expanded(workload, files)
    carried: dict[str, CarriedFile] = {}
    _carry(workload, carried, deque((file, ()) for file in tree.files), strict=True)
    _carry(workload, carried, deque((file, ()) for file in tree.inside), strict=False)
    return _checked(workload, (*dict.fromkeys(tree.around), *carried.values()))


def with_links_kept(workload: str, program: str, files: tuple[str, ...]) -> tuple[CarriedFile, ...]:
    """The same, where links stay links; only the program must have all that it may need, for it has run here.

    Raises as `with_all_they_need`.
    """
    tree = expanded(workload, files, keep_links=True)
    carried: dict[str, CarriedFile] = {}
    _carry(workload, carried, deque([(program, ())]), strict=True)
    _carry(workload, carried, deque((file, ()) for file in (*tree.files, *tree.inside)), strict=False)
    around = dict.fromkeys(tree.around)
    links = links_on_the_way(
        [carried_file.guest for carried_file in (*around, *carried.values()) if not carried_file.link]
    )
    return _checked(workload, (*dict.fromkeys((*links, *around)), *carried.values()))


def _checked(workload: str, files: tuple[CarriedFile, ...]) -> tuple[CarriedFile, ...]:
    """The files. Raises WorkloadError where a guest cannot have one of them: before anything is booted."""
    for file in files:
        if problem := guest_path_problem(file.guest):
            raise _not_carried(workload, file.host, problem)
    return files


def links_on_the_way(paths: Iterable[str]) -> tuple[CarriedFile, ...]:
    """Every link of this host that the absolute paths lead through, each once."""
    links: dict[Path, str] = {}
    for path in paths:
        waiting, position, steps = list(Path(path).parts[1:]), Path("/"), 0
        while waiting and steps < _MOST_STEPS:
            steps += 1
            part = waiting.pop(0)
            step = position.parent if part == ".." else position / part
            if part != ".." and step not in links and step.is_symlink():
                links[step] = str(step.readlink())
            if part != ".." and step in links:
                target = Path(links[step])
                waiting = [*(target.parts[1:] if target.is_absolute() else target.parts), *waiting]
                position = Path("/") if target.is_absolute() else position
            else:
                position = step
    return tuple(CarriedFile(host=place, guest=str(place), link=target) for place, target in links.items())


def _carry(workload: str, carried: dict[str, CarriedFile], waiting: deque[_Wanted], *, strict: bool) -> None:
    """Add what waits, and what it needs. Not strict: what a file of a directory lacks is its affair."""
    while waiting:
        file, search = waiting.popleft()
        if file in carried:
            continue
        carried[file] = _carried(workload, file)
        try:
            waiting += _needs(workload, file, search)
        except WorkloadError:
            if strict:
                raise


def _carried(workload: str, file: str) -> CarriedFile:
    path = Path(file)
    try:
        real = path.resolve(strict=True)
        mode = real.stat().st_mode & 0o777
        with real.open("rb"):
            pass
    except OSError as error:
        raise _not_carried(workload, file, error.strerror or str(error)) from None
    return CarriedFile(host=real, guest=str(path.absolute()), mode=mode)


def _not_carried(workload: str, path: str | Path, problem: str) -> WorkloadError:
    return WorkloadError(f"Workload {workload}: cannot carry {path} into the guest: {problem}.")


def _needs(workload: str, file: str, search: tuple[Path, ...]) -> list[_Wanted]:
    with Path(file).open("rb") as opened:
        start = opened.read(256)
    if start.startswith(b"#!"):
        return [(program, ()) for program in _interpreters(workload, start)]
    if not start.startswith(b"\x7fELF"):
        return []
    needed = needed_by(workload, Path(file), search)
    libraries: list[_Wanted] = [(library, needed.search) for library in needed.files]
    return [*libraries, (_LOADER_CACHE, ())] if needed.by_cache_only else libraries


def _interpreters(workload: str, start: bytes) -> list[str]:
    """The program in a script's first line; after env(1), the one that env is to find as well."""
    words = shlex.split(start.split(b"\n")[0][2:].decode(errors="replace"))
    if not words:
        return []
    programs = [program_path(workload, words[0])]
    if Path(words[0]).name == "env":
        names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        programs += [program_path(workload, name) for name in names[:1]]
    return programs


# --- Shared libraries, as the loader finds them (ld.so(8)).


@dataclass(frozen=True)
class Needed:
    """What one ELF file needs."""

    files: tuple[str, ...]
    """The loader and the libraries that the file names, not those that they need in turn."""
    by_cache_only: bool
    """Whether one of them is where the loader finds it by /etc/ld.so.cache only."""
    search: tuple[Path, ...]
    """Where those libraries look as well, for their own: DT_RPATH is inherited, DT_RUNPATH is not."""


@dataclass(frozen=True)
class _Dynamic:
    loader: tuple[str, ...]
    names: tuple[str, ...]
    search: tuple[Path, ...]
    inherited: tuple[Path, ...]


def needed_by(workload: str, path: Path, inherited: tuple[Path, ...] = ()) -> Needed:
    """What the program or library at `path` needs; nothing where it is static.

    `inherited` is the `search` of what needs this library.

    Raises WorkloadError.
    """
    dynamic = _read(workload, path)
    search = (*dynamic.search, *inherited, *_DEFAULT_DIRECTORIES)
    libraries, by_cache_only = list(dynamic.loader), False
    for name in dynamic.names:
        library = _first(name, search)
        if library is None:
            library, by_cache_only = _cached().get(name), True
        if library is None:
            raise WorkloadError(
                f"Workload {workload}: {path} needs the shared library {name}, which this host does not "
                "have.",
                hint="install it, or link the program statically",
            )
        libraries.append(library)
    return Needed(tuple(libraries), by_cache_only, search=(*dynamic.inherited, *inherited))


def _read(workload: str, path: Path) -> _Dynamic:
    try:
        status = path.stat()
        dynamic_or_problem = _read_once(
            path, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        )
    except (ELFError, OSError, ValueError) as error:
        raise _not_carried(workload, path, f"it is a damaged program ({error})") from None
    if isinstance(dynamic_or_problem, str):
        raise _not_carried(workload, path, dynamic_or_problem)
    return dynamic_or_problem


@lru_cache(maxsize=4096)
def _read_once(path: Path, version: tuple[int, ...]) -> _Dynamic | str:
    """What the file says, or what is wrong with it. Each treatment of each block asks for the same few.

    `version`: of the file, by what its inode says: another one is read anew.
    """
    from elftools.elf.elffile import ELFFile  # most commands look into no program

    with path.open("rb") as opened:
        elf = ELFFile(opened)
        if elf["e_machine"] != "EM_X86_64" or elf.elfclass != 64:
            return f"it is a program for {elf.get_machine_arch()}, {elf.elfclass} bits, not for x86-64"
        return _dynamic(elf, path)


def _dynamic(elf: "ELFFile", path: Path) -> _Dynamic:
    from elftools.elf.dynamic import DynamicSegment
    from elftools.elf.segments import InterpSegment

    loader: list[str] = []
    tags: dict[str, list[str]] = {"DT_NEEDED": [], "DT_RPATH": [], "DT_RUNPATH": []}
    for segment in elf.iter_segments():
        if isinstance(segment, InterpSegment):
            loader.append(segment.get_interp_name())
        elif isinstance(segment, DynamicSegment):
            for tag in segment.iter_tags():
                if tag.entry.d_tag in tags:
                    tags[tag.entry.d_tag].append(getattr(tag, tag.entry.d_tag[3:].lower()))
    runpath, rpath = (_search_directories(tags[tag], path) for tag in ("DT_RUNPATH", "DT_RPATH"))
    return _Dynamic(
        loader=tuple(loader),
        names=tuple(tags["DT_NEEDED"]),
        search=runpath or rpath,
        inherited=() if runpath else rpath,
    )


def _search_directories(lists: list[str], path: Path) -> tuple[Path, ...]:
    return tuple(_tokens_expanded(part, path) for paths in lists for part in paths.split(":") if part)


def _tokens_expanded(part: str, path: Path) -> Path:
    """ld.so(8), dynamic string tokens. $ORIGIN is the directory of the file itself, not of a link to it."""
    origin = str(path.resolve().parent)
    for token, value in (("ORIGIN", origin), ("LIB", "lib/x86_64-linux-gnu"), ("PLATFORM", "x86_64")):
        part = part.replace(f"${{{token}}}", value).replace(f"${token}", value)
    return Path(part)


def _first(name: str, directories: tuple[Path, ...]) -> str | None:
    """The name is a path where it holds a slash."""
    candidates = (Path(name),) if "/" in name else tuple(directory / name for directory in directories)
    return next((_without_parents(candidate) for candidate in candidates if candidate.is_file()), None)


def _without_parents(library: Path) -> str:
    """`bin/../lib/libjli.so` as the kernel walks it: links are followed before `..` goes up."""
    if ".." not in library.parts:
        return str(library)
    shortened = os.path.normpath(library)
    same = Path(shortened).is_file() and library.samefile(shortened)
    return shortened if same else str(library.parent.resolve() / library.name)


@cache
def _cached() -> dict[str, str]:
    """The loader's cache, as ldconfig prints it: `libz.so.1 (libc6,x86-64) => /opt/lib/libz.so.1`."""
    ldconfig = shutil.which("ldconfig", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if ldconfig is None:
        return {}
    listing = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False)
    libraries: dict[str, str] = {}
    for line in lines_of(listing.stdout):
        name, _, description = line.strip().partition(" (")
        kind, _, path = description.partition(") => ")
        if path and kind == "libc6,x86-64":
            libraries.setdefault(name, path)
    return libraries


# --- What names stand for. Directories are walked without following links: a link stays one, with its target.
# What is neither file, directory nor link (a socket, a device), or cannot be read, is left out, and told.


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
        """Raise BadWorkload, which names the directories that hold the most."""
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
        raise BadWorkload(
            f"Workload {workload}: its files are too many or too large for a guest: {files} files, "
            f"{number_format.size(total)}.",
            hint=f"at most {MOST_FILES:,} files and {number_format.size(MOST_BYTES)} are carried, for they "
            f"lie in the guest's memory; most is in {most}: name what is needed of it",
        )


def expanded(workload: str, names: tuple[str, ...], *, keep_links: bool = False) -> FileTree:
    """What the names stand for; `keep_links`: a name that is a link is that, and what it leads to.

    Raises WorkloadError."""
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
                raise _not_carried(workload, name, "no file matches this pattern")
            for match in map(Path, matching):
                _add(tree, match)
                if match.is_dir() and not match.is_symlink():
                    _walk(tree, match)
        elif path.is_dir():
            _walk(tree, path.absolute())
        else:
            tree.files.append(name)
    tree.check_size(workload)
    return tree


def is_pattern(name: str) -> bool:
    """Whether the name is a pattern (`*`, `?`, `[…]`, `**`), and no file of that very name."""
    return glob.has_magic(name) and not os.path.lexists(name)


def matches(pattern: str) -> list[str]:
    """What an absolute pattern finds, sorted."""
    return sorted(str(path) for path in Path("/").glob(pattern.lstrip("/")))


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


def directories(paths: tuple[str, ...]) -> Iterator[CarriedFile]:
    """Directories that a guest has, empty; with the mode that they have here, else 755."""
    for path in paths:
        try:
            mode = stat.S_IMODE(Path(path).stat().st_mode)
        except OSError:
            mode = 0o755
        yield CarriedFile(host=Path(path), guest=path, mode=mode, directory=True)
