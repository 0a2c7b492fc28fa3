"""Sources: a directory, Debian's, a git revision, a tarball; each a manifest, and a way to get its files."""

import bz2
import fnmatch
import gzip
import hashlib
import json
import lzma
import os
import re
import shutil
import stat
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import IO, Any, Protocol

import lz4.frame
import zstandard

from ktrial.installation import cache_directory
from ktrial.kernels import Progress, silent
from ktrial.kernels.build.debian_sources import debian_source, package_tools
from ktrial.kernels.build.recipes import (
    EXECUTABLE,
    LINK,
    PLAIN,
    Manifest,
    keep_manifest,
    kept_manifest,
    object_of,
)
from ktrial.kernels.errors import BuildError, NotASource, SourceUnusable
from ktrial.kernels.files import file_system_errors, require_space, write_atomically
from ktrial.kernels.kernel_cache import Cache, held
from ktrial.kernels.programs import require_tool
from ktrial.kernels.tar import tarfile
from ktrial.system_tools import Tool

DEBIAN_PREFIX, GIT_PREFIX = "debian:", "git:"
_GIT = re.compile(r"git:(?P<directory>.+)@(?P<revision>[^@]+)")


class SourceReader(Protocol):
    """Where the files of a source are had from."""

    def content(self, path: str) -> bytes:
        """A file's content; a symbolic link's target. Raises KernelError, OSError."""
        ...

    def place(self, path: str, target: Path) -> None:
        """Make the new file `target`, in a way that costs least: a hard link where nothing else writes."""
        ...


@dataclass(frozen=True)
class Snapshot:
    """A source at one moment."""

    source: str
    """As the Build names it."""
    manifest: Manifest
    directory: Path
    """The directory or repository that it is read from."""
    unchanging: bool = False
    """Whether it is the cache's own."""
    repository: bool = False
    revision: str = ""

    @contextmanager
    def reader(self) -> Iterator[SourceReader]:
        """Read its files."""
        if self.repository:
            with git_objects(self.directory) as objects:
                yield _FromGit(self.manifest.files, objects)
        else:
            yield _FromDirectory(self.manifest.files, self.directory, self.unchanging)

    def described(self) -> str:
        """Its revision or version, for people."""
        if self.repository:
            return described(self.directory, self.revision)
        if self.source.startswith(DEBIAN_PREFIX):
            return self.directory.name.rpartition("_")[2]
        tree = tree_in(self.directory)
        return tree.commit() or tree.version


@dataclass(frozen=True)
class _FromDirectory:
    files: Mapping[str, str]
    directory: Path
    unchanging: bool

    def content(self, path: str) -> bytes:
        blob = content_of(self.directory / path)
        if not self.unchanging and object_of(blob) != self.files[path].split()[1]:
            raise BuildError(
                f"{self.directory} was changed while it was read: {path}.",
                hint="start again when nobody writes to it",
            )
        return blob

    def place(self, path: str, target: Path) -> None:
        if self.unchanging:
            try:
                os.link(self.directory / path, target, follow_symlinks=False)
            except OSError:  # another file system, or too many links
                shutil.copy2(self.directory / path, target, follow_symlinks=False)
        else:
            write_file(target, self.files[path], self.content(path))


class Objects:
    """Contents by their names, through one `git cat-file`."""

    def __init__(self, to: IO[bytes], back: IO[bytes]) -> None:
        self._to, self._back = to, back

    def content(self, name: str) -> bytes:
        """The content of a blob."""
        self._to.write(f"{name}\n".encode())
        self._to.flush()
        header = self._back.readline().split()
        if len(header) != 3 or header[1] != b"blob":
            raise OSError(f"git has no object {name}")
        content = self._back.read(int(header[2]))
        self._back.read(1)
        return content


@dataclass(frozen=True)
class _FromGit:
    files: Mapping[str, str]
    objects: Objects

    def content(self, path: str) -> bytes:
        return self.objects.content(self.files[path].split()[1])

    def place(self, path: str, target: Path) -> None:
        write_file(target, self.files[path], self.content(path))


