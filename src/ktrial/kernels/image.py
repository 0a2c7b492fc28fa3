"""Kernel images: the ELF file inside, its symbols, and the source file of each function."""

import bz2
import io
import lzma
import os
import re
import shutil
import stat
import struct
import subprocess
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn, Protocol

import lz4.block
import zstandard
from elftools.common.exceptions import ELFError

from ktrial.kernels.errors import ImageError, ImageTruncated, NotAKernel
from ktrial.kernels.files import UNPACKING_BYTES
from ktrial.model.kernel import BootImage

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section

# Read a kernel image: a bzImage by its setup header, or an ELF vmlinux; say what another file is.
#
# The setup header's fields are those of the kernel's Documentation/arch/x86/boot.rst, section 'Details of
# header fields'; offsets are from the start of the file.
#
# The checksum of a whole bzImage is written at its end by tools/build of the kernel's own tree (the same
# file, section 'The image checksum'): CRC-32 with all bits set before and none turned after, so that it is
# 0 over all that the setup header calls the image. A distribution that signs the image for Secure Boot
# changes two fields of its PE header later: the PE file's own checksum, and where the signature is.

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
_RELEASE = re.compile(r"(?!\.)[!-.0-\[\]-~]{1,64}")
"""Printable ASCII without blanks and slashes; `struct new_utsname` has room for 64 characters."""
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

    Raises KernelError, NotAKernel or ImageTruncated.
    """
    data = _contents(path)
    if data[:4] == ELF_MAGIC:
        check_elf(path, data)
        match = _LINUX_VERSION.search(data)
        if match is None:
            raise NotAKernel(path=path, found="an ELF program without a Linux version string")
        release = _checked_release(path, match[1].decode("ascii", "replace"))
        return KernelImage(ImageKind.VMLINUX, release, data, data, path)
    if data[0x1FE:0x200] == b"\x55\xaa" and data[0x202:0x206] == b"HdrS":
        return _bzimage(path, data)
    if architecture := other_architecture(data):
        raise _wrong_architecture(path, architecture)
    raise NotAKernel(path=path, found=what_it_is(data))


def boot_image(path: Path) -> BootImage:
    """What a machine must know of the kernel at `path`; only its headers are read.

    Raises KernelError or ImageTruncated.
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
        raise _unreadable(path, error.strerror or str(error)) from error
    except (ELFError, struct.error) as error:
        raise ImageTruncated(path=path, present=size, promised="whole headers") from error


def _contents(path: Path) -> bytes:
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST:
            return path.read_bytes() or _refuse(path, "an empty file")
    except FileNotFoundError as error:
        raise _unreadable(path, "there is no such file") from error
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    if stat.S_ISREG(status.st_mode):
        return _refuse(path, f"a file of {status.st_size >> 30} GiB")
    return _refuse(path, "a directory" if stat.S_ISDIR(status.st_mode) else "a device, pipe or socket")


def _refuse(path: Path, kind: str) -> NoReturn:
    raise NotAKernel(path=path, found=kind)


def _unreadable(path: Path, why: str) -> ImageError:
    return ImageError(f"{path} cannot be read: {why}.", hint=NotAKernel.hint)


def _wrong_architecture(path: Path, architecture: str) -> ImageError:
    return ImageError(
        f"{path} is a kernel image for {architecture}; ktrial boots x86-64 kernels only.",
        hint="build or fetch the kernel for x86-64 (Debian calls it amd64)",
    )


