"""Kernel images: what is taken, what is refused, and how the vmlinux comes out of them."""

import gzip
import lzma
import os
import shutil
import struct
from pathlib import Path

import pytest
from elftools.common.exceptions import ELFError
from tests.support import kernel_images as make

from ktrial.kernels.config import embedded_config
from ktrial.kernels.errors import ImageError, ImageTruncated, NotAKernel
from ktrial.kernels.image import ImageKind, boot_image, has_pvh_entry, read_image, symbols_of, vmlinux_of

GOOD = make.bzimage(make.COMPRESSIONS["zstd"](make.elf()))
ZBOOT = b"MZ\0\0zimg" + struct.pack("<II", 4096, 9000) + bytes(8) + b"gzip\0".ljust(32, b"\0") + bytes(9000)
ARM64 = bytes(0x38) + b"ARM\x64" + bytes(4096)
RISCV = bytes(0x38) + b"RSC\x05" + bytes(4096)
ZIMAGE = bytes(0x24) + b"\x18\x28\x6f\x01" + bytes(4096)


def changed(content: bytes, at: int, layout: str, value: int) -> bytes:
    """With another value at that place."""
    made = bytearray(content)
    struct.pack_into(layout, made, at, value)
    return bytes(made)


REFUSED = [
    # what, its bytes, the error, a part of its message
    ("an empty file", b"", NotAKernel, "an empty file"),
    ("a text file", b"root:x:0:0:root\n" * 100, NotAKernel, "a text file (it starts 'root:x:0:0:root')"),
    ("text with accents", "Ärger mit dem Kern\n".encode() * 300, NotAKernel, "a text file"),
    ("a script", b"#!/bin/sh\nexit 0\n", NotAKernel, "a text file (it starts '#!/bin/sh')"),
    ("a few bytes", b"\0\1\2\3" * 10, NotAKernel, "40 bytes long, shorter than a kernel's header"),
    ("random bytes", bytes(range(256)) * 8, NotAKernel, "data of an unknown kind (it starts 00 01 02 03)"),
    ("a packed kernel", gzip.compress(GOOD), NotAKernel, "a gzip file (unpack it first)"),
    ("a Debian package", b"!<arch>\ndebian-binary   " + bytes(900), NotAKernel, "a Debian package"),
    ("an initrd", b"070701" + b"0" * 900, NotAKernel, "a cpio archive, such as an initrd"),
    ("an EFI program", b"MZ" + bytes(4096), NotAKernel, "an EFI or Windows program"),
    ("a boot sector", bytes(510) + b"\x55\xaa" + bytes(4096), NotAKernel, "a boot sector or disk image"),
    ("an EFI zboot image", ZBOOT, ImageError, "an EFI zboot image, gzip"),
    ("an arm64 Image", ARM64, ImageError, "for arm64"),
    ("a RISC-V Image", RISCV, ImageError, "for RISC-V"),
    ("an ARM zImage", ZIMAGE, ImageError, "for 32-bit ARM"),
    ("a uImage", b"\x27\x05\x19\x56" + bytes(4096), ImageError, "a U-Boot uImage"),
    ("a 32-bit bzImage", make.bzimage(b"x" * 64, xloadflags=0), ImageError, "32-bit x86"),
    ("an ancient bzImage", make.bzimage(b"x", protocol=0x204), NotAKernel, "protocol 2.04"),
    ("no version", make.bzimage(b"x" * 64, version=""), NotAKernel, "without a version string"),
    (
        "a release that leads elsewhere",
        make.bzimage(b"x" * 64, "../../../tmp/x (a@b) #1"),
        NotAKernel,
        "release",
    ),
    (
        "a release that clears terminals",
        make.bzimage(b"x" * 64, "6.1\x1b[2J (a@b) #1"),
        NotAKernel,
        "release",
    ),
    ("a vmlinux whose release leads elsewhere", make.elf(release="../../x"), NotAKernel, "'../../x'"),
    ("headers of no size", changed(make.elf(), 54, "<H", 0), ImageTruncated, "a whole ELF header"),
    ("segments without number", changed(make.elf(), 56, "<H", 0xFFFF), ImageTruncated, "a whole ELF header"),
    ("sections without number", changed(make.elf(), 40, "<Q", 64), ImageTruncated, "a whole ELF header"),
    ("a cut bzImage", GOOD[:20_000], ImageTruncated, "it has 20000 bytes, its header promises at least"),
    ("a bzImage cut in its header", GOOD[:0x210], ImageTruncated, "it has 528 bytes"),
    ("an ELF program", make.elf(kind=make.SHARED), NotAKernel, "an ELF program or library"),
    ("a kernel module", make.module(), NotAKernel, "an ELF object or kernel module"),
    ("another ELF", make.elf(release=""), NotAKernel, "an ELF program without a Linux version string"),
    ("an arm64 vmlinux", make.elf(machine=make.ARM64), ImageError, "for AArch64"),
    ("an ELF header alone", b"\x7fELF\x02\x01\x01" + bytes(9), ImageTruncated, "a whole ELF header"),
    ("a cut vmlinux", make.elf()[:130], ImageTruncated, "its header promises at least"),
]