def write_file(target: Path, entry: str, content: bytes) -> None:
    """Make the new file `target` as the manifest's entry has it."""
    mode = entry.split()[0]
    if mode == LINK:
        target.symlink_to(os.fsdecode(content))
        return
    target.write_bytes(content)
    target.chmod(0o755 if mode == EXECUTABLE else 0o644)


def snapshot_of(source: str, progress: Progress = silent) -> Snapshot:
    """The source as it is now, fetched or unpacked where it has to be.

    Raises NotASource, SourceUnusable, KernelError, FetchFailed, CacheFull, ToolMissing.
    """
    if source.startswith(DEBIAN_PREFIX):
        return _cached_snapshot(source, debian_source(source.removeprefix(DEBIAN_PREFIX), progress), progress)
    if source.startswith(GIT_PREFIX):
        directory, revision = git_parts(source)
        return Snapshot(
            source, manifest_at(directory, revision), directory, repository=True, revision=revision
        )
    path = Path(source)
    if path.is_file():
        return _cached_snapshot(source, unpacked(path, progress), progress)
    directory = tree_in(path).directory
    progress("looking at the source")
    memory = (
        cache_directory() / "sources" / "seen" / f"{hashlib.sha256(str(directory).encode()).hexdigest()}.json"
    )
    return Snapshot(source, manifest_of(directory, memory), directory)


def source_tools(source: str) -> tuple[Tool, ...]:
    """The programs that fetch or read it. Nothing is fetched."""
    if source.startswith(DEBIAN_PREFIX):
        return package_tools(source.removeprefix(DEBIAN_PREFIX))
    if source.startswith(GIT_PREFIX):
        return (GIT,)
    return unpacking_tools(Path(source)) if Path(source).is_file() else ()


def git_parts(source: str) -> tuple[Path, str]:
    """The repository and the revision in `git:DIRECTORY@REVISION`. Raises SourceUnusable."""
    match = _GIT.fullmatch(source)
    if match is None:
        problem, advice = "it has no directory and revision", "write git:DIRECTORY@REVISION: git:linux@v6.1"
        raise SourceUnusable(source=source, problem=problem, advice=advice)
    return Path(match["directory"]), match["revision"]


def _cached_snapshot(source: str, directory: Path, progress: Progress) -> Snapshot:
    """One that is the cache's own: nobody changes it, so it is read once."""
    try:
        tree_in(directory)
    except NotASource as error:
        raise NotASource(directory=source, problem=error.problem) from None
    memory = directory.with_name(f"{directory.name}.manifest.json")
    manifest = kept_manifest(memory)
    if manifest is None:
        progress("looking at the source")
        manifest = manifest_of(directory)
        keep_manifest(manifest, memory)
    return Snapshot(source, manifest, directory, unchanging=True)


# A directory as a source: which of its files are source, and what they hold; read again where changed.

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
_NOT_PRODUCTS = frozenset({"vmlinux.lds.S", "vmlinux.lds.h"})
_PRODUCT_DIRECTORIES = ("include/generated", "include/config", "arch/x86/include/generated")
_RACY_NS = 2_000_000_000
"""A file that was changed this short ago may change again without another time stamp."""
Remembered = dict[str, list[int | str]]
"""Path → size, mtime, ctime, inode, and what the manifest says of it."""


def manifest_of(
    directory: Path, memory: Path | None = None, taken: Callable[[str], bool] = lambda _path: True
) -> Manifest:
    """The manifest of a directory's source files; `.git`, and what builds and editors leave, is left out.

    `memory`: a file that keeps what was read, so that only files whose size or times differ are read again.
    `taken`: whether a path is to be in it.
    """
    remembered = _remembered(memory)
    entries: Remembered = {}
    moment = time.time_ns()
    for path in filter(taken, source_files(directory)):
        try:
            facts = os.lstat(os.path.join(directory, path))  # noqa: PTH118 - 80000 times
        except FileNotFoundError:
            continue  # git lists what it tracks, and it is deleted
        if not (stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode)):
            continue
        stamp = [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino]
        old = remembered.get(path)
        if old is not None and old[:4] == stamp and _mode(facts) == str(old[4])[:6]:
            entries[path] = old
        else:
            racy = moment - max(facts.st_mtime_ns, facts.st_ctime_ns) < _RACY_NS
            entries[path] = [*([0] * 4 if racy else stamp), _entry(directory / path, facts)]
    if memory is not None and entries != remembered:
        memory.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(memory, json.dumps(entries))
    return Manifest({path: str(entry[4]) for path, entry in entries.items()})


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
        finished = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        return None
    return (
        None if finished.returncode else {os.fsdecode(path) for path in finished.stdout.split(b"\0") if path}
    )


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
            if name in _NOT_PRODUCTS or not _PRODUCT.match(name):
                yield f"{before}{name}"


