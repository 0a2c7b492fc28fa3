"""Whether a file is a kernel that this machine can boot, told from its headers before QEMU is started."""

import struct
from pathlib import Path

ELF_MAGIC = b"\x7fELF"

_HEADER = 0x1F1
_BOOT_FLAG, _MAGIC, _XLOADFLAGS = 0x1FE, 0x202, 0x236
_LONGEST_HEADER = 4096
_X86_64 = 62


def problem(path: Path) -> str:
    """What is wrong with the file as a kernel for x86-64, in one phrase; empty where nothing is.

    Layouts: Documentation/arch/x86/boot.rst in Linux, and the ELF specification. Raises OSError.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_LONGEST_HEADER)
    if head.startswith(ELF_MAGIC):
        return _elf_problem(head, size)
    return _bzimage_problem(head, size)


def _elf_problem(head: bytes, size: int) -> str:
    if len(head) < 64 or head[4] != 2:
        return "it is an ELF file, but not a whole 64-bit one"
    (machine,) = struct.unpack_from("<H", head, 18)
    if machine != _X86_64:
        return f"it is an ELF file for another architecture (e_machine {machine})"
    (offset,) = struct.unpack_from("<Q", head, 32)
    length, count = struct.unpack_from("<HH", head, 54)
    if offset + length * count > len(head):
        return "its ELF program headers are missing"
    ends = [sum(struct.unpack_from("<Q16xQ", head, offset + length * n + 8)) for n in range(count)]
    return _cut(size, max(ends, default=0))


def _bzimage_problem(head: bytes, size: int) -> str:
    if len(head) <= _XLOADFLAGS + 2 or head[_BOOT_FLAG : _BOOT_FLAG + 2] != b"\x55\xaa":
        return "it is neither a bzImage nor an ELF file"
    if head[_MAGIC : _MAGIC + 4] != b"HdrS":
        return "it has a boot sector, but not a kernel's header"
    (flags,) = struct.unpack_from("<H", head, _XLOADFLAGS)
    if not flags & 1:
        return "it is not a 64-bit kernel"
    setup_sectors = head[_HEADER] or 4
    (paragraphs,) = struct.unpack_from("<I", head, 0x1F4)
    return _cut(size, (setup_sectors + 1) * 512 + paragraphs * 16)


def _cut(size: int, needed: int) -> str:
    return f"it is cut short: {size} bytes of {needed}" if size < needed else ""
