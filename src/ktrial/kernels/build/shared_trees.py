"""Build trees of base kernels in a place of files: the first build is had once for a team.

A kernel alone would save nothing: the first patch on it would compile all of it. So what make left of a base
kernel goes there, as one archive by the SHA-256 of its content, and a word beside it says which archive has
the kernel of a key (`BuildJob.content`). Only the user's own sources are shared, none that patches of
strangers changed, and only what was built from nothing.

What lies there is not believed. An archive whose content has another digest, whose tree was made for another
key, or that leads outside of it, is refused: the kernel is built here, and takes its place. Who may write
there can still have others run programs in their builds' sandbox, and put into their kernels what he likes:
the place is for people who trust each other, as a shared ccache is.

    KTRIAL_KERNELS=/srv/ktrial    a directory that all have mounted, or a URL of fsspec's
"""

import hashlib
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import zstandard

from ktrial.file_store import FileStore, FileStoreFailed
from ktrial.installation import cache_directory
from ktrial.kernels import Progress
from ktrial.kernels.build.build_trees import BuildTree, Need, TreeRecord, new_tree
from ktrial.kernels.config import parse_config
from ktrial.kernels.files import require_space
from ktrial.kernels.tar import tarfile
from ktrial.model.kernel import OWN

VARIABLE = "KTRIAL_KERNELS"
DIRECTORY = "ktrial-kernels"
"""At the place, beside what others keep there."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LEVEL = 1
"""zstd's: 200 MB in seconds."""
_MOST_PACKED = 8 << 30
_MOST_UNPACKED = 30 << 30
_TREE, _PLACE, _BUILD = "tree.json", "place", "source/build"
_BROKEN = (tarfile.TarError, EOFError, OSError, zstandard.ZstdError)


def shared_place() -> FileStore | None:
    """The place that KTRIAL_KERNELS names; None where it is not set. Raises BadFileStore."""
    url = os.environ.get(VARIABLE, "")
    return FileStore(url, DIRECTORY) if url else None


def bring(place: FileStore, need: Need, progress: Progress) -> bool:
    """Have the tree that somebody else left of just this kernel. Whether it is here now.

    Raises NoSpace. What is damaged, or cannot be reached, is told, and nothing more.
    """
    try:
        digest = place.noted(need.content) or ""
        if not digest:
            return False
        if not _DIGEST.fullmatch(digest):
            raise _Refused("what it says of it is no digest")
        progress("fetching the build tree of this kernel from KTRIAL_KERNELS")
        with _arriving() as archive:
            _receive(place, digest, archive)
            with new_tree(progress) as tree:
                try:
                    _unpack(archive, tree, need)
                except BaseException:
                    shutil.rmtree(tree.home, ignore_errors=True)
                    raise
    except FileStoreFailed as error:
        progress(f"{error.message.rstrip('.')}: the kernel is built here")
        return False
    except _Refused as error:
        progress(f"what {place.url} has of this kernel is refused: {error}; it is built here")
        return False
    return True


def share(place: FileStore, need: Need, tree: BuildTree, progress: Progress) -> None:
    """Leave the tree of a kernel there, in place of what may be damaged. What fails is told."""
    if need.domain != OWN or need.from_nothing:
        return
    progress("leaving the build tree of this kernel in KTRIAL_KERNELS")
    try:
        with _arriving() as archive:
            _pack(tree, archive)
            with archive.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            place.put(digest, archive, anew=True)
            place.note(need.content, digest)
    except FileStoreFailed as error:
        progress(f"{error.message.rstrip('.')}: the kernel is here only")


class _Refused(Exception):
    """What lies in the place is not what it should be."""


@contextmanager
def _arriving() -> Iterator[Path]:
    directory = cache_directory() / "trees" / "shared"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{uuid.uuid4().hex}.tar.zst"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _receive(place: FileStore, digest: str, archive: Path) -> None:
    """Write what the place has under a digest to a file, compared with that. Raises _Refused, NoSpace."""
    content = hashlib.sha256()
    with archive.open("wb") as file:

        def part(offset: int, data: bytes, size: int) -> None:
            if size > _MOST_PACKED:
                raise _Refused(f"it has {size:,} bytes, more than any kernel's")
            if offset == 0:
                require_space(archive.parent, size)
            content.update(data)
            file.write(data)

        is_there = place.take(digest, part)
    if not is_there:
        raise _Refused("its file is gone")
    if content.hexdigest() != digest:
        raise _Refused("its content is not that of its digest")


def _pack(tree: BuildTree, archive: Path) -> None:
    place = str(tree.place).encode()
    named = tarfile.TarInfo(_PLACE)
    named.size = len(place)
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    with (
        zstandard.open(archive, "wb", cctx=compressor) as stream,
        tarfile.open(fileobj=stream, mode="w|") as tar,
    ):
        tar.addfile(named, BytesIO(place))
        for name in (_TREE, _BUILD):
            tar.add(tree.home / name, name, filter=_without_owner)


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if not (member.isfile() or member.isdir() or member.issym()):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _unpack(archive: Path, tree: BuildTree, need: Need) -> None:
    """Make the new tree what the archive has, with the source as it is here. Raises _Refused."""
    arrived = archive.with_suffix(".arrived")
    try:
        arrived.mkdir()
        try:
            with zstandard.open(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
                tar.extractall(arrived, members=_few_enough(tar), filter="data")
        except _BROKEN as error:
            raise _Refused(f"its archive is damaged: {error}") from None
        record = _record_in(arrived, need)
        tree.fill(need.source)
        shutil.rmtree(tree.build)
        (arrived / _BUILD).rename(tree.build)
        (tree.home / _PLACE).write_text(_place_in(arrived), encoding="utf-8")
        _date_alike(tree.build)
        tree.keep_record(record.model_copy(update={"family": need.source.family, "kernel": need.kernel}))
    finally:
        shutil.rmtree(arrived, ignore_errors=True)


def _few_enough(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members, as long as they have no more bytes than any build."""
    left = _MOST_UNPACKED
    for member in tar:
        left -= member.size
        if left < 0:
            raise _Refused("it unpacks to more than any build has")
        yield member


def _record_in(arrived: Path, need: Need) -> TreeRecord:
    """What the tree was made for, which is what is needed. Raises _Refused."""
    record, build = BuildTree(arrived).record(), arrived / _BUILD
    if record is None or build.is_symlink() or not build.is_dir() or (arrived / "source").is_symlink():
        raise _Refused("it is no build tree")
    needed = (need.content, need.domain, need.compiler, need.make, need.source.manifest.digest)
    if (record.content, record.domain, record.compiler, record.make, record.source) != needed:
        raise _Refused("it is that of another kernel")
    if not record.finished:
        raise _Refused("its build was not finished")
    config = build / ".config"
    is_file = config.is_file() and not config.is_symlink()
    if not is_file or parse_config(_text(config)) != parse_config(need.config):
        raise _Refused("its configuration is another one")
    return record


def _place_in(arrived: Path) -> str:
    path = arrived / _PLACE
    place = "" if path.is_symlink() or not path.is_file() else _text(path)
    if not re.fullmatch(r"(?:/[\w.@+-]+)+", place) or ".." in place.split("/"):
        raise _Refused("where it was built is no path")
    return place


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _date_alike(build: Path) -> None:
    """Give all files of the build one date, after the source's: to make, none is older than what it is of."""
    moment = time.time()
    for home, directories, names in os.walk(build):
        for name in (*directories, *names):
            os.utime(Path(home, name), (moment, moment), follow_symlinks=False)
