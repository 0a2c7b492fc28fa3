"""Take the ELF vmlinux out of a bzImage: a guest that starts from it needs no decompression.

The payload is found through the setup header, not by searching for magic bytes. It is the ELF file (with
relocations behind it where the kernel is relocatable), compressed by one of the seven programs that
scripts/Makefile.lib knows; all but gzip have the unpacked length appended as four bytes, little-endian.
"""

import bz2
import lzma
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import lz4.block
import zstandard

from ktrial.kernels.image.elf import ELF_MAGIC, has_pvh_entry
from ktrial.kernels.image.image import Image, ImageKind

_LZ4_LEGACY_BLOCK = 8 << 20
"""`lz4 -l` cuts its input into blocks of 8 MiB."""


@dataclass(frozen=True)
class Extracted:
    """The vmlinux, or why there is none."""

    vmlinux: bytes | None
    reason: str = ""


class _CannotUnpack(Exception):
    """The payload is in a form that cannot be unpacked here."""


def extract_vmlinux(image: Image) -> Extracted:
    """Unpack the payload of `image` and check that QEMU can start it."""
    try:
        data = image.payload if image.kind is ImageKind.VMLINUX else _unpack(image.payload)
    except _CannotUnpack as error:
        return Extracted(None, str(error))
    if data[:4] != ELF_MAGIC:
        return Extracted(None, f"the unpacked payload is not ELF (it starts {data[:4].hex(' ')})")
    if not has_pvh_entry(data):
        return Extracted(None, "it has no PVH note (built without CONFIG_PVH)")
    return Extracted(data)


def _unpack(payload: bytes) -> bytes:
    if payload[:4] == ELF_MAGIC:
        return payload
    for magic, method, unpack in _METHODS:
        if payload.startswith(magic):
            try:
                return _whole(unpack(payload), payload)
            except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, *_FOREIGN_ERRORS) as error:
                raise _CannotUnpack(f"its {method} payload is damaged: {error}") from error
    raise _CannotUnpack(f"its payload is compressed in an unknown way (it starts {payload[:4].hex(' ')})")


def _whole(data: bytes, payload: bytes) -> bytes:
    """Check the length that the build wrote behind the packed data (gzip does so itself).

    A decompressor that is fed a stream returns what it has when the stream ends early, without an error.
    """
    promised = struct.unpack("<I", payload[-4:])[0]
    if len(data) & 0xFFFFFFFF != promised:
        raise ValueError(f"it unpacks to {len(data)} bytes, not {promised}")
    return data


def _gzip(payload: bytes) -> bytes:
    return zlib.decompressobj(wbits=31).decompress(payload)


def _xz(payload: bytes) -> bytes:
    return lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(payload)


def _lzma(payload: bytes) -> bytes:
    return lzma.LZMADecompressor(format=lzma.FORMAT_ALONE).decompress(payload)


def _bzip2(payload: bytes) -> bytes:
    return bz2.BZ2Decompressor().decompress(payload)


def _zstd(payload: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(payload)


def _lz4(payload: bytes) -> bytes:
    """The legacy frame: magic, then blocks with their packed length in front."""
    blocks, position, end = [], 4, len(payload) - 4
    while position + 4 <= end:
        length = struct.unpack_from("<I", payload, position)[0]
        block = payload[position + 4 : position + 4 + length]
        blocks.append(lz4.block.decompress(block, uncompressed_size=_LZ4_LEGACY_BLOCK))
        position += 4 + length
    return b"".join(blocks)


def _lzo(payload: bytes) -> bytes:
    """By the program lzop: its container has no reader in Python that is kept up."""
    program = shutil.which("lzop")
    if program is None:
        raise _CannotUnpack("its payload is compressed with LZO, and the program lzop is not installed")
    done = subprocess.run([program, "-dc"], input=payload[:-4], capture_output=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr.decode("utf-8", "replace").strip())
    return done.stdout


_FOREIGN_ERRORS = (zstandard.ZstdError, lz4.block.LZ4BlockError, struct.error)
_METHODS: tuple[tuple[bytes, str, Callable[[bytes], bytes]], ...] = (
    (b"\x1f\x8b", "gzip", _gzip),
    (b"\xfd7zXZ\0", "xz", _xz),
    (b"\x28\xb5\x2f\xfd", "zstd", _zstd),
    (b"\x02\x21\x4c\x18", "lz4", _lz4),
    (b"BZh", "bzip2", _bzip2),
    (b"\x89LZO", "lzo", _lzo),
    (b"\x5d\0\0", "lzma", _lzma),
)