@pytest.mark.parametrize(
    ("content", "kind", "message"), [row[1:] for row in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_what_is_no_kernel_is_refused_by_name(
    tmp_path: Path, content: bytes, kind: type[ImageError], message: str
) -> None:
    path = tmp_path / "image"
    path.write_bytes(content)
    with pytest.raises(ImageError) as caught:
        read_image(path)
    assert type(caught.value) is kind
    assert message in caught.value.message
    assert str(path) in caught.value.message
    assert caught.value.advice


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"nothing cannot be read: there is no such file\."):
        read_image(tmp_path / "nothing")


def test_a_link_in_a_circle_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ImageError, match="symbolic links"):
        read_image(tmp_path / "loop")


def test_a_directory_a_device_and_a_pipe_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, kind in (
        (tmp_path, "a directory"),
        (Path("/dev/zero"), "a device"),
        (tmp_path / "pipe", "a device, pipe"),
    ):
        with pytest.raises(NotAKernel, match=kind):
            read_image(path)


def test_a_huge_file_is_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "disk.img"
    path.touch()
    os.truncate(path, 40 << 30)
    with pytest.raises(NotAKernel, match="a file of 40 GiB"):
        read_image(path)


@pytest.mark.parametrize("compression", make.COMPRESSIONS)
def test_the_vmlinux_comes_out_of_every_compression(tmp_path: Path, compression: str) -> None:
    image = read_image(make.vmlinuz(tmp_path, compression=compression))
    assert image.kind is ImageKind.BZIMAGE
    assert image.release == make.RELEASE
    extracted = vmlinux_of(image)
    assert extracted.reason == ""
    assert extracted.vmlinux == make.elf()


def test_a_payload_of_several_lz4_blocks_is_joined(tmp_path: Path) -> None:
    data = make.elf(extra=bytes(17 << 20) + b"the end")
    (tmp_path / "vmlinuz").write_bytes(make.bzimage(make.COMPRESSIONS["lz4"](data)))
    assert vmlinux_of(read_image(tmp_path / "vmlinuz")).vmlinux == data


