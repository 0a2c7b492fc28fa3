"""Kernel images: bzImage and vmlinux, what is packed in them, their symbols and their functions' files.

An input begins with a byte that says what follows: 0, the whole file; 1, the payload of a bzImage; 2, a
vmlinux beside an image; 3 to 8, what is packed into a payload.
"""

import os
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from elftools.common.exceptions import ELFError
from tests.support.kernel_images import COMPRESSIONS, bzimage

from ktrial.errors import KtrialError
from ktrial.kernels.image import boot_image, read_image, symbols_of, vmlinux_of
from ktrial.kernels.symbols import function_files
from ktrial.model.kernel import Kernel, Origin

WORDS = (
    *(b"\x7fELF\x02\x01\x01", b"HdrS", b"\x55\xaa", b"MZ", b"PE\0\0", b"zimg", b"Linux version 6.1.0 "),
    *(b"\x1f\x8b\x08", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"\x02\x21\x4c\x18", b"BZh9", b"\x5d\0\0"),
    *(b"__bug_table", b"Xen\0", b"mm/slub.c\0", b"\xff\xff\xff\xff", b"\xff\xff", b"\0\0\0\0\0\0\0\0"),
)
_METHODS = ("none", "gzip", "xz", "zstd", "bzip2", "lzma")
_PAYLOAD, _VMLINUX, _PACKED = 1, 2, 3
_NUMBERS = count()


def read(data: bytes) -> None:
    """Read the image as the cache does, then its symbols."""
    # lzop is a program of its own.
    os.environ["PATH"] = ""
    mode, rest = data[:1] or b"\0", data[1:]
    with TemporaryDirectory() as directory:
        path = Path(directory) / "vmlinuz"
        if mode[0] == _VMLINUX:
            _symbols(path, rest)
        else:
            path.write_bytes(_file(mode[0], rest))
            _image(path)


def _file(mode: int, rest: bytes) -> bytes:
    if mode == _PAYLOAD:
        return bzimage(rest)
    if _PACKED <= mode < _PACKED + len(_METHODS):
        return bzimage(COMPRESSIONS[_METHODS[mode - _PACKED]](rest))
    return rest


def _image(path: Path) -> None:
    with suppress(KtrialError):
        image = read_image(path)
        assert (Path("/") / image.release).parent == Path("/")
        extracted = vmlinux_of(image)
        if extracted.vmlinux is not None:
            path.write_bytes(extracted.vmlinux)
        boot_image(path)


def _symbols(image: Path, vmlinux: bytes) -> None:
    file = image.with_name("vmlinux")
    file.write_bytes(vmlinux)
    image.with_name("System.map").write_bytes(b"ffffffff81000000 T _text\n")
    kernel = Kernel(
        name=f"fuzz-{next(_NUMBERS)}",
        release="6.1.0",
        origin=Origin(provider="path", source="/fuzz"),
        digest="0" * 64,
        image=image,
        vmlinux=file,
    )
    with suppress(ELFError):
        list(symbols_of(vmlinux))
    function_files(kernel)
