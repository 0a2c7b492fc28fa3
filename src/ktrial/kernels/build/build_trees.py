"""Build trees: a source and, right below it, make's O=; kept, so that the next build compiles little.

<cache>/trees/<id>/source/          the source, its files hard links to the cache's own where that is possible
                   source/build/    O=. There kbuild calls the source `..`, so that no command has the tree's
                                    place in it, and ccache finds in it what another tree compiled
                   tree.json        what it was last used for; one whose build was interrupted waits for it
                   manifest.json    what source/ holds; pending.json: paths that are being written
                   build.log        what make printed the last time
                   place            of a copy: where builds see it, which is where the first one lies
<cache>/trees/<id>.lock

A tree never moves, and builds see a copy where the first one lies: some of make's tools have the place in
their dependencies, and all objects depend on these tools. It is changed in place into the next kernel: files
that differ are written anew, with a new time stamp also where an old content comes back.

A copy takes over the source of a tree that goes, if every build there was confined: none could write to it.
"""

import json
import os
import re
import shutil
import stat
import subprocess
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

from ktrial.installation import cache_directory
from ktrial.kernels import Progress
from ktrial.kernels.build import sandbox
from ktrial.kernels.build.patches import BuildSource
from ktrial.kernels.build.recipes import keep_manifest, kept_manifest
from ktrial.kernels.config import parse_config
from ktrial.kernels.errors import BuildError
from ktrial.kernels.files import require_space, write_atomically
from ktrial.kernels.kernel_cache import disk_usage, held, held_if_free
from ktrial.model.base import Model
from ktrial.model.kernel import OWN

MOST_TREES = 4
"""Kept at once; the one whose use is longest ago goes first."""
MOST_BYTES = 20 << 30
"""What all of them may hold together, products only: files of the source are links."""
_AWAITED = timedelta(days=1)
"""So long a tree whose build was interrupted is kept for just that build, while there is room."""
_MANY_OPTIONS = 200
"""With more differences most files are compiled anew, and a new tree leaves the old one as it is: two
configurations are compiled once each, and copies for strangers' patches begin with the right one."""
_MANY_FILES = 3000
"""With more differences than that, hardly anything of a tree can be used again."""


class TreeRecord(Model):
    """What a build tree was last used for."""

    format: int = 1
    family: str
    """The place that its source came from."""
    base: str
    """Digest of the source without patches."""
    source: str
    """Digest of the source with them."""
    compiler: str
    make: dict[str, str]
    domain: str
    """Whose code has run there (`Build.domain`): the tree serves no other's builds."""
    content: str
    """Key of what was being built, also where it was not finished."""
    finished: bool
    failed: bool = False
    """Whether make ended with an error: what is there then waits for nobody."""
    kernel: str
    """The name of the kernel that was built."""
    confined: bool = False
    """Of strangers' trees: whether all builds in it were, so that nobody has written to its source."""
    used: datetime

    def awaited(self, moment: datetime) -> bool:
        """Whether a build was interrupted here that may be asked for again: the tree is that build's own."""
        return not self.finished and not self.failed and moment - self.used < _AWAITED


@dataclass(frozen=True)
class Need:
    """What a tree is wanted for."""

    source: BuildSource
    config: str
    """The text of the final configuration."""
    compiler: str
    make: dict[str, str]
    domain: str
    """Whose code is built."""
    content: str
    kernel: str
    from_nothing: bool = False
    """Whether nothing that is here already may be used; the tree goes afterwards."""