def test_bytes_like_a_compressed_file_before_the_payload_do_not_mislead(tmp_path: Path) -> None:
    good = bytearray(GOOD)
    good[0x900:0x90A] = gzip.compress(b"not the kernel")[:10]
    (tmp_path / "vmlinuz").write_bytes(good)
    assert vmlinux_of(read_image(tmp_path / "vmlinuz")).vmlinux == make.elf()


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"\xde\xad\xbe\xef" * 20, "compressed in an unknown way (it starts de ad be ef)"),
        (make.COMPRESSIONS["gzip"](make.elf(note=None)), "it has no PVH note"),
        (make.COMPRESSIONS["gzip"](make.elf(note=7)), "it has no PVH note"),
    ],
    ids=["unknown", "no note", "another note"],
)
def test_why_there_is_no_vmlinux_is_told(tmp_path: Path, payload: bytes, reason: str) -> None:
    (tmp_path / "vmlinuz").write_bytes(make.bzimage(payload))
    extracted = vmlinux_of(read_image(tmp_path / "vmlinuz"))
    assert extracted.vmlinux is None
    assert reason in extracted.reason


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (make.COMPRESSIONS["xz"](make.elf())[:-9000], "its xz payload cannot be unpacked"),
        (make.COMPRESSIONS["zstd"](make.elf())[:200] + bytes(500), "its zstd payload cannot be unpacked"),
        (make.COMPRESSIONS["gzip"](make.elf())[:500], "its gzip payload cannot be unpacked"),
        (make.COMPRESSIONS["gzip"](make.elf())[:-6], "its gzip payload cannot be unpacked"),
        (make.COMPRESSIONS["bzip2"](make.elf())[:500], "its bzip2 payload cannot be unpacked"),
        (make.COMPRESSIONS["lz4"](make.elf())[:500], "its lz4 payload cannot be unpacked"),
        (make.COMPRESSIONS["gzip"](b"#!/bin/sh"), "its unpacked payload is not ELF (it starts 23 21 2f 62)"),
        (make.COMPRESSIONS["gzip"](make.elf()[:80]), "its unpacked payload is not a whole ELF file"),
    ],
    ids=["xz", "zstd", "gzip", "gzip's end", "bzip2", "lz4", "no ELF", "half an ELF"],
)
def test_a_damaged_payload_is_refused(tmp_path: Path, payload: bytes, problem: str) -> None:
    (tmp_path / "vmlinuz").write_bytes(make.bzimage(payload))
    with pytest.raises(ImageError, match="is damaged") as caught:
        vmlinux_of(read_image(tmp_path / "vmlinuz"))
    assert f"{tmp_path}/vmlinuz is a kernel image that is damaged: {problem}" in caught.value.message


