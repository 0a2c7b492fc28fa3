"""Read a kernel image: a bzImage by its setup header, or an ELF vmlinux; say what another file is.

The setup header's fields are those of the kernel's Documentation/arch/x86/boot.rst, section 'Details of
header fields'; offsets are from the start of the file.

The checksum of a whole bzImage is written at its end by tools/build of the kernel's own tree (the same file,
section 'The image checksum'): CRC-32 with all bits set before and none turned after, so that it is 0 over all
that the setup header calls the image. A distribution that signs the image for Secure Boot changes two fields
of its PE header later: the PE file's own checksum, and where the signature is.
"""

import os
import re
import stat
import struct
import zlib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NoReturn

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError

from ktrial.kernels.errors import ImageTruncated, ImageUnreadable, NotAKernel, WrongArchitecture
from ktrial.kernels.image.elf import ELF_MAGIC, check_elf, memory_end
from ktrial.model.kernel import BootImage

_SECTOR = 512
_HEADER_END = 0x250
_VERSION_2_08 = 0x208
"""The first protocol with payload_offset and payload_length (Linux 2.6.26)."""
_VERSION_2_12 = 0x20C
"""The first protocol with xloadflags (Linux 3.8)."""
_XLF_KERNEL_64 = 1
_PREFERRED_ADDRESS = 0x258
_ADDRESS_AND_SIZE = struct.Struct("<QI")
"""Fields pref_address and init_size, side by side: where it unpacks itself, and the memory that takes."""
_LARGEST = 4 << 30
"""A vmlinux with full debugging information has about 1 GiB."""
_LINUX_VERSION = re.compile(rb"Linux version (\S{3,64}) ")
_PE_AT = 0x3C
_PE_CHECKSUM, _PE_SIGNATURE = 24 + 64, 24 + 144
"""From the PE header's start, of a PE32+ file: the optional header begins behind 24 bytes."""
_LAST_WITH = (6, 14)
"""'x86/boot: Drop CRC-32 checksum and the build tool that generates it' took it away after that."""
_ALL_BITS = 0xFFFFFFFF


class ImageKind(Enum):
    """The two forms that ktrial boots."""

    BZIMAGE = "bzImage"
    VMLINUX = "ELF vmlinux"


@dataclass(frozen=True)
class KernelImage:
    """A checked kernel image."""

    kind: ImageKind
    release: str
    """`uname -r`."""
    data: bytes
    payload: bytes
    """The compressed kernel inside a bzImage; the whole file of a vmlinux."""
    path: Path
    has_wrong_checksum: bool = False
    """A bzImage that is not what its build made, by the checksum at its end; later kernels have none."""

    @property
    def has_checksum(self) -> bool:
        """Whether it has one at its end."""
        return self.kind is ImageKind.BZIMAGE and _builds_have_checksum(self.release)


def read_image(path: Path) -> KernelImage:
    """Read and check the image at `path`.

    Raises ImageUnreadable, NotAKernel, ImageTruncated or WrongArchitecture.
    """
    data = _contents(path)
    if data[:4] == ELF_MAGIC:
        return _vmlinux(path, data)
    if data[0x1FE:0x200] == b"\x55\xaa" and data[0x202:0x206] == b"HdrS":
        return _bzimage(path, data)
    if architecture := other_architecture(data):
        raise WrongArchitecture(name=path, path=path, architecture=architecture)
    raise NotAKernel(name=path, path=path, found=what_it_is(data))


