"""The kernel's symbols: from a real System.map, from a vmlinux that kept its table, or as the guest told.

Distributions ship a stub for System.map, and strip vmlinux. There the symbols come from /proc/kallsyms of
the booted kernel (nokaslr), which whoever boots it hands to `save_symbols`; they stay with the kernel.
"""

import re
import warnings
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from elftools.common.exceptions import ELFError
from pydantic import ValidationError

from ktrial.file_digests import sealed, unsealed
from ktrial.kernels import FUNCTION_FILES
from ktrial.kernels.errors import SymbolsUnknown
from ktrial.kernels.files import file_system_errors, write_atomically
from ktrial.kernels.image import sound_elf, symbols_of
from ktrial.kernels.kernel_cache import KALLSYMS, SYSTEM_MAP
from ktrial.model.base import Model, digest
from ktrial.model.kernel import Kernel
from ktrial.model.profile import FunctionFiles

_LINE = re.compile(r"^([0-9a-f]{8,16}) (\w) (\S+)(?:\s+\[(\S+)\])?$", re.MULTILINE)
_FEWEST_SYMBOLS = 1000
"""Every kernel has tens of thousands; fewer come from a stub or a cut-off text."""


class Symbol(NamedTuple):
    """One symbol; a kernel has some 30,000, a distribution's 100,000."""

    address: int
    kind: str
    """As nm prints it: `T` text, `D` data, `R` read-only…; lower case: local."""
    name: str
    module: str = ""
    """Empty: the kernel image itself."""


@dataclass(frozen=True)
class Symbols:
    """All symbols of a kernel, by address."""

    source: str
    """`kallsyms`, `System.map` or `vmlinux`."""
    all: tuple[Symbol, ...]

    @cached_property
    def _addresses(self) -> list[int]:
        return [symbol.address for symbol in self.all]

    def at(self, address: int) -> Symbol | None:
        """Return the last symbol that starts at or before `address`; None before the first."""
        index = bisect_right(self._addresses, address)
        return self.all[index - 1] if index else None


def symbols_in(kernel: Kernel) -> Symbols:
    """Return the symbols of `kernel`. Raises SymbolsUnknown where nobody has told them yet."""
    kallsyms = kept_kallsyms(kernel)
    if kallsyms is not None:
        return Symbols(KALLSYMS, parse_symbols(kallsyms))
    system_map = kernel.image.parent / SYSTEM_MAP
    if system_map.exists():
        return Symbols(SYSTEM_MAP, parse_symbols(system_map.read_text(encoding="ascii", errors="replace")))
    if kernel.vmlinux is not None:
        with suppress(ELFError):  # it is booted by its segments: its sections may be of no use
            entries = sorted(symbols_of(kernel.vmlinux.read_bytes()))
            if len(entries) >= _FEWEST_SYMBOLS:
                return Symbols("vmlinux", tuple(Symbol(*entry) for entry in entries))
    raise SymbolsUnknown(name=kernel.name)


def save_symbols(kernel: Kernel, text: str) -> Path:
    """Keep what the booted kernel said in /proc/kallsyms. Returns the file.

    Raises ValueError where `text` is no usable table: too short, or with addresses hidden (kptr_restrict).
    """
    parsed = parse_symbols(text)
    if len(parsed) < _FEWEST_SYMBOLS:
        raise ValueError(f"only {len(parsed)} symbols: not the whole of /proc/kallsyms")
    if parsed[-1].address == 0:
        raise ValueError("all addresses are 0: the kernel hides them (kernel.kptr_restrict)")
    path = kernel.image.parent / KALLSYMS
    with file_system_errors(path.parent):
        write_atomically(path, sealed(text.encode()))
    return path


def kept_kallsyms(kernel: Kernel) -> str | None:
    """What `save_symbols` kept for this kernel; None where that is nothing, or damaged, which is told."""
    path = kernel.image.parent / KALLSYMS
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    text = unsealed(data)
    if text is None:
        message = (
            f"the symbols of kernel {kernel.name} are damaged ({path}): the guest is asked for them again"
        )
        warnings.warn(message, stacklevel=2)
    return None if text is None else text.decode("ascii", errors="replace")


def parse_symbols(text: str) -> tuple[Symbol, ...]:
    """Read lines like `ffffffff81000000 T _text` or `ffffffffc0000000 t init\t[ext4]`, sorted by address."""
    parsed = (Symbol(int(line[1], 16), line[2], line[3], line[4] or "") for line in _LINE.finditer(text))
    return tuple(sorted(parsed, key=lambda symbol: symbol.address))