@pytest.mark.parametrize("compression", make.COMPRESSIONS)
def test_an_image_with_one_other_bit_gives_no_other_kernel(tmp_path: Path, compression: str) -> None:
    complete = make.with_checksum(make.bzimage(make.COMPRESSIONS[compression](make.elf())))
    start, refused = 5 * 512 + 64, 0
    places = range(start, len(complete) - 130, (len(complete) - start) // 40)
    for at in places:
        (tmp_path / "vmlinuz").write_bytes(make.flipped(complete, at))
        try:
            extracted = vmlinux_of(read_image(tmp_path / "vmlinuz"))
        except ImageError as error:
            refused += "that is damaged" in error.message
        else:  # such as the time in gzip's header
            assert extracted.vmlinux == make.elf()
    assert refused >= len(places) - 1
    (tmp_path / "vmlinuz").write_bytes(complete)
    assert vmlinux_of(read_image(tmp_path / "vmlinuz")).vmlinux == make.elf()


def test_later_kernels_have_no_checksum(tmp_path: Path) -> None:
    version = make.VERSION.replace("6.1.0", "6.18.0")
    image = make.with_checksum(make.bzimage(make.COMPRESSIONS["lz4"](make.elf()), version))
    (tmp_path / "vmlinuz").write_bytes(make.flipped(image, len(image) - 50))
    extracted = vmlinux_of(read_image(tmp_path / "vmlinuz"))
    assert extracted.vmlinux == make.elf()
    assert (
        extracted.unchecked == "its lz4 payload has no checksum, and boot images have none since Linux 6.15"
    )


@pytest.mark.parametrize("method", make.COMPRESSIONS)
def test_only_what_has_no_checksum_at_all_is_called_unchecked(method: str, tmp_path: Path) -> None:
    packed = make.COMPRESSIONS[method](make.elf())
    for release, none in (("6.1.0", False), ("6.18.0", method in {"lz4", "lzma", "none"})):
        version = make.VERSION.replace("6.1.0", release)
        (tmp_path / "vmlinuz").write_bytes(make.with_checksum(make.bzimage(packed, version)))
        assert bool(vmlinux_of(read_image(tmp_path / "vmlinuz")).unchecked) is none


SETUP_CODE, BEHIND_THE_PAYLOAD = 0x400, -60
"""Offsets of make.bzimage."""


@pytest.mark.parametrize("at", [SETUP_CODE, BEHIND_THE_PAYLOAD])
@pytest.mark.parametrize("method", make.COMPRESSIONS)
def test_what_is_not_run_is_checked_only_where_the_whole_image_is_booted(
    method: str, at: int, tmp_path: Path
) -> None:
    """Without a PVH note nothing is taken out of it: then QEMU starts its setup code."""
    path = tmp_path / "vmlinuz"
    runs_alone = method not in {"lz4", "lzma", "none"}  # these have no checksum but the image's own
    for note, is_taken_out in ((make.XEN_PHYS32_ENTRY, runs_alone), (None, False)):
        complete = make.with_checksum(make.bzimage(make.COMPRESSIONS[method](make.elf(note))))
        path.write_bytes(make.flipped(complete, at % len(complete)))
        if is_taken_out:
            assert vmlinux_of(read_image(path)).vmlinux == make.elf()
            continue
        with pytest.raises(ImageError, match="not have the checksum that its build gave it"):
            vmlinux_of(read_image(path))


def test_what_is_booted_whole_and_has_no_checksum_is_called_unchecked(tmp_path: Path) -> None:
    packed = make.COMPRESSIONS["zstd"](make.elf(note=None))
    for release, message in (("6.1.0", ""), ("6.18.0", "boot images have no checksum since Linux 6.15")):
        version = make.VERSION.replace("6.1.0", release)
        (tmp_path / "vmlinuz").write_bytes(make.with_checksum(make.bzimage(packed, version)))
        extracted = vmlinux_of(read_image(tmp_path / "vmlinuz"))
        assert (extracted.vmlinux, extracted.unchecked) == (None, message)


def test_a_signature_is_no_damage(tmp_path: Path) -> None:
    image = bytearray(make.bzimage(make.COMPRESSIONS["lz4"](make.elf())))
    struct.pack_into("<I", image, 0x3C, 0x40)
    image[0x40:0x44] = b"PE\0\0"
    signed = bytearray(make.with_checksum(bytes(image)))
    struct.pack_into("<I", signed, 0x40 + 24 + 64, 0x12345678)
    struct.pack_into("<II", signed, 0x40 + 24 + 144, len(signed), 1472)
    (tmp_path / "vmlinuz").write_bytes(bytes(signed) + bytes(1472))
    assert vmlinux_of(read_image(tmp_path / "vmlinuz")).vmlinux == make.elf()


def test_an_lzo_kernel_needs_lzop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vmlinuz").write_bytes(make.bzimage(b"\x89LZO\0\r\n\x1a\n" + bytes(60)))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("lzop") is None
    assert "the program lzop is not installed" in vmlinux_of(read_image(tmp_path / "vmlinuz")).reason


def test_an_uncompressed_vmlinux_is_its_own_image(tmp_path: Path) -> None:
    path = tmp_path / "vmlinux"
    path.write_bytes(make.elf())
    image = read_image(path)
    assert (image.kind, image.release) == (ImageKind.VMLINUX, make.RELEASE)
    assert vmlinux_of(image).vmlinux == path.read_bytes()


def test_the_pvh_note_is_xens_number_18() -> None:
    assert has_pvh_entry(make.elf())
    assert not has_pvh_entry(make.elf(note=17))
    assert not has_pvh_entry(make.elf(note=None))


def test_a_configuration_inside_the_image_is_found() -> None:
    packed = b"IKCFG_ST" + gzip.compress(make.CONFIG.encode()) + b"IKCFG_ED"
    assert embedded_config(make.elf(extra=packed)) == make.CONFIG.encode()
    assert embedded_config(make.elf()) == b""


def test_the_module_under_test_is_what_depmod_reads() -> None:
    assert b"vermagic=6.1.0-test " in make.module()
    assert lzma.decompress(lzma.compress(make.module())) == make.module()


def with_memory(image: bytes) -> bytes:
    """The bzImage unpacks itself at 16 MiB, and needs 2 MiB there."""
    data = bytearray(image)
    struct.pack_into("<QI", data, 0x258, 16 << 20, 2 << 20)
    return bytes(data)


def loaded(address: int, size: int) -> bytes:
    """An ELF file whose one segment is loaded."""
    data = bytearray(make.elf())
    struct.pack_into("<IIQQQQQQ", data, 64, 1, 5, 120, 0, address, 4096, size, 0)
    return bytes(data)


@pytest.mark.parametrize(
    ("image", "end"),
    [
        (with_memory(GOOD), 18 << 20),
        (loaded(16 << 20, 3 << 20), 19 << 20),
        (make.elf(), 0),
    ],
    ids=["bzImage", "vmlinux", "vmlinux without a loaded segment"],
)
def test_what_a_machine_must_know_to_boot_it(tmp_path: Path, image: bytes, end: int) -> None:
    path = tmp_path / "image"
    path.write_bytes(image)
    recorded = boot_image(path)
    assert (recorded.size, recorded.memory_end) == (len(image), end)


@pytest.mark.parametrize("length", [0, 40, 0x258, 0x260])
@pytest.mark.parametrize("image", [GOOD, make.elf()[:64]], ids=["bzImage", "vmlinux"])
def test_headers_that_are_cut_short_are_told(tmp_path: Path, image: bytes, length: int) -> None:
    path = tmp_path / "image"
    path.write_bytes(image[: min(length, 40) if image[:4] == b"\x7fELF" else length])
    with pytest.raises(ImageTruncated):
        boot_image(path)


def test_a_bzimage_without_all_that_is_loaded_is_cut_short(tmp_path: Path) -> None:
    data = bytearray(GOOD)
    struct.pack_into("<I", data, 0x1F4, len(data) // 16)
    path = tmp_path / "image"
    path.write_bytes(data)
    with pytest.raises(ImageTruncated, match="promises at least"):
        read_image(path)


@pytest.mark.parametrize("method", ["gzip", "xz", "lzma", "bzip2", "zstd"])
def test_few_bytes_do_not_unpack_to_very_many(tmp_path: Path, method: str) -> None:
    payload = make.COMPRESSIONS[method](make.elf(extra=bytes(64 << 20)))
    (tmp_path / "vmlinuz").write_bytes(make.bzimage(payload))
    with pytest.raises(ImageError, match=r"unpacks to \d+ bytes, as no kernel does"):
        vmlinux_of(read_image(tmp_path / "vmlinuz"))


@pytest.mark.parametrize("method", ["gzip", "xz", "lzma", "bzip2", "zstd", "lz4"])
def test_a_payload_unpacks_to_no_more_than_it_says(tmp_path: Path, method: str) -> None:
    payload = make.COMPRESSIONS[method](make.elf())
    (tmp_path / "vmlinuz").write_bytes(make.bzimage(payload[:-4] + struct.pack("<I", 1000)))
    with pytest.raises(ImageError, match=r"unpacks to more bytes than it says"):
        vmlinux_of(read_image(tmp_path / "vmlinuz"))


def test_a_header_gets_no_dictionary_of_gigabytes(tmp_path: Path) -> None:
    payload = bytearray(make.COMPRESSIONS["lzma"](make.elf()))
    struct.pack_into("<I", payload, 1, 3 << 30)
    (tmp_path / "vmlinuz").write_bytes(make.bzimage(bytes(payload)))
    with pytest.raises(ImageError, match="Memory usage limit"):
        vmlinux_of(read_image(tmp_path / "vmlinuz"))


def test_symbols_are_told_as_nm_tells_them() -> None:
    symbols = list(symbols_of(make.elf_with_symbols(3)))
    base = 0xFFFFFFFF81000000
    assert symbols == [(base, "T", "f0"), (base + 16, "t", "f1"), (base + 32, "T", "f2")]


def test_symbols_of_no_sound_file_are_an_error() -> None:
    whole = make.elf_with_symbols(3)
    table = struct.unpack_from("<Q", whole, 40)[0] + 2 * 64
    for at, value in ((table + 32, len(whole) + 1), (table + 40, 99)):  # its size, its table of names
        with pytest.raises(ELFError):
            list(symbols_of(changed(whole, at, "<Q", value)))
    with pytest.raises(ELFError, match="past EOF"):
        list(symbols_of(whole[:-400]))


def test_notes_that_overlap_are_an_error() -> None:
    with pytest.raises(ELFError, match="notes overlap"):
        has_pvh_entry(changed(make.elf(), 64 + 32, "<Q", 1 << 40))