def boot_image(path: Path) -> BootImage:
    """What a machine must know of the kernel at `path`; only its headers are read.

    Raises ImageUnreadable or ImageTruncated.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(_PREFERRED_ADDRESS + _ADDRESS_AND_SIZE.size)
            if head.startswith(ELF_MAGIC):
                return BootImage(size=size, memory_end=memory_end(file))
            address, memory = _ADDRESS_AND_SIZE.unpack_from(head, _PREFERRED_ADDRESS)
            return BootImage(size=size, memory_end=address + memory)
    except OSError as error:
        raise ImageUnreadable(name=path, path=path, problem=error.strerror or error) from error
    except (ELFError, ConstructError, struct.error) as error:
        raise ImageTruncated(name=path, path=path, present=size, promised="whole headers") from error


def _contents(path: Path) -> bytes:
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST:
            return path.read_bytes() or _refuse(path, "an empty file")
    except FileNotFoundError as error:
        raise ImageUnreadable(name=path, path=path, problem="there is no such file") from error
    except OSError as error:
        raise ImageUnreadable(name=path, path=path, problem=error.strerror or error) from error
    if stat.S_ISREG(status.st_mode):
        return _refuse(path, f"a file of {status.st_size >> 30} GiB")
    return _refuse(path, "a directory" if stat.S_ISDIR(status.st_mode) else "a device, pipe or socket")


def _refuse(path: Path, kind: str) -> NoReturn:
    raise NotAKernel(name=path, path=path, found=kind)


def _vmlinux(path: Path, data: bytes) -> KernelImage:
    check_elf(path, data)
    match = _LINUX_VERSION.search(data)
    if match is None:
        raise NotAKernel(name=path, path=path, found="an ELF program without a Linux version string")
    return KernelImage(ImageKind.VMLINUX, match[1].decode("ascii", "replace"), data, data, path)


def _bzimage(path: Path, data: bytes) -> KernelImage:
    if len(data) < _HEADER_END:
        raise ImageTruncated(name=path, path=path, present=len(data), promised=f"at least {_HEADER_END}")
    version, xloadflags = _u16(data, 0x206), _u16(data, 0x236)
    if version < _VERSION_2_08:
        kind = f"a boot image of protocol {version >> 8}.{version & 0xFF:02} (before Linux 2.6.26)"
        raise NotAKernel(name=path, path=path, found=kind)
    if version < _VERSION_2_12 or not xloadflags & _XLF_KERNEL_64:
        raise WrongArchitecture(name=path, path=path, architecture="32-bit x86 (or older than Linux 3.8)")
    setup_bytes = ((data[0x1F1] or 4) + 1) * _SECTOR
    start = setup_bytes + _u32(data, 0x248)
    end = start + _u32(data, 0x24C)
    # Field syssize, in paragraphs: all that is loaded behind the setup code, the payload with it.
    needed = max(end, setup_bytes + _u32(data, 0x1F4) * 16)
    if len(data) < needed:
        raise ImageTruncated(name=path, path=path, present=len(data), promised=f"at least {needed}")
    release, loaded = _release(path, data), _u32(data, 0x1F4) * 16
    wrong = bool(loaded) and _is_checksum_wrong(data[: setup_bytes + loaded], release)
    return KernelImage(ImageKind.BZIMAGE, release, data, data[start:end], path, wrong)


def _release(path: Path, data: bytes) -> str:
    """Field kernel_version: a pointer, less 0x200, to `6.1.0-50-cloud-amd64 (who@where) #1 SMP …`."""
    offset = _u16(data, 0x20E)
    text = data[0x200 + offset : 0x200 + offset + 256].split(b"\0")[0].decode("ascii", "replace")
    if not offset or not text.split():
        raise NotAKernel(name=path, path=path, found="a boot image without a version string")
    return text.split()[0]


def _u16(data: bytes, offset: int) -> int:
    return int(struct.unpack_from("<H", data, offset)[0])


def _u32(data: bytes, offset: int) -> int:
    return int(struct.unpack_from("<I", data, offset)[0])


_COMPRESSED = {
    b"\x1f\x8b": "a gzip file (unpack it first)",
    b"\xfd7zXZ\0": "an xz file (unpack it first)",
    b"\x28\xb5\x2f\xfd": "a zstd file (unpack it first)",
    b"BZh": "a bzip2 file (unpack it first)",
    b"!<arch>\ndebian": "a Debian package (give the vmlinuz inside it)",
    b"070701": "a cpio archive, such as an initrd",
    b"PK\x03\x04": "a zip archive",
    b"\xed\xab\xee\xdb": "an RPM package (give the vmlinuz inside it)",
    b"QFI\xfb": "a qcow2 disk image",
}


def other_architecture(data: bytes) -> str:
    """Name the architecture of a kernel image that is not for x86; empty where it is no such thing."""
    if data[4:8] == b"zimg" and data[:2] == b"MZ":
        # drivers/firmware/efi/libstub/zboot-header.S: MZ, zimg, payload's offset and size, its compression.
        method = data[24:56].split(b"\0")[0].decode("ascii", "replace") or "unknown compression"
        return f"arm64, RISC-V or LoongArch (an EFI zboot image, {method})"
    if data[0x38:0x3C] == b"ARM\x64":
        return "arm64"
    if data[0x38:0x3C] == b"RSC\x05":
        return "RISC-V"
    if data[0x24:0x28] in {b"\x18\x28\x6f\x01", b"\x01\x6f\x28\x18"}:
        return "32-bit ARM (a zImage)"
    if data[:4] == b"\x27\x05\x19\x56":
        return "another machine (a U-Boot uImage)"
    return ""


def what_it_is(data: bytes) -> str:
    """Describe a file that no kernel image starts like."""
    for magic, description in _COMPRESSED.items():
        if data.startswith(magic):
            return description
    if data[:2] == b"MZ":
        return "an EFI or Windows program without a Linux boot header"
    if data[0x1FE:0x200] == b"\x55\xaa":
        return "a boot sector or disk image without a Linux boot header"
    if _is_text(data[:4096]):
        first = data.splitlines()[0][:40].decode("utf-8", "replace")
        return f"a text file (it starts '{first}')"
    if len(data) < 0x250:
        return f"{len(data)} bytes long, shorter than a kernel's header"
    return f"data of an unknown kind (it starts {data[:4].hex(' ')})"


def _is_text(data: bytes) -> bool:
    try:
        text = data.decode("utf-8", "strict")
    except UnicodeDecodeError as error:
        # A character cut in two at the end of the sample is text all the same.
        if error.start < len(data) - 3:
            return False
        text = data[: error.start].decode()
    return all(character.isprintable() or character in "\n\r\t\f\x1b" for character in text)


def _builds_have_checksum(release: str) -> bool:
    """Whether builds of this release wrote one."""
    number = re.match(r"(\d+)\.(\d+)", release)
    return number is not None and (int(number[1]), int(number[2])) <= _LAST_WITH


def _is_checksum_wrong(image: bytes, release: str) -> bool:
    """Whether the image (up to its header's syssize) has a checksum, and it is not right."""
    return _builds_have_checksum(release) and zlib.crc32(_unsigned(image)) != _ALL_BITS


def _unsigned(image: bytes) -> bytes:
    """As it was before it was signed."""
    start = struct.unpack_from("<I", image, _PE_AT)[0]
    if image[start : start + 4] != b"PE\0\0" or start + _PE_SIGNATURE + 8 > len(image):
        return image
    plain = bytearray(image)
    plain[start + _PE_CHECKSUM : start + _PE_CHECKSUM + 4] = bytes(4)
    plain[start + _PE_SIGNATURE : start + _PE_SIGNATURE + 8] = bytes(8)
    return bytes(plain)
