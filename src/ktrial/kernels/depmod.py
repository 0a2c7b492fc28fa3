"""Put a kernel's modules into the cache, and let depmod (kmod) write down how they depend on each other."""

import gzip
import lzma
import os
import re
import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import zstandard

from ktrial.kernels.errors import KernelError, ModulesUnusable, ToolMissing
from ktrial.kernels.files import FULL, UNPACKING_BYTES, check_output
from ktrial.system_tools import Tool

DEPMOD = Tool("depmod", "kmod", "works out which kernel module needs which")
SUFFIXES = (".ko", ".ko.xz", ".ko.zst", ".ko.gz")
LOADABLE, NOTE = "loadable", ".sha256"
"""The directory of a kernel's unpacked modules, and what ends the names of the files with their digests."""
GENERATED = frozenset(
    "modules." + name
    for name in (
        "alias", "alias.bin", "builtin.alias.bin", "builtin.bin", "dep", "dep.bin", "devname", "softdep",
        "symbols", "symbols.bin", "weakdep",
    )
)  # fmt: skip
"""What depmod writes."""
_VERMAGIC = re.compile(rb"vermagic=(\S+) ")


def _unzstd(data: bytes) -> bytes:
    stream = zstandard.ZstdDecompressor().decompressobj()
    plain = stream.decompress(data)
    if not stream.eof:
        raise EOFError("it ends too early")
    return plain


UNPACK: dict[str, Callable[[bytes], bytes]] = {
    ".xz": lambda data: lzma.decompress(data, memlimit=UNPACKING_BYTES),
    ".gz": gzip.decompress,
    ".zst": _unzstd,
}
"""How module files with a second suffix are unpacked."""


def place_modules(name: str, source_directory: Path, release: str, entry: Path, workspace: Path) -> None:
    """Move or copy the modules to `entry`/lib/modules/`release`. Raises ModulesUnusable."""
    target = entry / "lib" / "modules" / release
    try:
        source = find_modules(name, source_directory, release)
        if source.is_relative_to(workspace):
            target.parent.mkdir(parents=True)
            source.rename(target)
        else:
            _copy(source, target)
    except OSError as error:
        if error.errno in FULL or error.filename is None or Path(error.filename).is_relative_to(workspace):
            raise
        problem = f"{error.filename}: {error.strerror}"
        raise ModulesUnusable(
            name=name, directory=source_directory, release=release, problem=problem
        ) from error
    except ValueError as error:
        raise ModulesUnusable(
            name=name, directory=source_directory, release=release, problem=error
        ) from error
    for link in ("build", "source"):
        (target / link).unlink(missing_ok=True)


def find_modules(name: str, source_directory: Path, release: str) -> Path:
    """Return `source_directory`, or the directory of `release` below it. Raises ModulesUnusable, OSError."""

    def unusable(problem: str) -> ModulesUnusable:
        return ModulesUnusable(name=name, directory=source_directory, release=release, problem=problem)

    if not source_directory.is_dir():
        raise unusable("it is not a directory" if source_directory.exists() else "there is no such directory")
    for place in (
        *(source_directory / base / release for base in ("lib/modules", "usr/lib/modules", "")),
        source_directory,
    ):
        if files := module_files(place):
            built_for = built_for_release(files[0])
            if built_for != release:
                raise unusable(f"its modules are of {built_for or 'unknown release'}, the image is {release}")
            return place
    raise unusable("there is no module (*.ko, *.ko.xz, *.ko.zst, *.ko.gz) in it")


def built_for_release(module: Path) -> str:
    """The release that a module file says it was built for (its `vermagic`); empty where it says none."""
    match = _VERMAGIC.search(unpacked(module))
    return match[1].decode("ascii", "replace") if match else ""


def unpacked(module: Path) -> bytes:
    """A module file's content, decompressed. Raises ValueError where it is damaged."""
    unpack = UNPACK.get(module.suffix)
    data = module.read_bytes()
    try:
        return unpack(data) if unpack else data
    except (lzma.LZMAError, zlib.error, gzip.BadGzipFile, EOFError, zstandard.ZstdError) as error:
        raise ValueError(f"{module.name} is damaged: {error}") from error


def module_files(directory: Path) -> list[Path]:
    """All module files below `directory`, sorted."""
    return sorted(
        Path(parent, name)
        for parent, _, names in os.walk(directory)
        for name in names
        if name.endswith(SUFFIXES)
    )


def run_depmod(base: Path, release: str) -> None:
    """Write modules.dep and its kin below `base`/lib/modules/`release`. Raises ToolMissing, KernelError."""
    program = DEPMOD.path()
    if program is None:
        raise ToolMissing(tool=DEPMOD.name, purpose=DEPMOD.purpose, package=DEPMOD.package)
    finished = subprocess.run(
        [program, "-b", str(base), release], capture_output=True, text=True, check=False, errors="replace"
    )
    check_output(finished.stderr, base)  # it ends with 0 all the same
    if finished.returncode:
        raise KernelError(
            f"depmod failed (exit {finished.returncode}): {finished.stderr.strip()}",
            hint="its modules may be damaged",
        )


def _copy(source: Path, target: Path) -> None:
    for parent, directories, names in os.walk(source):
        directories[:] = [name for name in directories if not Path(parent, name).is_symlink()]
        into = target / Path(parent).relative_to(source)
        into.mkdir(parents=True)
        for name in names:
            if not Path(parent, name).is_symlink():
                shutil.copyfile(Path(parent, name), into / name)