# Where a function's source is, as the kernel image itself tells it.
#
# Distributions ship no line numbers. But BUG() and WARN() leave `struct bug_entry` in the image's section
# `__bug_table` (include/asm-generic/bug.h, CONFIG_DEBUG_BUGVERBOSE): an address in the code and the name of
# its source file; 7000 to 11000 of them, in a third of all functions. And the linker puts object files one
# after another, in the order of the Makefiles: a function between two of one file is of that file, one
# between two of one directory is of that directory. Others are not guessed at.
#
# What is found is kept beside the kernel's other parts, and goes with them: to read 100,000 symbols and the
# image takes more than ten times as long.

_FORMAT = 2
"""Of what is kept; greater whenever another ktrial finds something else."""
_TABLE = "__bug_table"
_LOCKS = ".smp_locks"
"""Of each prefix LOCK in the code, the way to it from the entry, in four bytes (LOCK_PREFIX in
arch/x86/include/asm/alternative.h): Linux takes the prefixes away on one CPU, and needs all of them. XCHG,
which locks without one, is not here."""
_LOCKS_ENTRY = 4
_LONGEST_NAME = 400
_ANY_SIZE = 1 << 64
"""Greater than that of any section."""
_SOURCE = re.compile(rb"(?:^|.* )((?:[\w+.-]+/)*[\w+.-]+\.c)", re.DOTALL)
"""A C file's path. In newer kernels a warning's condition may stand before it, in brackets
(CONFIG_DEBUG_BUGVERBOSE_DETAILED). Headers tell nothing: their code is inlined everywhere."""
_ANY_SOURCE = re.compile(rb"(?:^|.* )[\w+./-]+\.[chS]", re.DOTALL)
_SECTION_ENDS = re.compile(r"__\w*text_(?:start|end)|_[se](?:init)?text|_etext")
"""Between these (include/asm-generic/vmlinux.lds.h) the order of the object files begins anew."""
_CODE = frozenset("tTwW")


class _Layout(NamedTuple):
    """How `struct bug_entry` looks; all its pointers are 32-bit differences."""

    size: int
    file: int
    """Offset of the file's name in the entry."""
    from_itself: bool
    """The difference is to the field's own address (6.1 and later), else to the entry's (5.10)."""


_LAYOUTS = (_Layout(12, 4, True), _Layout(12, 4, False), _Layout(16, 8, True), _Layout(16, 8, False))
"""12 bytes to 6.18; 16 in 7.2, where a format string's address comes before the file."""


class _FunctionFilesRecord(Model):
    """The file beside the kernel's other parts."""

    key: str
    files: FunctionFiles


def function_files(kernel: Kernel) -> FunctionFiles:
    """What the kernel's image and symbols tell; empty where they are not known, or hold no such table."""
    try:
        return _function_files(kernel)
    except SymbolsUnknown:
        return FunctionFiles()


@lru_cache(maxsize=16)
def _function_files(kernel: Kernel) -> FunctionFiles:
    place, key = kernel.image.parent / FUNCTION_FILES, _key(kernel)
    with suppress(OSError, ValidationError):  # never written, or of another ktrial
        record = _FunctionFilesRecord.model_validate_json(_unsealed_content(kernel, place))
        if record.key == key:
            return record.files
    files = _read(kernel)
    with suppress(OSError):  # a full disk, or a cache of somebody else's: it is read again next time
        write_atomically(place, sealed(_FunctionFilesRecord(key=key, files=files).model_dump_json().encode()))
    return files


def _unsealed_content(kernel: Kernel, place: Path) -> bytes:
    """What was kept; nothing where it is damaged, which is told."""
    data = place.read_bytes()
    content = unsealed(data)
    if content is None:
        text = f"{place} is damaged: the sources of kernel {kernel.name}'s functions are read again"
        warnings.warn(text, stacklevel=2)
    return content or b""


def _key(kernel: Kernel) -> str:
    """The state of all that decides what is found: symbols may be told after the image came."""
    entry = kernel.image.parent
    sources = [entry / KALLSYMS, entry / SYSTEM_MAP, *([kernel.vmlinux] if kernel.vmlinux else [])]
    return digest([_FORMAT, [_state(source) for source in sources]])


