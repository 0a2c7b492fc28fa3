"""The archive of a bundle: a zip file. The same content gives the same bytes; what is read is suspected.

What is read is strictly what is written here: no comment, no ZIP64, nothing before, between or after its
parts that would make two programs read two things; only plain files with plain names; sizes are known, and
limited, before anything is unpacked. Nothing is unpacked onto a disk by its own name.

Format: APPNOTE.TXT 6.3.3, PKWARE 2012 (4.3.6, 4.3.16).
"""

import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from ktrial.bundle.errors import BundleDamaged, BundleTooLarge, BundleUnreadable, NotABundle

MAGIC = b"PK\x03\x04"
MOST_FILES = 50_000
MOST_BYTES = 2 << 30
"""Of the archive, and of all files unpacked; kernels' modules have some 100 MB."""
MOST_BYTES_OF_A_FILE = 256 << 20
_MOST_DIRECTORY = 16 << 20
"""Bytes of the central directory: 50 000 files need less."""
_END = struct.Struct("<4s4H2LH")
"""4.3.16: signature, disks, entries here and in all, the directory's size and place, the comment's length."""
_END_MAGIC = b"PK\x05\x06"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_PLAIN_NAME = re.compile(r"(?!/)(?:(?:^|/)(?!\.)[A-Za-z0-9._+@=,~-]{1,120})+")
"""No empty part, none that begins with a dot: neither `..` nor a hidden file; no backslash, no colon."""
_LONGEST_NAME = 240
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, EOFError, struct.error),
    *(NotImplementedError, RuntimeError, ValueError, LookupError, OverflowError),
)
"""What `zipfile` raises on what is no sound archive."""


class ArchiveEntry(NamedTuple):
    """One file to be written."""

    name: str
    content: bytes | Path


def write(file: IO[bytes], entries: Iterable[ArchiveEntry]) -> None:
    """Write the archive, by name. Raises OSError."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9, allowZip64=False) as archive:
        for name, content in sorted(entries):
            archive.writestr(_described(name), _bytes(content), compresslevel=9)


def _bytes(content: bytes | Path) -> bytes:
    return content if isinstance(content, bytes) else content.read_bytes()


def _described(name: str) -> zipfile.ZipInfo:
    """A plain file of no time and nobody's."""
    if not is_plain(name):
        raise ValueError(f"{name!r} does not name a file of a bundle")
    made = zipfile.ZipInfo(name, _EPOCH)
    made.create_system, made.external_attr = _UNIX, (stat.S_IFREG | 0o644) << 16
    made.compress_type = zipfile.ZIP_DEFLATED
    return made


def is_plain(name: str) -> bool:
    """Whether a bundle may have a file of this name: relative, without `..`, and harmless in a shell."""
    return len(name) <= _LONGEST_NAME and _PLAIN_NAME.fullmatch(name) is not None


def looks_like_one(file: Path) -> bool:
    """Whether a file begins as an archive does. Raises nothing."""
    try:
        with file.open("rb") as opened:
            return file.is_file() and opened.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


class Archive:
    """An archive that was found sound, as far as its directory says; each file is checked as it is read."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, sizes: Mapping[str, int]) -> None:
        self._path = path
        self._archive = archive
        self.sizes = sizes
        """Name → bytes, unpacked."""

    def read(self, name: str) -> bytes:
        """A file's content. Raises BundleDamaged."""
        try:
            with self._archive.open(name) as opened:
                content = opened.read(self.sizes[name] + 1)
        except _BROKEN as error:
            raise BundleDamaged(file=self._path, problem=f"{name} cannot be unpacked") from error
        except OSError as error:
            raise BundleUnreadable(file=self._path, problem=error.strerror or str(error)) from error
        if len(content) != self.sizes[name]:
            raise BundleDamaged(file=self._path, problem=f"{name} has another size than it says")
        return content


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """The archive at a path. Raises BundleUnreadable, NotABundle, BundleTooLarge."""
    try:
        with path.open("rb") as file:
            _check_end(path, file)
            with _sound(path, file) as archive:
                sizes = _sizes(path, archive)
                yield Archive(path, archive, sizes)
    except OSError as error:
        raise BundleUnreadable(file=path, problem=error.strerror or str(error)) from error


def _check_end(path: Path, file: IO[bytes]) -> None:
    """The end of the directory is where the file ends, and what it says fits the file."""
    size = file.seek(0, 2)
    if size > MOST_BYTES:
        raise too_large(path, "it has", size, MOST_BYTES)
    if size < _END.size:
        raise NotABundle(file=path, problem="it is no zip archive")
    file.seek(size - _END.size)
    magic, disk, start, here, entries, length, offset, comment = _END.unpack(file.read(_END.size))
    if magic != _END_MAGIC or comment or disk or start:
        raise NotABundle(file=path, problem="it does not end as a zip archive that ktrial wrote")
    if here != entries or offset + length + _END.size != size:
        raise NotABundle(file=path, problem="its directory does not fit its size")
    if length > _MOST_DIRECTORY:
        raise too_large(path, "its directory has", length, _MOST_DIRECTORY)
    if entries > MOST_FILES:
        raise BundleTooLarge(file=path, what="it has", found=f"{entries} files", most=MOST_FILES, are="are")


@contextmanager
def _sound(path: Path, file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(file)
    except _BROKEN as error:
        raise NotABundle(file=path, problem="its directory cannot be read") from error
    with archive:
        yield archive


def _sizes(path: Path, archive: zipfile.ZipFile) -> dict[str, int]:
    """Name → size. Raises NotABundle for whatever is no plain file, BundleTooLarge."""
    sizes: dict[str, int] = {}
    for entry in archive.infolist():
        if problem := _problem(entry, sizes):
            raise NotABundle(file=path, problem=problem)
        if entry.file_size > MOST_BYTES_OF_A_FILE:
            raise too_large(path, f"{entry.filename} has", entry.file_size, MOST_BYTES_OF_A_FILE)
        sizes[entry.filename] = entry.file_size
    if sum(sizes.values()) > MOST_BYTES:
        raise too_large(path, "unpacked it has", sum(sizes.values()), MOST_BYTES)
    return sizes


def _problem(entry: zipfile.ZipInfo, known: Mapping[str, int]) -> str:
    """Why the entry is none that ktrial writes; empty where it may be."""
    name = entry.orig_filename
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if not is_plain(name) or name != entry.filename:
        return f"{name[:80]!r} is no name of a file in a bundle"
    if name in known:
        return f"it has {name} twice"
    if kind not in {0, stat.S_IFREG}:
        return f"{name} is no plain file"
    if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} or entry.flag_bits & 0x1:
        return f"{name} is encrypted, or packed in another way"
    return ""


def too_large(path: Path, what: str, size: int, most: int) -> BundleTooLarge:
    """The error for a size above its limit."""
    return BundleTooLarge(file=path, what=what, found=f"{size} bytes", most=most, are="bytes are")
