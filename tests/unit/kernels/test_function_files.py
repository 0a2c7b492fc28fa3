"""Source files of functions, from a kernel image's table of BUG() and WARN(); which of them lock memory."""

import struct
from pathlib import Path

import pytest
from tests.support.kernel_images import elf_with_symbols
from tests.support.scripted import a_kernel

from ktrial.file_digests import sealed, unsealed
from ktrial.kernels.errors import SymbolsUnknown
from ktrial.kernels.symbols import function_files, symbols_in
from ktrial.model.kernel import Kernel
from ktrial.model.profile import FunctionFiles

TEXT, STRINGS, TABLE = 0xFFFFFFFF81000000, 0xFFFFFFFF82000000, 0xFFFFFFFF83000000
LOCKS = 0xFFFFFFFF83100000
FUNCTIONS = (
    "start_kernel",  # init/main.c
    "schedule",  # kernel/sched/core.c
    "__schedule",
    "update_rq",  # kernel/sched/fair.c, which is behind it
    "enqueue",  # kernel/sched/fair.c
    "between",
    "kfree",  # mm/slub.c
    "__sched_text_start",
    "behind_the_end",
    "mutex_lock",  # kernel/locking/mutex.c
)
WARNINGS = {0: "init/main.c", 1: "kernel/sched/core.c", 4: "./kernel/sched/fair.c", 6: "mm/slub.c"}
WARNINGS[9] = "kernel/locking/mutex.c"
FILES = {
    "start_kernel": "init/main.c",
    "schedule": "kernel/sched/core.c",
    "__schedule": "kernel/sched/",
    "update_rq": "kernel/sched/",
    "enqueue": "kernel/sched/fair.c",
    "kfree": "mm/slub.c",
    "mutex_lock": "kernel/locking/mutex.c",
}


def an_image(table: bytes, strings: bytes, locks: bytes = b"") -> bytes:
    """An ELF file with four sections that have content, and their names."""
    names = b"\0.rodata\0__bug_table\0.smp_locks\0.shstrtab\0"
    parts = (
        (b".rodata", STRINGS, strings), (b"__bug_table", TABLE, table), (b".smp_locks", LOCKS, locks),
        (b".shstrtab", 0, names),
    )  # fmt: skip
    headers, content, offset = [bytes(64)], b"", 64
    for name, address, data in parts:
        kind = 3 if name == b".shstrtab" else 1
        place = names.index(name)
        headers.append(struct.pack("<IIQQQQIIQQ", place, kind, 2, address, offset, len(data), 0, 0, 1, 0))
        content += data
        offset += len(data)
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, TEXT, 0, offset, 0, 64, 0, 0, 64, 5, 4)
    return head + content + b"".join(headers)


def a_table(size: int, file: int, *, from_itself: bool) -> bytes:
    """The entries of WARNINGS, and one of a header, as the layout has them; and the strings."""
    strings, entries = b"\0", b""
    for number, name in {**WARNINGS, 2: "[x > 3] include/linux/list.h"}.items():
        at = TABLE + len(entries)
        entry = bytearray(size)
        struct.pack_into("<i", entry, 0, TEXT + 16 * number + 5 - at)
        struct.pack_into("<i", entry, file, STRINGS + len(strings) - at - (file if from_itself else 0))
        strings += name.encode() + b"\0"
        entries += entry
    return an_image(entries, strings)


def kernel(directory: Path, vmlinux: bytes | None, symbols: str | None = None) -> Kernel:
    lines = (f"{TEXT + 16 * number:016x} T {name}" for number, name in enumerate(FUNCTIONS))
    text = "\n".join(lines) if symbols is None else symbols
    (directory / "kallsyms").write_bytes(sealed(text.encode()))
    if vmlinux is not None:
        (directory / "vmlinux").write_bytes(vmlinux)
    return a_kernel(
        image=directory / "vmlinuz", vmlinux=directory / "vmlinux" if vmlinux is not None else None
    )


@pytest.mark.parametrize(("size", "file", "from_itself"), [(12, 4, True), (12, 4, False), (16, 8, True)])
def test_files_are_found_in_each_layout(tmp_path: Path, size: int, file: int, from_itself: bool) -> None:
    files = function_files(kernel(tmp_path, a_table(size, file, from_itself=from_itself)))
    assert files.files == FILES
    assert files.functions == set(FUNCTIONS)