def _bzimage(path: Path, data: bytes) -> KernelImage:
    if len(data) < _HEADER_END:
        raise ImageTruncated(path=path, present=len(data), promised=f"at least {_HEADER_END}")
    version, xloadflags = _u16(data, 0x206), _u16(data, 0x236)
    if version < _VERSION_2_08:
        kind = f"a boot image of protocol {version >> 8}.{version & 0xFF:02} (before Linux 2.6.26)"
        raise NotAKernel(path=path, found=kind)
    if version < _VERSION_2_12 or not xloadflags & _XLF_KERNEL_64:
        raise _wrong_architecture(path, "32-bit x86 (or older than Linux 3.8)")
    setup_bytes = ((data[0x1F1] or 4) + 1) * _SECTOR
    start = setup_bytes + _u32(data, 0x248)
    end = start + _u32(data, 0x24C)
    # Field syssize, in paragraphs: all that is loaded behind the setup code, the payload with it.
    needed = max(end, setup_bytes + _u32(data, 0x1F4) * 16)
    if len(data) < needed:
        raise ImageTruncated(path=path, present=len(data), promised=f"at least {needed}")
    release, loaded = _release(path, data), _u32(data, 0x1F4) * 16
    has_checksum = bool(loaded) and _builds_have_checksum(release)
    wrong = has_checksum and zlib.crc32(_unsigned(data[: setup_bytes + loaded])) != _ALL_BITS
    return KernelImage(ImageKind.BZIMAGE, release, data, data[start:end], path, wrong)


def _release(path: Path, data: bytes) -> str:
    """Field kernel_version: a pointer, less 0x200, to `6.1.0-50-cloud-amd64 (who@where) #1 SMP …`."""
    offset = _u16(data, 0x20E)
    text = data[0x200 + offset : 0x200 + offset + 256].split(b"\0")[0].decode("ascii", "replace")
    if not offset or not text.split():
        raise NotAKernel(path=path, found="a boot image without a version string")
    return _checked_release(path, text.split()[0])


def _checked_release(path: Path, release: str) -> str:
    """Modules lie in a directory of this name, and terminals show it. Raises NotAKernel."""
    if not _RELEASE.fullmatch(release):
        raise NotAKernel(path=path, found=f"a boot image whose release cannot be one ({release[:64]!r})")
    return release


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


def _unsigned(image: bytes) -> bytes:
    """As it was before it was signed."""
    start = struct.unpack_from("<I", image, _PE_AT)[0]
    if image[start : start + 4] != b"PE\0\0" or start + _PE_SIGNATURE + 8 > len(image):
        return image
    plain = bytearray(image)
    plain[start + _PE_CHECKSUM : start + _PE_CHECKSUM + 4] = bytes(4)
    plain[start + _PE_SIGNATURE : start + _PE_SIGNATURE + 8] = bytes(8)
    return bytes(plain)


# What ktrial must know of an ELF vmlinux: that it is one, whole, and whether QEMU can start it.

ELF_MAGIC = b"\x7fELF"
_XEN_PHYS32_ENTRY = 18
"""XEN_ELFNOTE_PHYS32_ENTRY (xen/interface/elfnote.h): the address at which PVH guests start, 32-bit mode."""
_STUMBLES = (
    *(ValueError, LookupError, AssertionError, struct.error),
    *(OverflowError, AttributeError, TypeError, ZeroDivisionError),
)
"""What pyelftools raises, apart from errors of its own, on what is no sound file."""
_MOST_SEGMENTS, _MOST_SECTIONS = 1000, 10_000
"""A kernel has some ten, and some hundred."""
_NOTE = struct.Struct("<III")
"""Bytes of the name, of the content, type."""
_SYMBOL = struct.Struct("<IBBHQQ")
"""Elf64_Sym: name, type and binding, visibility, section, address, size."""
_LOCAL, _WEAK = 0, 2
_RESERVED = 0xFF00
"""From here on a number stands for no section (SHN_LORESERVE)."""
_LONGEST_SYMBOL = 4096
"""KSYM_NAME_LEN is 512; C++ and Rust have longer ones than C."""
_KINDS = {"ET_REL": "an ELF object or kernel module", "ET_DYN": "an ELF program or library"}


def check_elf(path: Path, data: bytes) -> None:
    """Raise NotAKernel, KernelError or ImageTruncated unless `data` is a whole x86-64 executable."""
    try:
        with sound_elf(io.BytesIO(data)) as elf:
            if elf["e_type"] != "ET_EXEC":
                raise NotAKernel(path=path, found=_KINDS.get(elf["e_type"], f"ELF of kind {elf['e_type']}"))
            if elf["e_machine"] != "EM_X86_64" or elf.elfclass != 64:
                raise _wrong_architecture(path, elf.get_machine_arch())
            end = _end(elf)
    except ELFError as error:
        raise ImageTruncated(path=path, present=len(data), promised="a whole ELF header") from error
    if len(data) < end:
        raise ImageTruncated(path=path, present=len(data), promised=f"at least {end}")


