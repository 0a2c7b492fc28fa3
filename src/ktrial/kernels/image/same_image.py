"""Whether two kernels do the same: image and modules load the same bytes, apart from what is never executed.

Left out of account are build ids, the time of the build, the release's name where both are as long, and
numbers that move with the lines of a source: in names of symbols (`__initcall__kmod_core__492_9715`;
gcc's `CSWTCH.988`), which the kernel keeps for messages (kernel/kallsyms.c), and line numbers of warnings
(`struct bug_entry`, include/asm-generic/bug.h).
"""

import re
from collections.abc import Iterator
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, Section

from ktrial.kernels.modules.module_difference import same_modules
from ktrial.model.kernel import Kernel

_ALLOCATED, _EXECUTABLE = 2, 4
"""SHF_ALLOC, SHF_EXECINSTR (System V ABI): the section is in memory while the kernel runs; it holds code."""
_SYMBOL = np.dtype([("name", "<u4"), ("kind", "<u2"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")])
"""Elf64_Sym."""
_BANNER = re.compile(rb"Linux version (\S+) [^\0\n]*?(#\d[^\0\n]*)")
_DIGITS = bytes(ord("0") if chr(one).isascii() and chr(one).isdigit() else one for one in range(256))
_NAMES = ("kallsyms_names", "kallsyms_markers")
"""Where the kernel keeps the names of its symbols, and what begins behind them."""
_WARNINGS = ("__start___bug_table", "__stop___bug_table")
_ENTRY_SIZES = (12, 16)
"""Addresses of the code and the file, of the text too since 6.19, each in four bytes; then line and flags."""
_LINE_FROM_END = 4


class _Stretch(NamedTuple):
    start: int
    end: int


def same_image(a: Kernel, b: Kernel) -> bool:
    """Whether both kernels load the same bytes, apart from marks of the build and numbers of lines.

    Their modules are a part of it, loaded or not; the configuration is none. False where a file cannot be
    read.
    """
    if a.digest == b.digest:
        return True
    if (a.modules is None) != (b.modules is None) or a.vmlinux is None or b.vmlinux is None:
        return False
    return _same_loaded(a.vmlinux, b.vmlinux) and same_modules(a, b)


def _same_loaded(a: Path, b: Path) -> bool:
    try:
        one, other = _Loaded(a), _Loaded(b)
        if one.layout != other.layout:
            return False
        named_alike = one.names_without_digits == other.names_without_digits
        return one.contents(without_names=named_alike) == other.contents(without_names=named_alike)
    except (ELFError, ConstructError, OSError):
        return False


class _Loaded:
    """What of an image is in memory while it runs."""

    def __init__(self, vmlinux: Path) -> None:
        content = vmlinux.read_bytes()
        banner = _BANNER.search(content)
        self._marks = [mark for mark in banner.groups() if len(mark) > 1] if banner else []
        self._elf = ELFFile(BytesIO(content))
        self._sections = [one for one in self._elf.iter_sections() if one["sh_flags"] & _ALLOCATED]

    @property
    def layout(self) -> list[tuple[str, int, int]]:
        """Each section's name, address and size."""
        return [(one.name, one["sh_addr"], one["sh_size"]) for one in self._sections]

    @cached_property
    def names_without_digits(self) -> tuple[bytes, bytes]:
        """The table of symbols and their names, each digit a zero; empty without one."""
        table, names = (self._elf.get_section_by_name(name) for name in (".symtab", ".strtab"))
        return (
            (bytes(table.data()), bytes(names.data()).translate(_DIGITS)) if table and names else (b"", b"")
        )

    def contents(self, *, without_names: bool) -> list[bytes]:
        """What is in each section, without what does not count."""
        return [bytes(self._content(one, without_names=without_names)) for one in self._sections]

    def _content(self, section: Section, *, without_names: bool) -> bytearray:
        if section["sh_type"] == "SHT_NOBITS":
            return bytearray()
        content = bytes(section.data())
        marks = [*self._marks, *_build_ids(section)]
        for mark in marks:
            content = content.replace(mark, bytes(len(mark)))
        changed = bytearray(content)
        if without_names and (names := self._between(_NAMES, section)):
            changed[names.start : names.end] = bytes(names.end - names.start)
        if warnings := self._between(_WARNINGS, section):
            self._clear_lines(changed, section["sh_addr"], warnings)
        return changed

    def _between(self, ends: tuple[str, str], section: Section) -> _Stretch | None:
        """Where in a section lies what is between two symbols; None where it is elsewhere."""
        start, end = (self._address_of(name) - section["sh_addr"] for name in ends)
        return _Stretch(start, end) if 0 <= start < end <= section["sh_size"] else None

    def _address_of(self, symbol: str) -> int:
        """0 where there is none of that name."""
        table, names = (self._elf.get_section_by_name(name) for name in (".symtab", ".strtab"))
        if table is None or names is None or self._elf.elfclass != 64:
            return 0
        places = [match.start() for match in re.finditer(re.escape(symbol.encode() + b"\0"), names.data())]
        symbols = np.frombuffer(table.data(), dtype=_SYMBOL)
        values = symbols["value"][np.isin(symbols["name"], places)]
        return int(values[0]) if len(values) else 0

    def _clear_lines(self, content: bytearray, address: int, warnings: _Stretch) -> None:
        """Zeros for the lines of a table of warnings; nothing where its entries are of no known kind."""
        code = [
            _Stretch(one["sh_addr"], one["sh_addr"] + one["sh_size"])
            for one in self._sections
            if one["sh_flags"] & _EXECUTABLE
        ]
        table = bytes(content[warnings.start : warnings.end])
        for size in _ENTRY_SIZES:
            if _lead_to(code, table, address + warnings.start, size):
                for place in range(warnings.start + size - _LINE_FROM_END, warnings.end, size):
                    content[place : place + 2] = bytes(2)
                return


def _build_ids(section: Section) -> Iterator[bytes]:
    if isinstance(section, NoteSection):
        for note in section.iter_notes():
            # Another one's note may have the same number (Xen's hypercall page).
            if note["n_name"] == "GNU" and note["n_type"] == "NT_GNU_BUILD_ID":
                yield bytes.fromhex(note["n_desc"])


def _lead_to(code: list[_Stretch], table: bytes, address: int, size: int) -> bool:
    """Whether each entry of that size begins with the way from itself to code."""
    if len(table) % size:
        return False
    starts = range(0, len(table), size)
    ends = (address + at + int.from_bytes(table[at : at + 4], "little", signed=True) for at in starts)
    return all(any(one.start <= end < one.end for one in code) for end in ends)
