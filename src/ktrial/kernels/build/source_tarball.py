"""A tarball as a source: unpacked once into the cache, whatever compressed it, and never outside of it."""

import bz2
import gzip
import hashlib
import lzma
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import lz4.frame
import zstandard

from ktrial.kernels.build.errors import SourceUnusable
from ktrial.kernels.cache.cache import Cache
from ktrial.kernels.cache.disk_space import file_system_errors, require_space
from ktrial.kernels.cache.location import cache_directory
from ktrial.kernels.cache.locks import held
from ktrial.kernels.errors import ToolMissing
from ktrial.kernels.progress import Progress
from ktrial.system_tools import Tool

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
            raise _unusable(path, f"it is no tarball, or is damaged: {error}") from None
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
        with _through(path, tool.name) as stream:
            yield stream
        return
    opener = next((opener for magic, opener in _INSIDE.items() if start.startswith(magic)), None)
    with opener(path) if opener else path.open("rb") as stream:
        yield stream


@contextmanager
def _through(path: Path, program: str) -> Iterator[IO[bytes]]:
    if shutil.which(program) is None:
        raise ToolMissing(name=path, tool=program, purpose=_UNPACKS, package=program)
    with subprocess.Popen([program, "-dc", path], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None, "it was asked for"
        yield process.stdout


def _unusable(path: Path, problem: str) -> SourceUnusable:
    advice = "give a tar archive of Linux's source; tar tf FILE shows what is in it"
    return SourceUnusable(name=path, directory=path, source=path, problem=problem, advice=advice)