@contextmanager
def sound_elf(file: BinaryIO) -> "Iterator[ELFFile]":
    """An ELF file to be read in the block. Raises ELFError, there too, where it is not as it should be.

    pyelftools believes what a file says of itself: its loops end where the file says so, and what it stumbles
    over it raises as it comes.
    """
    # Most commands look into no kernel, and need not wait for what reads one.
    from elftools.construct import ConstructError
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(file)
        _check_tables(elf)
        yield elf
    except (ConstructError, *_STUMBLES) as error:
        raise ELFError(f"it is not a valid ELF file: {error}") from error


def _check_tables(elf: "ELFFile") -> None:
    """Raises ELFError where a table cannot be that of a kernel. (One that is cut short may be.)"""
    segments, sections = elf["e_phnum"], elf["e_shnum"]
    if segments and elf["e_phentsize"] != elf.structs.Elf_Phdr.sizeof():
        raise ELFError(f"its segments' headers have {elf['e_phentsize']} bytes")
    if elf["e_shoff"] and (not sections or elf["e_shentsize"] != elf.structs.Elf_Shdr.sizeof()):
        raise ELFError(f"its {sections} sections' headers have {elf['e_shentsize']} bytes")
    if segments > _MOST_SEGMENTS or sections > _MOST_SECTIONS:
        raise ELFError(f"it has {segments} segments and {sections} sections")


def memory_end(file: BinaryIO) -> int:
    """The highest address that its segments fill. Raises ELFError."""
    with sound_elf(file) as elf:
        loaded = elf.iter_segments(type="PT_LOAD")
        return max((int(segment["p_paddr"] + segment["p_memsz"]) for segment in loaded), default=0)


def has_pvh_entry(data: bytes) -> bool:
    """Whether QEMU can start this vmlinux directly: a `Xen` note of type 18 in a PT_NOTE segment.

    QEMU reads it in hw/i386/x86-common.c (read_pvh_start_addr); Linux writes it with CONFIG_PVH. Raises
    ELFError.
    """
    with sound_elf(io.BytesIO(data)) as elf:
        places = [(entry["p_offset"], entry["p_filesz"]) for entry in elf.iter_segments(type="PT_NOTE")]
    if sum(size for _, size in places) > len(data):
        raise ELFError("its notes overlap")
    return any(
        (name, kind) == (b"Xen\0", _XEN_PHYS32_ENTRY)
        for start, size in places
        for name, kind in _notes(data, start, min(start + size, len(data)))
    )


def _notes(data: bytes, at: int, end: int) -> Iterator[tuple[bytes, int]]:
    """Name and type of each note; both name and content are padded to four bytes (elf(5))."""
    while at + _NOTE.size <= end:
        name, content, kind = _NOTE.unpack_from(data, at)
        at += _NOTE.size
        yield data[at : min(at + name, end)], kind
        at += (name + 3 & ~3) + (content + 3 & ~3)


def symbols_of(data: bytes) -> Iterator[tuple[int, str, str]]:
    """Address, kind (as nm prints it: `T`, `D`; lower case: local) and name, from the symbol table if any.

    Raises ELFError.
    """
    with sound_elf(io.BytesIO(data)) as elf:
        sections = list(elf.iter_sections())
        tables = [section for section in sections if section["sh_type"] in {"SHT_SYMTAB", "SHT_DYNSYM"}]
        # Else few bytes could be read very often.
        if sum(table["sh_size"] for table in tables) > len(data):
            raise ELFError("its symbol tables overlap")
        for table in tables:
            yield from _symbols(data, table, sections)