def test_a_function_between_two_files_of_one_directory_is_of_that_directory(tmp_path: Path) -> None:
    files = function_files(kernel(tmp_path, a_table(12, 4, from_itself=True))).files
    assert files["__schedule"] == "kernel/sched/"
    assert "between" not in files, "kernel/sched/fair.c and mm/slub.c have no directory in common"
    assert "behind_the_end" not in files, "another section begins in between"


def test_names_that_two_functions_share_are_left_out_where_they_differ(tmp_path: Path) -> None:
    names = ["init" if name in {"schedule", "kfree"} else name for name in FUNCTIONS]
    symbols = "".join(f"{TEXT + 16 * number:016x} t {name}\n" for number, name in enumerate(names))
    assert "init" not in function_files(kernel(tmp_path, a_table(12, 4, from_itself=True), symbols)).files


@pytest.mark.parametrize("vmlinux", [None, b"", b"no ELF", an_image(b"", b"\0"), an_image(bytes(120), b"\0")])
def test_an_image_that_tells_nothing_is_no_error(tmp_path: Path, vmlinux: bytes | None) -> None:
    files = function_files(kernel(tmp_path, vmlinux))
    assert files.files == {}
    assert files.functions == set(FUNCTIONS)


def test_a_kernel_whose_symbols_nobody_has_told_yet_tells_nothing(tmp_path: Path) -> None:
    assert function_files(a_kernel(image=tmp_path / "vmlinuz")) == FunctionFiles()


def test_functions_with_a_locked_instruction_are_known_by_the_kernels_own_table(tmp_path: Path) -> None:
    places = [TEXT + 16 * FUNCTIONS.index(name) + 7 for name in ("mutex_lock", "kfree", "mutex_lock")]
    ways = [place - (LOCKS + 4 * number) for number, place in enumerate(places)]
    image = an_image(b"", b"\0", struct.pack("<4i", *ways, 0))
    assert function_files(kernel(tmp_path, image)).locking == {"mutex_lock", "kfree"}


def test_a_kernel_for_one_cpu_has_no_such_table(tmp_path: Path) -> None:
    assert function_files(kernel(tmp_path, a_table(12, 4, from_itself=True))).locking == frozenset()


def test_another_use_reads_neither_symbols_nor_the_image_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = kernel(tmp_path, a_table(12, 4, from_itself=True))
    files = function_files(first)
    with monkeypatch.context() as patch:
        patch.setattr("ktrial.kernels.symbols.symbols_in", _never)
        patch.setattr("ktrial.kernels.symbols.sound_elf", _never)
        assert function_files(first.model_copy(update={"name": "the same kernel's other name"})) == files


def _never(_: object) -> None:
    raise AssertionError("read again")


def test_what_is_kept_is_of_these_symbols_and_whole(tmp_path: Path) -> None:
    first = kernel(tmp_path, a_table(12, 4, from_itself=True))
    files = function_files(first)
    (cached,) = tmp_path.glob("*.json")
    cached.write_bytes(cached.read_bytes()[:-9])
    with pytest.warns(UserWarning, match=r"function-files\.json is damaged"):
        assert function_files(first.model_copy(update={"name": "damaged"})) == files
    message = unsealed((tmp_path / "kallsyms").read_bytes())
    assert message
    more = message.decode() + f"\n{TEXT + 16 * 50:016x} T told_later"
    (tmp_path / "kallsyms").write_bytes(sealed(more.encode()))
    later = function_files(first.model_copy(update={"name": "told more"}))
    assert later.functions == files.functions | {"told_later"}
    assert list(tmp_path.glob("*.json")) == [cached]


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ktrial.kernels.symbols.write_atomically", full)
    assert function_files(kernel(tmp_path, a_table(12, 4, from_itself=True))).files == FILES
    assert list(tmp_path.glob("*.json")) == []


def test_a_table_that_is_longer_than_the_file_is_none(tmp_path: Path) -> None:
    whole = bytearray(a_table(12, 4, from_itself=True))
    table = struct.unpack_from("<Q", whole, 40)[0] + 2 * 64
    struct.pack_into("<Q", whole, table + 32, 1 << 62)
    assert function_files(kernel(tmp_path, bytes(whole))).files == {}


def test_a_vmlinux_with_sections_that_are_not_there_tells_no_symbols(tmp_path: Path) -> None:
    vmlinux = tmp_path / "vmlinux"
    vmlinux.write_bytes(elf_with_symbols(2000)[:-400])
    with pytest.raises(SymbolsUnknown):
        symbols_in(a_kernel(image=tmp_path / "vmlinuz", vmlinux=vmlinux))
