"""Sources: a directory, Debian's, a git revision, a tarball; each a manifest, and a way to get its files."""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ktrial.kernels.build import source_git, source_tarball
from ktrial.kernels.build.errors import NotASource, SourceChanged, SourceUnusable
from ktrial.kernels.build.recipes import EXECUTABLE, LINK, Manifest, keep_manifest, kept_manifest, object_of
from ktrial.kernels.build.source_debian import debian_source, package_tools
from ktrial.kernels.build.source_directory import content_of, manifest_of
from ktrial.kernels.build.source_tree import tree_in
from ktrial.kernels.cache.location import cache_directory
from ktrial.kernels.progress import Progress, silent
from ktrial.system_tools import Tool

DEBIAN_PREFIX, GIT_PREFIX = "debian:", "git:"
_GIT = re.compile(r"git:(?P<directory>.+)@(?P<revision>[^@]+)")


class SourceReader(Protocol):
    """Where the files of a source are had from."""

    def content(self, path: str) -> bytes:
        """A file's content; a symbolic link's target. Raises SourceChanged, OSError."""
        ...

    def place(self, path: str, target: Path) -> None:
        """Make the new file `target`, in a way that costs least: a hard link where nothing else writes."""
        ...


@dataclass(frozen=True)
class Snapshot:
    """A source at one moment."""

    asked: str
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
            with source_git.objects(self.directory) as objects:
                yield _FromGit(self.manifest.files, objects)
        else:
            yield _FromDirectory(self.manifest.files, self.directory, self.unchanging)

    def described(self) -> str:
        """Its revision or version, for people."""
        if self.repository:
            return source_git.described(self.directory, self.revision)
        if self.asked.startswith(DEBIAN_PREFIX):
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
            raise SourceChanged(name=self.directory, directory=self.directory, path=path)
        return blob

    def place(self, path: str, target: Path) -> None:
        if self.unchanging:
            try:
                os.link(self.directory / path, target, follow_symlinks=False)
            except OSError:  # another file system, or too many links
                shutil.copy2(self.directory / path, target, follow_symlinks=False)
        else:
            write_file(target, self.files[path], self.content(path))


@dataclass(frozen=True)
class _FromGit:
    files: Mapping[str, str]
    objects: source_git.Objects

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

    Raises NotASource, SourceUnusable, NoSuchSource, FetchFailed, CacheFull, ToolMissing.
    """
    if source.startswith(DEBIAN_PREFIX):
        return _kept(source, debian_source(source.removeprefix(DEBIAN_PREFIX), progress), progress)
    if source.startswith(GIT_PREFIX):
        directory, revision = git_parts(source)
        return Snapshot(
            source, source_git.manifest_at(directory, revision), directory, repository=True, revision=revision
        )
    path = Path(source)
    if path.is_file():
        return _kept(source, source_tarball.unpacked(path, progress), progress)
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
        return (source_git.GIT,)
    return source_tarball.unpacking_tools(Path(source)) if Path(source).is_file() else ()


def git_parts(source: str) -> tuple[Path, str]:
    """The repository and the revision in `git:DIRECTORY@REVISION`. Raises SourceUnusable."""
    match = _GIT.fullmatch(source)
    if match is None:
        problem, advice = "it has no directory and revision", "write git:DIRECTORY@REVISION: git:linux@v6.1"
        raise SourceUnusable(name=source, directory=source, source=source, problem=problem, advice=advice)
    return Path(match["directory"]), match["revision"]


def _kept(source: str, directory: Path, progress: Progress) -> Snapshot:
    """One that is the cache's own: nobody changes it, so it is read once."""
    try:
        tree_in(directory)
    except NotASource as error:
        raise NotASource(name=source, directory=source, problem=error.facts["problem"]) from None
    memory = directory.with_name(f"{directory.name}.manifest.json")
    manifest = kept_manifest(memory)
    if manifest is None:
        progress("looking at the source")
        manifest = manifest_of(directory)
        keep_manifest(manifest, memory)
    return Snapshot(source, manifest, directory, unchanging=True)