def _symbols(data: bytes, table: "Section", sections: "list[Section]") -> Iterator[tuple[int, str, str]]:
    names = _content(data, sections[table["sh_link"]])
    rows = _content(data, table)
    for name, info, _, section, address, _ in _SYMBOL.iter_unpack(rows[: len(rows) // 24 * 24]):
        if name and 0 < section < _RESERVED:
            end = names.find(b"\0", name, name + _LONGEST_SYMBOL)
            if end < 0:
                raise ELFError("a symbol's name does not end")
            text = names[name:end].decode("utf-8", "replace")
            yield address, _letter(sections[section]["sh_flags"], info >> 4), text


def _content(data: bytes, section: "Section") -> bytes:
    return data[section["sh_offset"] :][: section["sh_size"]]


def _letter(flags: int, bind: int) -> str:
    from elftools.elf.constants import SH_FLAGS

    letter = "T" if flags & SH_FLAGS.SHF_EXECINSTR else "D" if flags & SH_FLAGS.SHF_WRITE else "R"
    return letter.lower() if bind == _LOCAL else "W" if bind == _WEAK else letter


def _end(elf: "ELFFile") -> int:
    """The last byte that the headers speak of."""
    tables = [
        elf["e_phoff"] + elf["e_phnum"] * elf["e_phentsize"],
        elf["e_shoff"] + elf["e_shnum"] * elf["e_shentsize"],
    ]
    if max(tables) > elf.stream_len:
        return int(max(tables))
    ends = [segment["p_offset"] + segment["p_filesz"] for segment in elf.iter_segments()]
    return int(max([*tables, *ends]))


# Take the ELF vmlinux out of a bzImage: a guest that starts from it needs no decompression.
#
# The payload is found through the setup header, not by searching for magic bytes. It is the ELF file (with
# relocations behind it where the kernel is relocatable), compressed by one of the seven programs that
# scripts/Makefile.lib knows; all but gzip have the unpacked length appended as four bytes, little-endian.

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


def vmlinux_of(image: KernelImage) -> Extracted:
    """Unpack the payload of `image` and check that QEMU can start it.

    What lies around the payload (setup code, decompressor, signature) is not run then, and not looked at.
    Raises ImageError where it is damaged.
    """
    try:
        data = image.payload if image.kind is ImageKind.VMLINUX else _unpack(image)
        bootable = data[:4] == ELF_MAGIC and has_pvh_entry(data)
    except _CannotUnpack as error:
        return _booted_whole(image, str(error))
    except ELFError as error:
        raise _damaged(image, f"its unpacked payload is not a whole ELF file ({error})") from error
    if data[:4] != ELF_MAGIC:
        raise _damaged(image, f"its unpacked payload is not ELF (it starts {data[:4].hex(' ')})")
    if not bootable:
        return _booted_whole(image, "it has no PVH note (built without CONFIG_PVH)")
    methods = (method for magic, method, _ in _METHODS if image.payload.startswith(magic))
    method = next(methods, "uncompressed")
    if image.kind is ImageKind.VMLINUX or image.has_checksum or method in _WITH_CHECKSUM:
        return Extracted(data)
    unchecked = f"its {method} payload has no checksum, and boot images have none since Linux 6.15"
    return Extracted(data, unchecked=unchecked)


def _booted_whole(image: KernelImage, reason: str) -> Extracted:
    """A bzImage that is booted as it is, setup code and all: its own checksum is the only one of that.

    Raises ImageError.
    """
    _checked(image, image.data)
    checked = image.kind is ImageKind.VMLINUX or image.has_checksum
    return Extracted(None, reason, "" if checked else "boot images have no checksum since Linux 6.15")


def _unpack(image: KernelImage) -> bytes:
    payload = image.payload
    if payload[:4] == ELF_MAGIC:
        return _checked(image, payload)
    for magic, method, unpack in _METHODS:
        if payload.startswith(magic):
            try:
                # The build wrote the length behind the packed data; gzip does so itself.
                promised = struct.unpack("<I", payload[-4:])[0]
                if promised > min(_MOST_UNPACKED, len(payload) * _MOST_TIMES):
                    raise ValueError(f"it says that it unpacks to {promised} bytes, as no kernel does")
                data = unpack(payload, promised)
                if len(data) != promised:
                    raise ValueError(f"it unpacks to {len(data)} bytes, not {promised}")
            except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, *_FOREIGN_ERRORS) as error:
                raise _damaged(image, f"its {method} payload cannot be unpacked ({error})") from error
            return data if method in _WITH_CHECKSUM else _checked(image, data)
    _checked(image, payload)
    raise _CannotUnpack(f"its payload is compressed in an unknown way (it starts {payload[:4].hex(' ')})")


def _checked(image: KernelImage, data: bytes) -> bytes:
    """What has no checksum of its own is checked by that of the whole image. Raises ImageError."""
    if image.has_wrong_checksum:
        raise _damaged(image, "it does not have the checksum that its build gave it")
    return data


def _damaged(image: KernelImage, problem: str) -> ImageError:
    return ImageError(
        f"{image.path} is a kernel image that is damaged: {problem}.", hint="copy or build it again"
    )


_Unpack = Callable[[bytes, int], bytes]
"""From a payload, and the bytes that it says it unpacks to."""
_PIECE = 1024
"""Bytes that are unpacked at once: of zstd, no more than 32 MiB come out of them."""
_MOST_UNPACKED = 1 << 30
"""The x86-64 kernel's own address range (KERNEL_IMAGE_SIZE, with KASLR)."""
_MOST_TIMES = 200
"""The times that a payload may grow: those of kernels become three to eight times as large."""


class _Stream(Protocol):
    """A decompressor that is fed a stream: it returns what it has when that ends early, without an error."""

    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def _to_its_end(stream: Callable[[], _Stream]) -> _Unpack:
    """Unpack all of it. Only at the stream's end are the checksums of xz, zstd, gzip and bzip2 compared."""

    def unpacked(payload: bytes, size: int) -> bytes:
        decompressor, blocks = stream(), _Blocks(size)
        for start in range(0, len(payload), _PIECE):
            blocks.add(decompressor.decompress(payload[start : start + _PIECE]))
            if decompressor.eof:
                return blocks.joined()
        raise EOFError("it ends too early")

    return unpacked


class _Blocks:
    """What was unpacked so far, and no more than was promised."""

    def __init__(self, size: int) -> None:
        self._left, self._blocks = size, list[bytes]()

    def add(self, block: bytes) -> None:
        """Raises ValueError where that is too much."""
        self._left -= len(block)
        if self._left < 0:
            raise ValueError("it unpacks to more bytes than it says")
        self._blocks.append(block)

    def joined(self) -> bytes:
        return b"".join(self._blocks)


def _lz4(payload: bytes, size: int) -> bytes:
    """The legacy frame: magic, then blocks with their packed length in front."""
    blocks, position, end = _Blocks(size), 4, len(payload) - 4
    while position + 4 <= end:
        length = struct.unpack_from("<I", payload, position)[0]
        block = payload[position + 4 : position + 4 + length]
        blocks.add(lz4.block.decompress(block, uncompressed_size=_LZ4_LEGACY_BLOCK))
        position += 4 + length
    return blocks.joined()


def _lzo(payload: bytes, _size: int) -> bytes:
    """By the program lzop: its container has no reader in Python that is kept up."""
    program = shutil.which("lzop")
    if program is None:
        raise _CannotUnpack("its payload is compressed with LZO, and the program lzop is not installed")
    finished = subprocess.run([program, "-dc"], input=payload[:-4], capture_output=True, check=False)
    if finished.returncode:
        raise ValueError(finished.stderr.decode("utf-8", "replace").strip())
    return finished.stdout


_WITH_CHECKSUM = {"gzip", "xz", "zstd", "bzip2", "lzo"}
"""Their streams (lzop's container) say whether they are whole, as the kernel's build makes them."""
_FOREIGN_ERRORS = (zstandard.ZstdError, lz4.block.LZ4BlockError, struct.error)
_METHODS: tuple[tuple[bytes, str, _Unpack], ...] = (
    (b"\x1f\x8b", "gzip", _to_its_end(lambda: zlib.decompressobj(wbits=31))),
    (b"\xfd7zXZ\0", "xz", _to_its_end(lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, UNPACKING_BYTES))),
    (b"\x28\xb5\x2f\xfd", "zstd", _to_its_end(lambda: zstandard.ZstdDecompressor().decompressobj())),
    (b"\x02\x21\x4c\x18", "lz4", _lz4),
    (b"BZh", "bzip2", _to_its_end(bz2.BZ2Decompressor)),
    (b"\x89LZO", "lzo", _lzo),
    (b"\x5d\0\0", "lzma", _to_its_end(lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, UNPACKING_BYTES))),
)