def _state(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _read(kernel: Kernel) -> FunctionFiles:
    code = [symbol for symbol in symbols_in(kernel).all if symbol.kind in _CODE and not symbol.module]
    names = frozenset(symbol.name for symbol in code)
    try:
        image = _Image(kernel.vmlinux.read_bytes() if kernel.vmlinux else b"")
    except ELFError:
        return FunctionFiles(files=_files(code, {}), functions=names)
    locking = frozenset(_around(code, image.locks()))
    return FunctionFiles(files=_files(code, _anchors(image)), functions=names, locking=locking)


def _around(code: Iterable[Symbol], places: Iterable[int]) -> Iterator[str]:
    """All names of the functions that the places are in."""
    by_address: dict[int, list[str]] = defaultdict(list)
    for symbol in code:
        by_address[symbol.address].append(symbol.name)
    addresses = sorted(by_address)
    for place in places:
        if index := bisect_right(addresses, place):
            yield from by_address[addresses[index - 1]]


def _anchors(image: "_Image") -> dict[int, str]:
    """Address in the code → source file; of the layout that makes sense of the most entries."""
    candidates = [list(image.entries(layout)) for layout in _LAYOUTS]
    best = max(candidates, key=len)
    return {address: name for address, name in best if name}


class _Image:
    """An ELF image whose sections lie in the file as they are."""

    def __init__(self, content: bytes) -> None:
        """Raises ELFError. Sections that are not in the file are left out."""
        self._content = content
        with sound_elf(BytesIO(content)) as elf:
            sections = [
                section
                for section in elf.iter_sections()
                if section["sh_type"] == "SHT_PROGBITS"
                and section["sh_addr"]
                and 0 < section["sh_offset"] <= len(content) - section["sh_size"]
            ]
        self._places = sorted(
            (section["sh_addr"], section["sh_size"], section["sh_offset"]) for section in sections
        )
        self._tables = {
            section.name: range(section["sh_addr"], section["sh_addr"] + section["sh_size"])
            for section in sections
        }

    def locks(self) -> Iterator[int]:
        """Where an instruction of the code locks memory; nothing in a kernel for one CPU."""
        table = self._tables.get(_LOCKS, range(0))
        for entry in range(table.start, table.stop - _LOCKS_ENTRY + 1, _LOCKS_ENTRY):
            if way := self._number(entry):
                yield entry + way

    def entries(self, layout: _Layout) -> Iterator[tuple[int, str]]:
        """Address and C file of each entry that names a source file; the file is empty for a header's."""
        table = self._tables.get(_TABLE, range(0))
        for entry in range(table.start, table.stop - layout.size + 1, layout.size):
            origin = entry + layout.file if layout.from_itself else entry
            text = self._text(origin + self._number(entry + layout.file))
            if text and _ANY_SOURCE.fullmatch(text):
                named = _SOURCE.fullmatch(text)
                name = named[1].decode("ascii").removeprefix("./") if named else ""
                yield entry + self._number(entry), name

    def _number(self, address: int) -> int:
        place = self._place(address)
        return int.from_bytes(self._content[place : place + 4], "little", signed=True) if place else 0

    def _text(self, address: int) -> bytes:
        """The string that begins at the address; empty where none begins there."""
        place = self._place(address)
        if not place or self._content[place - 1]:
            return b""
        end = self._content.find(b"\0", place, place + _LONGEST_NAME)
        return self._content[place:end] if end > 0 else b""

    def _place(self, address: int) -> int | None:
        index = bisect_right(self._places, (address, _ANY_SIZE))
        if not index:
            return None
        start, size, offset = self._places[index - 1]
        return int(offset + address - start) if address < start + size else None


def _files(code: Iterable[Symbol], anchors: Mapping[int, str]) -> dict[str, str]:
    """Function → file or directory. A name that several functions have is left out where they differ."""
    by_address: dict[int, list[str]] = defaultdict(list)
    for symbol in code:
        by_address[symbol.address].append(symbol.name)
    addresses = sorted(by_address)
    file_of = _file_of_function(addresses, anchors)
    ends = {at for at, names in by_address.items() if any(map(_SECTION_ENDS.fullmatch, names))}
    before = _nearest(addresses, file_of, ends)
    after = _nearest(reversed(addresses), file_of, ends)
    places: dict[str, set[str]] = defaultdict(set)
    for address in addresses:
        place = file_of.get(address) or _common(before[address], after[address])
        for name in by_address[address]:
            places[name].add(place)
    return {name: place for name, (place, *more) in places.items() if place and not more}


def _file_of_function(addresses: list[int], anchors: Mapping[int, str]) -> dict[int, str]:
    """A function's address → its file, for functions that have an entry of a C file."""
    files: dict[int, str] = {}
    for address, file in sorted(anchors.items()):
        index = bisect_right(addresses, address)
        if index:
            files.setdefault(addresses[index - 1], file)
    return files


def _nearest(addresses: Iterable[int], file_of: Mapping[int, str], ends: set[int]) -> dict[int, str]:
    """Address → the file that was told last, going through the addresses; empty behind a section's end."""
    nearest, file = {}, ""
    for address in addresses:
        if address in ends:
            file = ""
        file = file_of.get(address, file)
        nearest[address] = file
    return nearest


def _common(first: str, second: str) -> str:
    """`mm/memory.c` and itself: that; with `mm/slub.c`: `mm/`; with `fs/open.c`: nothing."""
    if first == second:
        return first
    shared = []
    for left, right in zip(first.split("/")[:-1], second.split("/")[:-1], strict=False):
        if left != right:
            break
        shared.append(left)
    return "".join(f"{part}/" for part in shared)
