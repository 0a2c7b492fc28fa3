"""The symbols that a kernel shows in /proc/kallsyms, read from its image: the guest takes a second for that.

As scripts/kallsyms.c of the kernel's source writes them and kernel/kallsyms.c reads them. Where the tables
lie is known of images that kept their symbols, as those that ktrial builds do; each function's name and
address have to be in those, too. Elsewhere, and for modules, the guest is asked.
"""

import struct
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from numpy.typing import NDArray

from ktrial.kernels.code_image import CodeImage, code_image
from ktrial.model.kernel import Kernel
from ktrial.model.profile import without_numbers

_TABLES = (
    *("kallsyms_num_syms", "kallsyms_names", "kallsyms_token_table", "kallsyms_token_index"),
    *("kallsyms_offsets", "kallsyms_relative_base"),
)
_CODE = "tTwW"
_MOST = 1 << 20
"""Symbols; an image for one distribution's every machine has 200,000."""
_LONGEST = 512
"""Bytes that a name takes in the table at most, with those of its length."""
_TOKENS = 256
_LONG_NAME = 0x80
"""Since 6.1, a length from here on has its higher bits in the next byte."""


def kallsyms_in(kernel: Kernel) -> str | None:
    """The text, as the kernel without modules has it; None where its image does not tell for certain."""
    if kernel.vmlinux is None:
        return None
    try:
        image = code_image(kernel.vmlinux)
        return _text(image)
    except (ELFError, ConstructError, OSError, LookupError, ValueError, struct.error):
        return None


def _text(image: CodeImage) -> str | None:
    places = image.places(_TABLES)
    if len(places) < len(_TABLES):
        return None
    (count,) = struct.unpack("<I", image.bytes_at(places["kallsyms_num_syms"], 4))
    if not 0 < count <= _MOST:
        return None
    (base,) = struct.unpack("<Q", image.bytes_at(places["kallsyms_relative_base"], 8))
    stored = image.bytes_at(places["kallsyms_offsets"], 4 * count)
    packed = image.bytes_at(places["kallsyms_names"], _LONGEST * count)
    names = list(_names(packed, count, _tokens(image, places)))
    known = set(image.named)
    for addresses in _addresses(stored, base):
        rows = list(zip(addresses.tolist(), names, strict=True))
        if all((address, without_numbers(name[1:])) in known for address, name in rows if name[0] in _CODE):
            return "".join([f"{address:016x} {name[0]} {name[1:]}\n" for address, name in rows])
    return None


def _addresses(stored: bytes, base: int) -> Iterator[NDArray[np.uint64]]:
    """What the offsets may mean: those of one CPU's variables are absolute where they are not negative
    (CONFIG_KALLSYMS_ABSOLUTE_PERCPU), or all lie behind the base.
    """
    start = np.uint64(base)
    signed = np.frombuffer(stored, dtype="<i4").astype(np.int64)
    with np.errstate(over="ignore"):
        relative = start - np.uint64(1) - signed.astype(np.uint64)
        yield np.where(signed >= 0, signed.astype(np.uint64), relative)
        yield start + np.frombuffer(stored, dtype="<u4").astype(np.uint64)


def _tokens(image: CodeImage, places: dict[str, int]) -> list[str]:
    """What each byte of a packed name stands for."""
    starts = struct.unpack(f"<{_TOKENS}H", image.bytes_at(places["kallsyms_token_index"], 2 * _TOKENS))
    table = image.bytes_at(places["kallsyms_token_table"], starts[-1] + _LONGEST)
    ends = [*(end - 1 for _, end in pairwise(starts)), table.index(b"\0", starts[-1])]
    return [table[start:end].decode("ascii") for start, end in zip(starts, ends, strict=True)]


def _names(packed: bytes, count: int, tokens: list[str]) -> Iterator[str]:
    """Each symbol's kind and name. Raises IndexError where the table is shorter."""
    place = 0
    for _ in range(count):
        length = packed[place]
        place += 1
        if length & _LONG_NAME:
            length = (length & ~_LONG_NAME) | packed[place] << 7
            place += 1
        yield "".join([tokens[byte] for byte in packed[place : place + length]])
        place += length
