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
from typing import Protocol

import lz4.block
import zstandard
from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError

from ktrial.kernels.errors import ImageDamaged
from ktrial.kernels.image.elf import ELF_MAGIC, has_pvh_entry
from ktrial.kernels.image.image import ImageKind, KernelImage

_LZ4_LEGACY_BLOCK = 8 << 20
"""`lz4 -l` cuts its input into blocks of 8 MiB."""


@dataclass(frozen=True)
class Extracted:
    """The vmlinux, or why there is none."""

    vmlinux: bytes | None
    reason: str = ""
    unchecked: str = ""
    """Why damage to what is booted would not be noticed; empty where it would."""


class _CannotUnpack(Exception):
    """The payload is in a form that cannot be unpacked here."""


def extract_vmlinux(image: KernelImage) -> Extracted:
    """Unpack the payload of `image` and check that QEMU can start it.

    What lies around the payload (setup code, decompressor, signature) is not run then, and not looked at.
    Raises ImageDamaged.
    """
    try:
        data = image.payload if image.kind is ImageKind.VMLINUX else _unpack(image)
        bootable = data[:4] == ELF_MAGIC and has_pvh_entry(data)
    except _CannotUnpack as error:
        return _booted_whole(image, str(error))
    except (ELFError, ConstructError) as error:
        raise _damaged(image, f"its unpacked payload is no whole ELF file ({error})") from error
    if data[:4] != ELF_MAGIC:
        raise _damaged(image, f"its unpacked payload is not ELF (it starts {data[:4].hex(' ')})")
    if not bootable:
        return _booted_whole(image, "it has no PVH note (built without CONFIG_PVH)")
    return Extracted(data, unchecked=_unchecked(image))


def _booted_whole(image: KernelImage, reason: str) -> Extracted:
    """A bzImage that is booted as it is, setup code and all: its own checksum is the only one of that.

    Raises ImageDamaged.
    """
    _checked(image, image.data)
    checked = image.kind is ImageKind.VMLINUX or image.has_checksum
    return Extracted(None, reason, "" if checked else "boot images have no checksum since Linux 6.15")


def _unchecked(image: KernelImage) -> str:
    if image.kind is ImageKind.VMLINUX or image.has_checksum:
        return ""
    known = (method for magic, method, _ in _METHODS if image.payload.startswith(magic))
    method = next(known, "uncompressed")
    if method in _WITH_CHECKSUM:
        return ""
    return f"its {method} payload has no checksum, and boot images have none since Linux 6.15"


def _unpack(image: KernelImage) -> bytes:
    payload = image.payload
    if payload[:4] == ELF_MAGIC:
        return _checked(image, payload)
    for magic, method, unpack in _METHODS:
        if payload.startswith(magic):
            try:
                data = _whole(unpack(payload), payload)
            except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, *_FOREIGN_ERRORS) as error:
                raise _damaged(image, f"its {method} payload cannot be unpacked ({error})") from error
            return data if method in _WITH_CHECKSUM else _checked(image, data)
    _checked(image, payload)
    raise _CannotUnpack(f"its payload is compressed in an unknown way (it starts {payload[:4].hex(' ')})")


def _checked(image: KernelImage, data: bytes) -> bytes:
    """What has no checksum of its own is checked by that of the whole image. Raises ImageDamaged."""
    if image.has_wrong_checksum:
        raise _damaged(image, "it does not have the checksum that its build gave it")
    return data


def _damaged(image: KernelImage, problem: str) -> ImageDamaged:
    return ImageDamaged(name=image.path, path=image.path, problem=problem)


def _whole(data: bytes, payload: bytes) -> bytes:
    """Check the length that the build wrote behind the packed data (gzip does so itself)."""
    promised = struct.unpack("<I", payload[-4:])[0]
    if len(data) & 0xFFFFFFFF != promised:
        raise ValueError(f"it unpacks to {len(data)} bytes, not {promised}")
    return data


class _Stream(Protocol):
    """A decompressor that is fed a stream: it returns what it has when that ends early, without an error."""

    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def _to_its_end(stream: _Stream, payload: bytes) -> bytes:
    """All of it. Only at the stream's end are the checksums of xz, zstd, gzip and bzip2 compared."""
    data = stream.decompress(payload)
    if not stream.eof:
        raise EOFError("it ends too early")
    return data


def _gzip(payload: bytes) -> bytes:
    return _to_its_end(zlib.decompressobj(wbits=31), payload)


def _xz(payload: bytes) -> bytes:
    return _to_its_end(lzma.LZMADecompressor(format=lzma.FORMAT_XZ), payload)


def _lzma(payload: bytes) -> bytes:
    return _to_its_end(lzma.LZMADecompressor(format=lzma.FORMAT_ALONE), payload)


def _bzip2(payload: bytes) -> bytes:
    return _to_its_end(bz2.BZ2Decompressor(), payload)


def _zstd(payload: bytes) -> bytes:
    return _to_its_end(zstandard.ZstdDecompressor().decompressobj(), payload)


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


_WITH_CHECKSUM = {"gzip", "xz", "zstd", "bzip2", "lzo"}
"""Their streams (lzop's container) say whether they are whole, as the kernel's build makes them."""
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
