"""The symbols in an image's own table, as /proc/kallsyms has them. The images are small, really linked."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.kernel_images import a_kernel_of
from tests.support.scripted import a_kernel

from ktrial.kernels.code_image import CodeImage, code_image
from ktrial.kernels.kallsyms_table import kallsyms_in
from ktrial.model.kernel import Kernel

BASE = 0xFFFFFFFF81000000
SHORT = 1
"""The byte that stands for all of `pick`."""
TABLES = """
const unsigned kallsyms_num_syms = {count};
const unsigned char kallsyms_names[] = {{ {names} }};
const int kallsyms_offsets[] = {{ {offsets} }};
const unsigned long kallsyms_relative_base = {base:#x}ul;
const char kallsyms_token_table[] = {{ {tokens} }};
const unsigned short kallsyms_token_index[] = {{ {index} }};
"""
Row = tuple[int, str, str]


def packed(name: str) -> list[int]:
    text = name.encode().replace(b"pick", bytes([SHORT]))
    size = len(text)
    return [*([size] if size < 128 else [size & 127 | 128, size >> 7]), *text]


def tables(rows: Sequence[Row], *, are_absolute: bool = True) -> str:
    """In C, as scripts/kallsyms.c writes them. `are_absolute`: addresses of one CPU are."""
    tokens = [b"pick" if byte == SHORT else bytes([byte]) if byte else b"?" for byte in range(256)]
    tokens = [token if token < b"\x80" else b"?" for token in tokens]
    starts = [sum(len(token) + 1 for token in tokens[:byte]) for byte in range(256)]
    offsets = [
        address - BASE if not are_absolute else BASE - 1 - address if address >= BASE else address
        for address, _, _ in rows
    ]
    return TABLES.format(
        count=len(rows),
        names=", ".join(str(byte) for _, kind, name in rows for byte in packed(kind + name)),
        offsets=", ".join(map(str, offsets)),
        base=BASE,
        tokens=", ".join(str(byte) for token in tokens for byte in (*token, 0)),
        index=", ".join(map(str, starts)),
    )


def a_kernel_with(place: Path, *more: Row, are_absolute: bool = True, shift: int = 0) -> tuple[Kernel, str]:
    """A kernel with a table, and the text that it is to give."""
    inserted, rows = "", [(BASE, "T", "pick"), (BASE, "t", "wake"), *more]
    for _ in range(2):  # the table does not move the code: it lies behind
        kernel = a_kernel_of(place, "table", inserted=inserted + tables(rows, are_absolute=are_absolute))
        image = code_image_of(kernel)
        addresses = {name: entry.address + shift for name, (entry, *_) in image.functions.items()}
        rows = [(addresses.get(name, address), kind, name) for address, kind, name in rows]
    return kernel, "".join(f"{address:016x} {kind} {name}\n" for address, kind, name in rows)


def code_image_of(kernel: Kernel) -> CodeImage:
    assert kernel.vmlinux is not None
    return code_image(kernel.vmlinux)


@pytest.mark.parametrize("name", ["cpu_number", "n" * 127, "a_name_of_pick" * 20])
def test_the_table_is_what_the_booted_kernel_shows(name: str, tmp_path: Path) -> None:
    kernel, text = a_kernel_with(tmp_path, (0x15160, "A", name))
    assert kallsyms_in(kernel) == text


def test_offsets_may_all_lie_behind_the_base(tmp_path: Path) -> None:
    kernel, text = a_kernel_with(tmp_path, (BASE + 0x2000000, "b", "said"), are_absolute=False)
    assert kallsyms_in(kernel) == text


def test_a_function_that_lies_elsewhere_than_the_linker_says_is_believed_nowhere(tmp_path: Path) -> None:
    kernel, _ = a_kernel_with(tmp_path, shift=16)
    assert kallsyms_in(kernel) is None


def test_where_there_is_no_table_the_guest_has_to_be_asked(tmp_path: Path) -> None:
    assert kallsyms_in(a_kernel_of(tmp_path, "plain")) is None
    assert kallsyms_in(a_kernel(vmlinux=None)) is None
    (tmp_path / "cut").write_bytes(b"\x7fELF and no more")
    assert kallsyms_in(a_kernel(vmlinux=tmp_path / "cut")) is None


def test_a_table_that_is_shorter_than_it_says_is_none(tmp_path: Path) -> None:
    text = tables([(BASE, "T", "pick")]).replace("num_syms = 1", "num_syms = 900000")
    assert kallsyms_in(a_kernel_of(tmp_path, "short", inserted=text)) is None