def _is_output(directory: Path, path: str) -> bool:
    """Whether the directory was written by make: one of its own, or another build's O=."""
    return path in _PRODUCT_DIRECTORIES or (directory / path / "include/config/auto.conf").exists()


# A revision of a git repository as a source: its tree is listed and read, nothing is checked out.

GIT = Tool("git", "git", "reads a git repository")
_UNKNOWN = ("Needed a single revision", "bad revision", "Not a valid object name")


def manifest_at(repository: Path, revision: str) -> Manifest:
    """The manifest of a commit's tree. Raises SourceUnusable, ToolMissing.

    A kernel's tree has 80,000 files, and the next commit of a series changes a few: what was read lately is
    kept, and of another tree only what differs is asked for.
    """
    named = ("rev-parse", "--verify", "--end-of-options", f"{revision}^{{tree}}")
    tree = git(repository, revision, *named).strip()
    with _KEPT_TREES.lock:
        known = _KEPT_TREES.get(repository, tree)
        if known is None:
            near = _KEPT_TREES.newest(repository)
            known = _listed(repository, tree) if near is None else _changed(repository, near, tree)
        _KEPT_TREES.keep(repository, tree, known)
        return known


class _Trees:
    """The manifests of the trees that were read last, by repository and tree."""

    def __init__(self, most: int) -> None:
        self.lock = Lock()
        self._most = most
        self._kept: dict[tuple[Path, str], Manifest] = {}

    def get(self, repository: Path, tree: str) -> Manifest | None:
        return self._kept.get((repository, tree))

    def newest(self, repository: Path) -> tuple[str, Manifest] | None:
        trees = ((tree, kept) for (place, tree), kept in reversed(self._kept.items()) if place == repository)
        return next(trees, None)

    def keep(self, repository: Path, tree: str, manifest: Manifest) -> None:
        self._kept.pop((repository, tree), None)
        self._kept[repository, tree] = manifest
        while len(self._kept) > self._most:
            self._kept.pop(next(iter(self._kept)))


_KEPT_TREES = _Trees(most=16)
"""A manifest takes 5 MB: the texts in it are those of the one that it was made from."""


def _listed(repository: Path, tree: str) -> Manifest:
    files = {}
    for line in git(repository, tree, "ls-tree", "-r", "-z", "--full-tree", tree).split("\0"):
        facts, _, path = line.partition("\t")
        mode, kind, name = facts.split() if facts else ("", "", "")
        if kind == "blob":
            files[path] = f"{mode} {name}"
    return Manifest(files)


def _changed(repository: Path, near: tuple[str, Manifest], tree: str) -> Manifest:
    """By what `git diff-tree` says of each file: `:MODE MODE OBJECT OBJECT STATUS`, NUL, path, NUL."""
    listed = git(repository, tree, "diff-tree", "-r", "-z", "--no-renames", "--full-index", near[0], tree)
    words = listed.split("\0")
    changes: dict[str, str | None] = {}
    for facts, path in zip(words[:-1:2], words[1::2], strict=True):
        _, mode, _, name, _ = facts.split()
        changes[path] = f"{mode} {name}" if mode in _OF_BLOBS else None
    return near[1].but(changes) if changes else near[1]


_OF_BLOBS = frozenset({PLAIN, EXECUTABLE, LINK, "100664"})
"""Other entries are another repository's commits, or nothing: the file is gone."""


def described(repository: Path, revision: str) -> str:
    """What git calls the revision: `v6.1-14-g0123456789ab`. Raises SourceUnusable, ToolMissing."""
    return git(repository, revision, "describe", "--always", "--abbrev=12", revision).strip()


