"""Whether a file is a kernel that this machine can boot, told from its headers before QEMU is started.

Layouts: Documentation/arch/x86/boot.rst in Linux, and the ELF specification.
"""

import struct
from pathlib import Path
from typing import NamedTuple

ELF_MAGIC = b"\x7fELF"

_HEADER = 0x1F1
_BOOT_FLAG, _MAGIC, _XLOADFLAGS = 0x1FE, 0x202, 0x236
_PREFERRED_ADDRESS = 0x258
_LONGEST_HEADER = 4096
_X86_64 = 62
_PT_LOAD = 1
_PROGRAM_HEADER = struct.Struct("<I4xQ8xQQQ")


def problem(path: Path) -> str:
    """What is wrong with the file as a kernel for x86-64, in a phrase; empty: nothing. Raises OSError."""
    size = path.stat().st_size
    head = _head(path)
    if head.startswith(ELF_MAGIC):
        return _elf_problem(head, size)
    return _bzimage_problem(head, size)


def memory_end(path: Path) -> int:
    """Up to which address a kernel without a `problem` fills memory while it boots. Raises OSError."""
    head = _head(path)
    if not head.startswith(ELF_MAGIC):
        address, size = struct.unpack_from("<QI", head, _PREFERRED_ADDRESS)
        return int(address + size)
    loaded = (segment for segment in _segments(head) if segment.kind == _PT_LOAD)
    return max((segment.address + segment.memory_size for segment in loaded), default=0)


class _Segment(NamedTuple):
    kind: int
    offset: int
    address: int
    file_size: int
    memory_size: int


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LONGEST_HEADER)


def _segments(head: bytes) -> list[_Segment]:
    """The ELF program headers, where `head` holds all of them."""
    (table,) = struct.unpack_from("<Q", head, 32)
    length, count = struct.unpack_from("<HH", head, 54)
    if length < _PROGRAM_HEADER.size or table + length * count > len(head):
        return []
    return [_Segment(*_PROGRAM_HEADER.unpack_from(head, table + length * n)) for n in range(count)]


def _elf_problem(head: bytes, size: int) -> str:
    if len(head) < 64 or head[4] != 2:
        return "it is an ELF file, but not a whole 64-bit one"
    (machine,) = struct.unpack_from("<H", head, 18)
    if machine != _X86_64:
        return f"it is an ELF file for another architecture (e_machine {machine})"
    segments = _segments(head)
    if not segments:
        return "its ELF program headers are missing"
    ends = [segment.offset + segment.file_size for segment in segments]
    return _cut(size, max(ends, default=0))


def _bzimage_problem(head: bytes, size: int) -> str:
    if len(head) < _PREFERRED_ADDRESS + 12 or head[_BOOT_FLAG : _BOOT_FLAG + 2] != b"\x55\xaa":
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
