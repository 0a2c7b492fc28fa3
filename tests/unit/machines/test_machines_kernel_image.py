"""Telling kernels from other files, before QEMU is started."""

import struct
from pathlib import Path

import pytest

from ktrial.machines.qemu.kernel_image import memory_end, problem

PAYLOAD = 4096


def bzimage(*, xloadflags: int = 1) -> bytes:
    head = bytearray(1024)
    head[0x1F1] = 1
    struct.pack_into("<I", head, 0x1F4, PAYLOAD // 16)
    head[0x1FE:0x200] = b"\x55\xaa"
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x236, xloadflags)
    struct.pack_into("<QI", head, 0x258, 0x1000000, 0x200000)
    return bytes(head) + bytes(PAYLOAD)


def elf(*, machine: int = 62, word: int = 2) -> bytes:
    head = bytearray(64)
    head[:5] = b"\x7fELF" + bytes((word,))
    struct.pack_into("<H", head, 18, machine)
    struct.pack_into("<Q", head, 32, 64)
    struct.pack_into("<HH", head, 54, 56, 1)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 120, 0, 0x1000000, PAYLOAD, 0x300000, 0)
    return bytes(head) + segment + bytes(PAYLOAD)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vmlinuz"


@pytest.mark.parametrize(("content", "end"), [(bzimage(), 0x1200000), (elf(), 0x1300000)])
def test_kernels(content: bytes, end: int, path: Path) -> None:
    path.write_bytes(content)
    assert problem(path) == ""
    assert memory_end(path) == end


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "neither a bzImage nor an ELF file"),
        (b"root:x:0:0:root:/root:/bin/bash\n" * 100, "neither a bzImage nor an ELF file"),
        (bzimage()[:-1], "cut short: 5119 bytes of 5120"),
        (bzimage(xloadflags=0), "not a 64-bit kernel"),
        (bytes(510) + b"\x55\xaa" + bytes(2000), "boot sector, but not a kernel's header"),
        (elf()[:-1], "cut short: 4215 bytes of 4216"),
        (elf()[:100], "program headers are missing"),
        (elf()[:40], "not a whole 64-bit one"),
        (elf(word=1), "not a whole 64-bit one"),
        (elf(machine=183), "another architecture (e_machine 183)"),
    ],
)
def test_other_files(content: bytes, said: str, path: Path) -> None:
    path.write_bytes(content)
    assert said in problem(path)