@dataclass(frozen=True)
class BuildTree:
    """One tree; held by whoever has it."""

    home: Path

    @property
    def source(self) -> Path:
        """The source."""
        return self.home / "source"

    @property
    def build(self) -> Path:
        """make's O=."""
        return self.source / "build"

    @property
    def place(self) -> Path:
        """Where confined builds see it: objects of a copy name the first one's place."""
        try:
            return Path((self.home / "place").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return self.home

    def record(self) -> TreeRecord | None:
        """What it was last used for; None where it was never complete, or cannot be read."""
        try:
            return TreeRecord.model_validate_json((self.home / "tree.json").read_bytes())
        except (OSError, ValidationError):
            return None

    def write_record(self, need: Need, *, finished: bool, failed: bool = False) -> None:
        """Write down what it is used for."""
        before = self.record()
        record = TreeRecord(
            family=need.source.family,
            base=need.source.snapshot.manifest.digest,
            source=need.source.manifest.digest,
            compiler=need.compiler,
            make=need.make,
            domain=need.domain,
            content=need.content,
            finished=finished,
            failed=failed,
            kernel=need.kernel,
            confined=need.domain != OWN and not sandbox.problem() and (before is None or before.confined),
            used=datetime.now(UTC).replace(microsecond=0),
        )
        self.keep_record(record)

    def keep_record(self, record: TreeRecord) -> None:
        """Write down what it was used for."""
        write_atomically(self.home / "tree.json", record.model_dump_json(exclude_defaults=True))

    def config(self) -> str:
        """The configuration of its last build; empty where there is none."""
        path = self.build / ".config"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def copy_from(self, other: "BuildTree", spare: "BuildTree | None" = None) -> None:
        """Become a copy of a tree that is held, and that no build in this one can reach. Raises OSError.

        `spare`: a tree of which only the source is left; that serves again.
        """
        # No build may write to the source: its files can be the same ones. What builds write is copied.
        if spare is not None:
            spare.home.rename(self.home)
            self._link_what_differs(other)
        else:
            self.source.mkdir(parents=True)
            _copy([path for path in other.source.iterdir() if path != other.build], self.source, "--link")
        self.build.mkdir()
        products = [path for path in other.build.iterdir() if not _LINKED_ANYWAY.fullmatch(path.name)]
        _copy(products, self.build, "--reflink=auto")
        (self.home / "place").write_text(str(other.place), encoding="utf-8")
        for name in ("manifest.json", "pending.json"):
            if (other.home / name).exists():
                shutil.copy2(other.home / name, self.home / name)
        if record := other.record():
            self.keep_record(record.model_copy(update={"confined": True}))

    def keep_source_alone(self) -> None:
        """Delete all but the source and the list of its files: a tree no more, whoever is killed now."""
        (self.home / "tree.json").unlink()
        kept = {self.source, self.home / "manifest.json", self.home / "pending.json"}
        _remove(self.build, *(path for path in self.home.iterdir() if path not in kept))

    def _link_what_differs(self, other: "BuildTree") -> None:
        """Make the source what a copy of the other's is: of each file a link to that one."""
        before, after = (kept_manifest(tree.home / "manifest.json") for tree in (self, other))
        assert before is not None, "else it would not be spare"
        assert after is not None, "what is copied is whole"
        # What was written here has a date of its own, also where it is the same again.
        anew = set(self._paths_without_links()).union(after.differing(before), self._unsure())
        for path in anew:
            with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                (self.source / path).unlink()
        for directory in {(self.source / path).parent for path in anew}:
            with suppress(OSError):  # not empty, or gone already
                os.removedirs(directory)
        for path in sorted(anew.intersection(after.files)):
            target = self.source / path
            for directory in reversed(target.parents):
                if not directory.exists():
                    directory.mkdir()
                    directory.chmod(0o755)  # whatever the umask is: root's builds are another user's
            os.link(other.source / path, target, follow_symlinks=False)

    def _paths_without_links(self) -> list[str]:
        """By findutils: 80,000 files take Python four times as long."""
        find = ["find", ".", "-links", "1", "-not", "-type", "d", "-printf", "%P\\0"]
        output = subprocess.run(find, cwd=self.source, check=True, capture_output=True).stdout
        return [os.fsdecode(path) for path in output.split(b"\0") if path]

    def _unsure(self) -> set[str]:
        """Paths that a killed process was writing: they may hold the old content or the new one."""
        pending = self.home / "pending.json"
        return set(json.loads(pending.read_bytes())) if pending.exists() else set()

    def fill(self, source: BuildSource) -> frozenset[str]:
        """Make source/ hold this source, and return which files were written.

        Raises KernelError, OSError.
        """
        before = kept_manifest(self.home / "manifest.json")
        manifest = source.manifest
        if before is None:
            shutil.rmtree(self.home, ignore_errors=True)
            self.source.mkdir(parents=True)
            source.write(self.source, manifest.files, rewrite=False)
            self.build.mkdir()
            keep_manifest(manifest, self.home / "manifest.json")
            return frozenset(manifest.files)
        if paths := self._unsure().union(manifest.differing(before)):
            pending = self.home / "pending.json"
            write_atomically(pending, json.dumps(sorted(paths)))
            source.write(self.source, paths, rewrite=True)
            keep_manifest(manifest, self.home / "manifest.json")
            pending.unlink()
        return frozenset(paths)


@dataclass(frozen=True)
class KeptTree:
    """A tree, for people."""

    kernel: str
    used: datetime
    size: int
    """Bytes that it holds beside the source."""


@contextmanager
def taken(need: Need, room: int, progress: Progress) -> Iterator[tuple[BuildTree, bool]]:
    """Hold the nearest tree that nobody uses, or a new one; whether it is a near one comes with it.

    `room`: bytes that a build from nothing needs. Raises NoSpace.
    """
    home = _directory()
    home.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        with held(home / "choosing.lock", progress, "waiting for another ktrial that chooses a build tree"):
            trees = () if need.from_nothing else _trees()
            distances = [(away, tree) for tree in trees if (away := distance(need, tree)) is not None]
            for _, tree in sorted(distances, key=lambda pair: (pair[0], pair[1].home.name)):
                if stack.enter_context(held_if_free(_lock(tree))) and tree.record() is not None:
                    yield_tree, near = tree, True
                    break
            else:
                seed = stack.enter_context(_seed(need))
                spare = stack.enter_context(_room_made(seed))
                require_space(home, room + (disk_usage(seed.build) if seed else 0))
                yield_tree, near = BuildTree(home / uuid.uuid4().hex[:12]), seed is not None
                stack.enter_context(held(_lock(yield_tree), progress, ""))
                if seed is not None:
                    progress("copying a build tree of the source without patches")
                    yield_tree.copy_from(seed, spare)
                if need.from_nothing:
                    stack.callback(_remove, yield_tree.home)
        yield yield_tree, near


@contextmanager
def _seed(need: Need) -> Iterator[BuildTree | None]:
    """The nearest of the user's own trees, held, for a stranger's build to begin from a copy of it."""
    with ExitStack() as stack:
        own = replace(need, domain=OWN)
        distances = [(away, tree) for tree in _trees() if (away := distance(own, tree)) is not None]
        for _, tree in sorted(distances, key=lambda pair: (pair[0], pair[1].home.name)):
            record = tree.record()
            if (
                need.domain != OWN
                and not need.from_nothing
                and record is not None
                and record.finished
                and stack.enter_context(held_if_free(_lock(tree)))
            ):
                yield tree
                return
        yield None


@contextmanager
def new_tree(progress: Progress) -> Iterator[BuildTree]:
    """Hold a new tree, with room for one more. Raises NoSpace."""
    home = _directory()
    home.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        with held(home / "choosing.lock", progress, "waiting for another ktrial that chooses a build tree"):
            stack.enter_context(_room_made())
            tree = BuildTree(home / uuid.uuid4().hex[:12])
            stack.enter_context(held(_lock(tree), progress, ""))
        yield tree


def has_start(need: Need) -> bool:
    """Whether some tree is near enough: of the same domain, or one of the user's own to begin from."""
    wanted = (need, replace(need, domain=OWN))
    return any(distance(start, tree) is not None for start in wanted for tree in _trees())


@contextmanager
def held_tree_of(content: str) -> Iterator[BuildTree | None]:
    """The tree whose last build is whole and has this key, held; None where there is none that is free."""
    with ExitStack() as stack:
        for tree in _trees():
            record = tree.record()
            if record is None or record.content != content or not record.finished:
                continue
            if stack.enter_context(held_if_free(_lock(tree))):
                yield tree
                return
        yield None


def builds_of(need: Need) -> tuple[Path, ...]:
    """The build directories of kept trees of the same source, whatever of it they built; no stranger's."""
    return tuple(
        tree.build
        for tree in _trees()
        if (record := tree.record()) is not None
        and record.family == need.source.family
        and record.domain in {OWN, need.domain}
    )


def has_kept_trees() -> bool:
    """Whether any tree is kept. How large they are is not looked up: that takes a second."""
    return any(tree.record() is not None for tree in _trees())


def kept_trees() -> tuple[KeptTree, ...]:
    """The trees that are kept, the one that was used last first."""
    trees = [(tree, record) for tree in _trees() if (record := tree.record()) is not None]
    trees.sort(key=lambda pair: pair[1].used, reverse=True)
    return tuple(KeptTree(record.kernel, record.used, disk_usage(tree.build)) for tree, record in trees)


def distance(need: Need, tree: BuildTree) -> tuple[int, int] | None:
    """How far a tree is from what is wanted: the kind of difference, then its size; None: too far."""
    record = tree.record()
    if record is None or (record.domain, record.compiler, record.make) != (
        need.domain,
        need.compiler,
        need.make,
    ):
        return None
    if record.content == need.content:
        return 0, 0
    if record.awaited(datetime.now(UTC)):
        return None
    options = differing_options(tree.config(), need.config)
    if options > _MANY_OPTIONS:
        return None
    if record.source == need.source.manifest.digest:
        return 1, options
    manifest, previous = need.source.manifest, kept_manifest(tree.home / "manifest.json")
    files = len(manifest.differing(previous)) if previous is not None else len(manifest.files)
    if files > _MANY_FILES:  # wherever it is read from: a work tree is like its repository
        return None
    return (2 if record.base == need.source.snapshot.manifest.digest else 3), files + options


def differing_options(first: str, second: str) -> int:
    """How many options two configurations do not have in common."""
    return len(set(parse_config(first).items()) ^ set(parse_config(second).items()))


@contextmanager
def _room_made(seed: BuildTree | None = None) -> Iterator[BuildTree | None]:
    """Delete trees that were never whole, then the oldest, until one more may come; none in use.

    Of one that goes the source alone may be left, held, for a copy of `seed`.
    """
    trees = sorted(_trees(), key=_age_key)
    sizes = {tree.home: disk_usage(tree.build) if tree.build.exists() else 0 for tree in trees}
    spare: BuildTree | None = None
    with ExitStack() as stack:
        for tree in trees:
            if tree.record() is not None and len(sizes) < MOST_TREES and sum(sizes.values()) < MOST_BYTES:
                continue
            hold = stack.enter_context(ExitStack())
            if not hold.enter_context(held_if_free(_lock(tree))):
                continue
            sizes.pop(tree.home)
            if seed is not None and spare is None and _is_like(tree, seed):
                tree.keep_source_alone()
                spare = tree
                continue
            _remove(tree.home)
            hold.close()
        yield spare


def _is_like(tree: BuildTree, seed: BuildTree) -> bool:
    """Whether the tree's source can become the seed's by few links, and nobody else has written to it."""
    record = tree.record()
    if record is None or not record.confined:
        return False
    before, after = (kept_manifest(home / "manifest.json") for home in (tree.home, seed.home))
    return before is not None and after is not None and len(after.differing(before)) <= _MANY_FILES


_LINKED_ANYWAY = re.compile(r"vmlinux(?:\.o|\.unstripped)?|\.tmp_vmlinux.*")
"""Most bytes of a build, which no change leaves as they are: a copy goes without them."""


def _copy(paths: Iterable[Path], into: Path, *options: str) -> None:
    subprocess.run(["cp", "--archive", *options, "--target-directory", into, "--", *paths], check=True)


def _remove(*paths: Path) -> None:
    """By coreutils: 80,000 files take Python twice as long. What cannot be deleted stays."""
    subprocess.run(["rm", "--recursive", "--force", "--", *paths], check=False, stderr=subprocess.DEVNULL)


def _age_key(tree: BuildTree) -> tuple[bool, bool, bool, datetime]:
    """What was never whole goes first, then strangers', then the oldest; of each, what an interrupted build
    may want, last: a stranger's is copied again in seconds, while one's own would be compiled from nothing.
    """
    record = tree.record()
    if record is None:
        return False, False, False, datetime.min.replace(tzinfo=UTC)
    return True, record.domain == OWN, record.awaited(datetime.now(UTC)), record.used


def _trees() -> list[BuildTree]:
    return [BuildTree(path) for path in sorted(_directory().glob("*/")) if (path / "source").is_dir()]


def _lock(tree: BuildTree) -> Path:
    return tree.home.with_name(f"{tree.home.name}.lock")


def _directory() -> Path:
    return cache_directory() / "trees"


_OBJECTS = ".*.o.cmd"


def files_compiled(build: Path) -> int:
    """How many objects the build directory holds."""
    return sum(1 for _ in build.rglob(_OBJECTS))


def files_touched(build: Path, before: str, after: str, paths: Collection[str] = ()) -> int:
    """How many lines make prints after a change, about: objects, and the archives that hold them.

    `before`, `after`: the texts of the two configurations; `paths`: files of the source that changed. What
    an option adds that was never compiled here is not known before make has looked.
    """
    objects = _own_objects(build, paths) if before == after else None
    if objects is None:
        marks = _marks(before, after, paths)
        objects = [path for path in build.rglob(_OBJECTS) if not marks.isdisjoint(path.read_bytes().split())]
    archives = {above for path in objects for above in path.relative_to(build).parents}
    return len(objects) + len(archives)


def _own_objects(build: Path, paths: Collection[str]) -> list[Path] | None:
    """What the paths are compiled to, each by itself; None where one is read by others, as headers are."""
    sources = [Path(path) for path in paths]
    objects = [build / source.parent / f".{source.stem}.o.cmd" for source in sources]
    alone = all(source.suffix in {".c", ".S"} for source in sources) and all(map(Path.exists, objects))
    return objects if alone else None


def _marks(before: str, after: str, paths: Collection[str]) -> set[bytes]:
    changed = {name for name, _ in set(parse_config(before).items()) ^ set(parse_config(after).items())}
    names = [name.removeprefix("CONFIG_") for name in changed]
    marks = {f"include/config/{name})" for name in names}
    marks |= {f"include/config/{name.lower().replace('_', '/')}.h)" for name in names}
    marks |= {_OF_TABLES[path] for path in paths if path in _OF_TABLES}
    return {mark.encode() for mark in marks | {f"../{path}" for path in paths}}


_OF_TABLES = {
    f"arch/x86/entry/syscalls/syscall_{bits}.tbl": f"arch/x86/include/generated/uapi/asm/unistd_{bits}.h"
    for bits in (32, 64)
}
"""Tables of system calls → the header that is made of each, and that most files read."""


# Which patches change nothing that is compiled: told from their paths, and from what a kept build has read.
#
# Only where it is certain. A path that make, Kconfig or a script may read counts as compiled; so does a new
# file, which may be found in place of another one.

_DOCUMENTATION = re.compile(
    r"Documentation/(?!Kconfig|Makefile).*|LICENSES/.*|(?:.*/)?(?:README|TODO)(?:\.\w+)?|[^/]*\.rst|MAINTAINERS|CREDITS"
    r"|COPYING|\.mailmap|\.gitignore|(?:.*/)?\.gitignore|\.get_maintainer\.ignore|\.clang-format|\.editorconfig"
)
_ARCHITECTURE = re.compile(r"arch/(?P<name>[a-z0-9]+)/.*")
_SAMPLES = re.compile(r"(?:tools/testing|tools/perf|samples)/(?!.*\b(?:Kconfig|Makefile|Build)).*")
_OURS = frozenset({"x86", "um"})
_CODE = re.compile(r"(?!scripts/|tools/|usr/|certs/|samples/).*\.[chS]")
"""Files that only compilers read, who note them in the `.cmd` files."""
_HEADERS_WHOLE = re.compile(r"^CONFIG_(?:IKHEADERS|HEADERS_INSTALL|UAPI_HEADER_TEST)=[ym]$", re.MULTILINE)
"""With these all headers are read, whether anything includes them or not."""
_DEPENDENCIES = ".*.cmd"
_BELOW_SOURCE = re.compile(rb"(?:^|[\s(])\.\./([^\s()\\]+\.[chS])\b")


def not_for_x86(paths: Iterable[str]) -> str:
    """Why no build for x86 reads any of these: `documentation`, `another architecture (arm64)`; empty: it
    may.
    """
    architectures, relevant = set[str](), list[str]()
    for path in paths:
        match = _ARCHITECTURE.fullmatch(path)
        if match and match["name"] not in _OURS:
            architectures.add(match["name"])
        else:
            relevant.append(path)
    if not all(_DOCUMENTATION.fullmatch(path) or _SAMPLES.fullmatch(path) for path in relevant):
        return ""
    reasons = []
    if any(_DOCUMENTATION.fullmatch(path) for path in relevant):
        reasons.append("documentation")
    if any(_SAMPLES.fullmatch(path) for path in relevant):
        reasons.append("tests and samples")
    if architectures:
        counted = "another architecture" if len(architectures) == 1 else "other architectures"
        reasons.append(f"{counted} ({', '.join(sorted(architectures))})")
    return " and ".join(reasons)


def are_compiled(tree: BuildTree, changed: Mapping[str, bool]) -> bool:
    """Whether any of these files may be in what was built in the tree.

    `changed`: path → whether the file was there before and is still there.
    """
    sought = set()
    for path, stays in changed.items():
        if not_for_x86([path]):
            continue
        if not stays or not _CODE.fullmatch(path):
            return True
        sought.add(path.encode())
    if not sought:
        return False
    if _HEADERS_WHOLE.search(tree.config()):
        return True
    # What each command has read of the source, below its top.
    noted = map(Path.read_bytes, tree.build.rglob(_DEPENDENCIES))
    return any(
        not sought.isdisjoint(_BELOW_SOURCE.findall(text))
        for text in noted
        if any(path in text for path in sought)
    )


# What a build leaves that was killed: half-written files, which the next make would trust, or fail on.
#
# kbuild writes beside each product (`open.o`) what made it and what that read (`.open.o.cmd`), last of all
# and not by a rename. A signal may fall between the two, or into one of them. Without its `.cmd` file a
# product is made anew.

_COMPILED = re.compile(rb"-Wp,-MM?D,")
"""What was made so has read other files, and says which."""
_BEGINS = re.compile(rb"^deps_(\S+) :=", re.MULTILINE)


def mend(build: Path) -> tuple[Path, ...]:
    """Delete products that may be half-written, with what is noted of them; return those products.

    They are those whose `.cmd` file is cut off, and those that were written after theirs.
    """
    mended = []
    for noted in sorted(build.rglob(".*.cmd")):
        product = noted.with_name(noted.name.removeprefix(".").removesuffix(".cmd"))
        if noted.is_symlink() or not noted.is_file():
            continue
        if is_cut_off(noted.read_bytes()) or _is_older(noted, product):
            noted.unlink()
            product.unlink(missing_ok=True)
            mended.append(product)
    return tuple(mended)


def is_cut_off(content: bytes) -> bool:
    """Whether a `.cmd` file does not reach its end, as fixdep and `printf` write it."""
    if not content.endswith(b"\n") or content.endswith(b"\\\n"):
        return True
    begins = _BEGINS.search(content)
    if begins is None:
        return _COMPILED.search(content) is not None
    return b"\n$(deps_" + begins[1] + b"):\n" not in content


def _is_older(noted: Path, product: Path) -> bool:
    try:
        return os.lstat(noted).st_mtime_ns < os.lstat(product).st_mtime_ns
    except FileNotFoundError:
        return False


# What a build has left in its directory.

_AHEAD_SECONDS = 60.0
"""How far a file's date may lie ahead: clocks are set, also during a build."""


def sift(build: Path, called: str) -> None:
    """Take away what no build leaves in good faith: pipes, sockets, devices, and other users' rights.

    A file that is dated in the future would be newer than whatever is changed afterwards, so that make would
    link it into every later kernel: then all of the directory goes. Raises BuildError.
    """
    latest = time.time() + _AHEAD_SECONDS
    directories = [build] if build.exists() else []
    while directories:
        with os.scandir(directories.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if status.st_mtime > latest:
                    shutil.rmtree(build)
                    build.mkdir()
                    name = Path(entry.path).relative_to(build)
                    raise BuildError(
                        f"{called} is not built: its makefiles date a file in the future ({name}).",
                        hint="the files of this build are removed; find out what changes dates there",
                    )
                if stat.S_ISDIR(status.st_mode):
                    directories.append(Path(entry.path))
                elif not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
                    Path(entry.path).unlink()
                if status.st_mode & (stat.S_ISUID | stat.S_ISGID) and not stat.S_ISLNK(status.st_mode):
                    Path(entry.path).chmod(status.st_mode & 0o777)