_RELEASE = r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) = ([0-9]+|-rc[0-9]+)$"


def release_commit(source: str) -> str:
    """The commit that made the version a source stands on: the last that changed it in the Makefile.

    Tags may be missing from a clone, and Debian's source in a git tree of one's own has none. Empty where
    the source is no git tree, is that commit itself, or where git does not tell.
    """
    directory, revision = git_parts(source) if source.startswith(GIT_PREFIX) else (Path(source), "HEAD")
    if GIT.path() is None or not directory.is_dir():
        return ""
    if revision == "HEAD" and not (directory / ".git").exists():
        return ""  # the directory may stand inside another project's git tree
    named = ("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    try:
        return _release_of(directory, git(directory, revision, *named).strip())
    except SourceUnusable:
        return ""


@lru_cache
def _release_of(directory: Path, commit: str) -> str:
    last = git(directory, commit, "log", "-1", "--format=%H", "-G", _RELEASE, commit, "--", "Makefile")
    return "" if last.strip() == commit else last.strip()


def git(repository: Path, revision: str, *arguments: str) -> str:
    """What git prints. Raises SourceUnusable, ToolMissing."""
    require_tool(GIT)
    finished = subprocess.run(
        ["git", "-C", repository, *arguments], capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    if finished.returncode:
        message = finished.stderr.decode(errors="replace").strip().partition("\n")[0].removeprefix("fatal: ")
        unknown = any(words in message for words in _UNKNOWN)
        problem = f"it has no revision '{revision}'" if unknown else f"git says: {message}"
        advice = f"git -C {repository} tag, or git log, shows what there is; git fetch brings more"
        raise SourceUnusable(source=f"git:{repository}@{revision}", problem=problem, advice=advice)
    return finished.stdout.decode(errors="surrogateescape")


@contextmanager
def git_objects(repository: Path) -> Iterator[Objects]:
    """Read contents from a repository."""
    with subprocess.Popen(
        ["git", "-C", repository, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None, "it was asked for"
        assert process.stdout is not None, "it was asked for"
        try:
            yield Objects(process.stdin, process.stdout)
        finally:
            process.stdin.close()


# A tarball as a source: unpacked once into the cache, whatever compressed it, and never outside of it.

_INSIDE: dict[bytes, Callable[[Path], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
    b"\x5d\0\0": lzma.open,
    b"\x28\xb5\x2f\xfd": zstandard.open,
    b"\x04\x22\x4d\x18": lz4.frame.open,
}
"""What a compressed file starts with, and what reads it."""
_OUTSIDE = {b"LZIP": "lzip", b"\x89LZO": "lzop", b"\x1f\x9d": "gzip"}
"""The rest of what GNU tar knows: the program that writes the content with -dc."""
_UNPACKS = "unpacks the source"
_UNPACKED_BYTES = 1700 << 20
_BROKEN = (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error, zstandard.ZstdError, RuntimeError)


def unpacked(path: Path, progress: Progress) -> Path:
    """The directory with the tarball's source, unpacked if it is not there.

    Raises SourceUnusable: it is none, is damaged, or would write outside; CacheFull, ToolMissing.
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    sources = cache_directory() / "sources"
    home = sources / f"{path.name.partition('.tar')[0]}-{digest[:16]}"
    with file_system_errors(sources):
        sources.mkdir(parents=True, exist_ok=True)
        with held(sources / f"{home.name}.lock", progress, "waiting for another ktrial that unpacks it"):
            if not home.exists():
                require_space(sources, _UNPACKED_BYTES)
                _unpack(path, home, progress)
    return home


def _unpack(path: Path, home: Path, progress: Progress) -> None:
    cache = Cache()
    with cache.adding(f"path:{path}", progress), cache.workspace() as workspace:
        progress("unpacking the source")
        into = workspace / "source"
        into.mkdir()
        try:
            with _opened(path) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
                tar.extractall(into, filter="data")
        except tarfile.FilterError as error:
            raise _unusable(path, f"a path in it leaves it: {error}") from None
        except _BROKEN as error:
            raise _unusable(path, f"it is not a tarball, or is damaged: {error}") from None
        _top(into).rename(home)


def _top(directory: Path) -> Path:
    """The one directory in it, where everything is in one."""
    inside = [path for path in directory.iterdir() if path.name != "pax_global_header"]
    return inside[0] if len(inside) == 1 and inside[0].is_dir() and not inside[0].is_symlink() else directory


def unpacking_tools(path: Path) -> tuple[Tool, ...]:
    """The program that unpacks the file, where Python does not."""
    start = _start_of(path)
    return tuple(
        Tool(program, program, _UNPACKS) for magic, program in _OUTSIDE.items() if start.startswith(magic)
    )


def _start_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(8)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    start = _start_of(path)
    for tool in unpacking_tools(path):
        require_tool(tool)
        with subprocess.Popen([tool.name, "-dc", path], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None, "it was asked for"
            yield process.stdout
        return
    opener = next((opener for magic, opener in _INSIDE.items() if start.startswith(magic)), None)
    with opener(path) if opener else path.open("rb") as stream:
        yield stream


def _unusable(path: Path, problem: str) -> SourceUnusable:
    advice = "give a tar archive of Linux's source; tar tf FILE shows what is in it"
    return SourceUnusable(source=path, problem=problem, advice=advice)


# A directory with Linux's source: is it one, which commit is it, can it be built beside itself?

EXPECTED = ("Makefile", "Kconfig", "arch/x86/Kconfig", "scripts/kconfig/merge_config.sh")
_VERSION = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)$", re.MULTILINE)
_PRODUCTS = (".config", "include/config", "arch/x86/include/generated")
"""What the top Makefile (rule outputmakefile) takes for a tree that is not clean."""


@dataclass(frozen=True)
class Tree:
    """Linux's source in a directory."""

    directory: Path
    """Absolute, without symbolic links: it is what a build directory is found by."""
    version: str
    """As the Makefile has it: `6.1.192`."""

    def commit(self) -> str:
        """What git calls it: `v6.1-14-g0123456789ab`, with `-dirty`; empty where this is no git tree."""
        # The directory may stand inside another project's git tree.
        top = self._git("rev-parse", "--show-toplevel")
        if not top or Path(top).resolve() != self.directory:
            return ""
        return self._git("describe", "--always", "--abbrev=12", "--dirty")

    def _git(self, *arguments: str) -> str:
        try:
            finished = subprocess.run(
                ["git", "-C", self.directory, *arguments],
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except FileNotFoundError:
            return ""  # without git nobody has a git tree
        return finished.stdout.strip() if finished.returncode == 0 else ""


def tree_in(directory: Path) -> Tree:
    """The source tree in `directory`. Raises NotASource."""
    absolute = directory.expanduser().absolute().resolve()
    if not absolute.is_dir():
        problem = "there is no such directory" if not absolute.exists() else "it is not a directory"
        raise NotASource(directory=absolute, problem=problem)
    if missing := [name for name in EXPECTED if not (absolute / name).exists()]:
        raise NotASource(directory=absolute, problem=f"it lacks {missing[0]}")
    text = (absolute / "Makefile").read_text(encoding="utf-8", errors="replace")
    return Tree(absolute, version_in(text, absolute))


def version_in(makefile: str, called: object) -> str:
    """The version that a source's Makefile names: `6.1.192`. Raises NotASource."""
    variables: dict[str, str] = dict(_VERSION.findall(makefile))
    if "VERSION" not in variables:
        raise NotASource(directory=called, problem="its Makefile names no version")
    numbers = [variables[part] for part in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if variables.get(part)]
    return ".".join(numbers) + variables.get("EXTRAVERSION", "")


def check_clean(tree: Tree) -> None:
    """Raise KernelError where the tree was built in place."""
    if products := [name for name in _PRODUCTS if (tree.directory / name).exists()]:
        raise BuildError(
            f"{tree.directory} holds what a build in place has made ({products[0]}), so nothing can "
            "be built beside it.",
            hint=f"keep its .config if you need it, then: make -C {tree.directory} mrproper",
        )
