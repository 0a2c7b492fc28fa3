"""Where a kernel's debugging information is: in the image that was built here, or in Debian's -dbg package.

The build ID tells whether they belong together: the linker's digest of what it linked, in both files. What
Debian's package holds of the image is kept below ktrial's cache, by build ID; of modules nothing is kept.
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from elftools.common.exceptions import ELFError
from elftools.elf.segments import NoteSegment

from ktrial.kernels import Progress
from ktrial.kernels.errors import NoDebugInfo
from ktrial.kernels.files import file_system_errors, require_space
from ktrial.kernels.image import sound_elf
from ktrial.kernels.kernel_cache import Cache, held
from ktrial.kernels.packages.apt import Package
from ktrial.kernels.packages.deb import DPKG_DEB
from ktrial.kernels.programs import require_tool
from ktrial.kernels.providers.debian import debug_package
from ktrial.kernels.tar import tarfile
from ktrial.model.kernel import Kernel

_DIRECTORY = "debug-info"
_SECTION = ".debug_info"
_VMLINUX_BYTES = 600 << 20
"""More than Debian's have, unpacked: 346 MB in 6.12's for clouds."""


def debug_file(kernel: Kernel, progress: Progress, cache: Cache | None = None) -> Path:
    """An ELF file with the debugging information of the kernel's image.

    Raises NoDebugInfo, FetchFailed, NoDebianSource, ToolMissing, NoSpace.
    """
    if _has_debug_info(kernel.image):
        return kernel.image
    directory = (cache or Cache()).root / _DIRECTORY
    number = build_id(kernel.vmlinux) if kernel.vmlinux else ""
    if not number:
        raise NoDebugInfo(name=kernel.name, problem="its image has no build ID")
    kept = directory / f"{number}.vmlinux"
    if kept.exists():
        return kept
    if not kernel.origin or kernel.origin.provider != "debian":
        raise NoDebugInfo(name=kernel.name, problem="its image was made without debugging information")
    with file_system_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
        with held(
            directory / "lock", progress, "waiting for another ktrial that fetches debugging information"
        ):
            if not kept.exists():
                _fetch(kernel, number, kept, progress)
    return kept


def build_id(file: Path) -> str:
    """In hexadecimal digits; empty where the file has none, or is no ELF file."""
    try:
        with file.open("rb") as opened, sound_elf(opened) as elf:
            notes = (segment for segment in elf.iter_segments() if isinstance(segment, NoteSegment))
            for segment in notes:
                for note in segment.iter_notes():
                    if note["n_name"] == "GNU" and note["n_type"] == "NT_GNU_BUILD_ID":
                        return str(note["n_desc"])
    except ELFError:
        pass
    return ""


def _has_debug_info(file: Path) -> bool:
    try:
        with file.open("rb") as opened, sound_elf(opened) as elf:
            return elf.get_section_by_name(_SECTION) is not None
    except ELFError:
        return False


def _fetch(kernel: Kernel, number: str, kept: Path, progress: Progress) -> None:
    directory = kept.parent
    apt, package = debug_package(kernel, directory / "apt", progress)
    require_space(directory, package.size + _VMLINUX_BYTES)
    into = directory / "package"
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    try:
        (file,) = apt.download([package], into, kernel.name, progress)
        progress("unpacking the debugging information")
        fresh = into / "vmlinux"
        with (
            _member(file, f"boot/vmlinux-{kernel.release}", kernel, package) as content,
            fresh.open("wb") as out,
        ):
            shutil.copyfileobj(content, out)
        if build_id(fresh) != number:
            problem = f"{package.name} {package.version} is of another build"
            raise NoDebugInfo(name=kernel.name, problem=problem)
        fresh.replace(kept)
    finally:
        shutil.rmtree(into, ignore_errors=True)


@contextmanager
def _member(file: Path, ending: str, kernel: Kernel, package: Package) -> Iterator[BinaryIO]:
    """A file of a package, which comes early in it: what follows is not unpacked."""
    require_tool(DPKG_DEB)
    command = ["dpkg-deb", "--fsys-tarfile", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as unpacking:
        try:
            with tarfile.open(fileobj=unpacking.stdout, mode="r|") as archive:
                for member in archive:
                    content = archive.extractfile(member) if member.name.endswith(ending) else None
                    if content is not None:
                        yield content  # type: ignore[misc]
                        return
            raise NoDebugInfo(name=kernel.name, problem=f"{package.name} holds no {ending}")
        finally:
            unpacking.kill()
