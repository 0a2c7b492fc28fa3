"""A kernel's image as code: its functions and variables, who holds whose address, and who calls whom."""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from numpy.typing import NDArray

from ktrial.model.kernel import Kernel, Ways
from ktrial.model.profile import copy_of, plain_name, without_numbers

SYMBOL_ROW = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
"""Elf64_Sym; its low four bits of `info` are the kind (System V ABI)."""
_OBJECT, _FUNCTION, _SECTION, _FILE = 1, 2, 3, 4
_LOCAL = 0
"""The high four bits: how far the name is known."""
_RESERVED, _ABSOLUTE = 0xFF00, 0xFFF1
ALLOCATED = 2
"""SHF_ALLOC (System V ABI): the section is in memory while the kernel runs, or the module is loaded."""
_OF_THE_LINKER = re.compile(
    r"kallsyms_\w+|linux_(?:proc_)?banner|init_uts_ns|vermagic|__func__|__PRETTY_FUNCTION__|__start___\w+"
)
"""Tables of the symbols themselves, and what tells of the build."""
_DATA_SECTIONS = (".data", ".rodata", ".data..read_mostly", ".data..ro_after_init", ".init.data")

_CONSTANTS, _AT_BOOT = ".rodata", ".init.text"


class CodeObject(NamedTuple):
    """A function or variable."""

    address: int
    body: bytes
    file: str = ""
    """The C file's name, without its directory; empty of what other files may call by its name."""


class Stretch(NamedTuple):
    """A section in memory."""

    start: int
    end: int
    content: bytes

    def at(self, address: int, size: int) -> bytes:
        """What is there when the kernel starts."""
        return self.content[address - self.start : address - self.start + size]


_Symbol = tuple[str, int, int, int, int, str]
"""Name, address, size, kind, section and file."""


def _symbols(table: SymbolTableSection) -> Iterator[_Symbol]:
    """Those of the table that have a name and a place; read at once: a kernel has some 30,000."""
    names = bytes(table.stringtable.data())
    rows = np.frombuffer(table.data(), dtype=SYMBOL_ROW)
    kinds, places, starts = rows["info"] & 15, rows["section"], rows["name"].astype(np.int64)
    ends = _ends(names, starts)
    # What only its own file knows stands behind the file's name (System V ABI, symbol table).
    bounds = np.where((kinds == _FILE) | (rows["info"] >> 4 != _LOCAL), np.arange(len(rows)), -1)
    behind = np.maximum.accumulate(bounds) if len(rows) else bounds
    files = np.where((behind >= 0) & (kinds[behind] == _FILE), behind, -1)
    is_inside = ((places > 0) & (places < _RESERVED)) | (places == _ABSOLUTE)
    kept = np.flatnonzero((starts < ends) & ~np.isin(kinds, (_FILE, _SECTION)) & is_inside)

    def text(start: int, end: int) -> str:
        return names[start:end].decode("utf-8", errors="replace")

    named = {row: text(starts[row], ends[row]) for row in np.unique(files).tolist() if row >= 0}
    columns = (rows["value"], rows["size"], kinds, places)
    bounds_of_names = zip(starts[kept].tolist(), ends[kept].tolist(), strict=True)
    return zip(
        [names[start:end].decode("utf-8", errors="replace") for start, end in bounds_of_names],
        *(column[kept].tolist() for column in columns),
        [named.get(file, "") for file in files[kept].tolist()],
        strict=True,
    )


def _ends(names: bytes, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where in a table of names those end that begin there. Raises ELFError where one does not end."""
    zeros = np.flatnonzero(np.frombuffer(names, dtype=np.uint8) == 0)
    index = np.searchsorted(zeros, starts)
    if len(index) and index.max() >= len(zeros):
        raise ELFError("a symbol's name does not end")
    ends: NDArray[np.int64] = zeros[index]
    return ends


class Symbols(NamedTuple):
    """Where symbols begin, sorted, and the first name at each place."""

    addresses: NDArray[np.uint64]
    names: Sequence[str]


_SYSTEM_CALL = re.compile(r"__x64_sys_(?P<call>\w+)")
"""How the kernel begins their names (arch/x86/include/asm/syscall_wrapper.h, since 4.17)."""
_OF_SYSTEM_CALLS = "sys_call_table"
_CALL, _JUMP, _LONG, _CONDITIONAL = 0xE8, 0xE9, 0x0F, 0x80
"""With an address of four bytes (Intel SDM, volume 2: CALL, JMP, Jcc)."""


class CodeImage:
    """An ELF image with its symbols."""

    def __init__(self, content: bytes) -> None:
        elf = ELFFile(BytesIO(content))
        self._sections = {
            number: Stretch(entry["sh_addr"], entry["sh_addr"] + entry["sh_size"], bytes(entry.data()))
            for number, entry in enumerate(elf.iter_sections())
            if entry["sh_flags"] & ALLOCATED and entry["sh_type"] != "SHT_NOBITS" and entry["sh_addr"]
        }
        sections = [entry.name for entry in elf.iter_sections()]
        self._is_constant = [name.startswith(_CONSTANTS) for name in sections]
        self._at_boot = [part for number, part in self._sections.items() if sections[number] == _AT_BOOT]
        # Of variables those that are more than a mark of the build.
        holds_data = [name.startswith(_DATA_SECTIONS) for name in sections]
        self.functions: dict[str, list[CodeObject]] = defaultdict(list)
        self.data: dict[str, list[CodeObject]] = defaultdict(list)
        self._named: list[tuple[int, str]] = []
        self._variables: dict[int, int] = {}
        for table in elf.iter_sections():
            if isinstance(table, SymbolTableSection):
                self._add(_symbols(table), holds_data)
        self._named.sort()

    def _add(self, symbols: Iterable[_Symbol], holds_data: list[bool]) -> None:
        functions, data, add_name = self.functions, self.data, self._named.append
        for name, address, size, kind, place, file in symbols:
            key = without_numbers(name)
            add_name((address, key))
            if not size or place == _ABSOLUTE:
                continue
            if kind == _OBJECT:
                self._variables[address] = max(size, self._variables.get(address, 0))
            if kind == _FUNCTION:
                objects = functions
            elif kind == _OBJECT and holds_data[place] and not _OF_THE_LINKER.fullmatch(key):
                objects = data
            else:
                continue
            section = self._sections.get(place)
            body = b""
            if section:
                start = address - section.start
                body = section.content[start : start + size]
            objects[key].append(CodeObject(address, body, file))

    def copies(self, name: str) -> dict[str, CodeObject]:
        """The functions of this name, by a name of their own: `init_once (inode.c)`, as `copy_of` has it."""
        entries = sorted(set(self.functions[name])) if name in self.functions else []
        numbers, named = Counter[str](), dict[str, CodeObject]()
        for entry in entries:
            numbers[entry.file] += 1
            named[copy_of(name, entry.file, numbers[entry.file])] = entry
        return named

    def _own_name(self, name: str, address: int) -> str:
        """The name alone where one function has it."""
        copies = self.copies(name)
        if len(copies) == 1:
            return name
        return next((own for own, entry in copies.items() if entry.address == address), name)

    @cached_property
    def _code(self) -> list[tuple[int, int, str]]:
        """Address, size and name of every function, in order."""
        return sorted(
            (entry.address, len(entry.body), name)
            for name, entries in self.functions.items()
            for entry in entries
        )

    @cached_property
    def _begins(self) -> NDArray[np.int64]:
        return np.array([address for address, _, _ in self._code], dtype=np.uint64).astype(np.int64)

    def _owners(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The function around each place, by its number in `_code`; -1: none."""
        sizes = np.array([size for _, size, _ in self._code], dtype=np.int64)
        index = np.maximum(np.searchsorted(self._begins, places, side="right") - 1, 0)
        inside = (places >= self._begins[index]) & (places < self._begins[index] + sizes[index])
        return np.where(inside, index, -1)

    def readers(self, data: Collection[str]) -> set[str]:
        """The functions whose code has an address inside one of these variables; of those that share a name,
        which.
        """
        return self.readers_of(
            [(entry.address, entry.address + len(entry.body)) for name in data for entry in self.data[name]]
        )

    def readers_of(self, ranges: Sequence[tuple[int, int]]) -> set[str]:
        """The same of ranges of addresses."""
        if not ranges:
            return set()
        places = np.array(_leading_into(ranges, self._sections.values()), dtype=np.uint64).astype(np.int64)
        owners = (self._code[owner] for owner in set(self._owners(places).tolist()) if owner >= 0)
        return {self._own_name(name, address) for address, _, name in owners}

    def at(self, addresses: Collection[int]) -> frozenset[str]:
        """The functions in which these addresses lie; of those that share a name, which."""
        places = np.array(sorted(addresses), dtype=np.uint64).astype(np.int64)
        begins = {self._code[owner][0] for owner in set(self._owners(places).tolist()) if owner >= 0}
        return frozenset(
            self._own_name(name, address) for address, _, name in self._code if address in begins
        )

    def changed_constants(self, after: "CodeImage") -> list[tuple[int, int]]:
        """Where texts and constants without a symbol differ, in two images in which nothing moved; each from
        where its text begins. Nothing where something moved.
        """
        if not np.array_equal(self.symbols.addresses, after.symbols.addresses):
            return []
        ends: dict[int, int] = {}
        for number, stretch in self._sections.items():
            other = after._sections.get(number)
            if not self._is_constant[number] or other is None or stretch[:2] != other[:2]:
                continue
            contents = (np.frombuffer(side.content, dtype=np.uint8) for side in (stretch, other))
            for place in self._without_symbol(stretch.start, np.flatnonzero(np.not_equal(*contents))):
                start = stretch.start + stretch.content.rfind(b"\0", 0, place) + 1
                ends[start] = stretch.start + place + 1
        return sorted(ends.items())

    def _without_symbol(self, start: int, places: NDArray[np.int64]) -> list[int]:
        """Those of the places, counted from `start`, that lie in no variable and no table of the linker."""
        addresses = np.uint64(start) + places.astype(np.uint64)
        index = np.searchsorted(self.symbols.addresses, addresses, side="right") - 1
        of_linker = {
            number
            for number in np.unique(index).tolist()
            if number < 0 or _OF_THE_LINKER.fullmatch(self.symbols.names[number])
        }
        named = sorted(
            (entry.address, entry.address + len(entry.body))
            for entries in self.data.values()
            for entry in entries
        )
        begins = [begin for begin, _ in named]
        return [
            place
            for place, address, number in zip(
                places.tolist(), addresses.tolist(), index.tolist(), strict=True
            )
            if number not in of_linker
            and not ((at := bisect_right(begins, address)) and address < named[at - 1][1])
        ]

    def ways_to(self, name: str, most: int = 3) -> Ways:
        """The system calls from which calls lead to a function, the nearest first; and tables on the way.

        Calls and jumps with an address in them are followed upwards, breadth first (Dijkstra 1959 with equal
        steps). What is called through a pointer ends in the tables that hold it.
        """
        numbers = {address: number for number, (address, _, _) in enumerate(self._code)}
        entries = self.copies(plain_name(name))
        level = {numbers[entry.address] for own, entry in entries.items() if name in {own, plain_name(own)}}
        seen, system_calls, tables = set(level), dict[str, None](), dict[str, None]()
        places = [self._code[number][0] for number in level]
        if places and all(any(part.start <= at < part.end for part in self._at_boot) for at in places):
            return Ways(at_boot=True)
        while level and len(system_calls) < most:
            for number in sorted(level, key=lambda number: self._code[number][2]):
                if match := _SYSTEM_CALL.fullmatch(self._code[number][2]):
                    system_calls.setdefault(match["call"])
                tables |= dict.fromkeys(sorted(self._holders.get(number, ())))
            level = {caller for number in level for caller in self._callers.get(number, ())} - seen
            seen |= level
        return Ways(system_calls=tuple(system_calls)[:most], tables=tuple(tables)[:most])

    @cached_property
    def _callers(self) -> dict[int, set[int]]:
        """Function → those whose code calls it, or jumps to its beginning; by their numbers in `_code`.

        Jumps of two bytes are left out: too many other bytes look like them.
        """
        callers: dict[int, set[int]] = defaultdict(set)
        for stretch in self._sections.values():
            content = np.frombuffer(stretch.content, dtype=np.uint8)
            last = len(content) - _WORD
            is_call = (content == _CALL) | (content == _JUMP)
            is_call[1:] |= (content[:-1] == _LONG) & (content[1:] & 0xF0 == _CONDITIONAL)
            at = np.flatnonzero(is_call[:last]) + 1
            words = content[at[:, None] + np.arange(_WORD)].view("<i4").ravel().astype(np.int64)
            start = np.uint64(stretch.start).astype(np.int64)
            targets = start + at + _WORD + words
            called = np.minimum(np.searchsorted(self._begins, targets), len(self._begins) - 1)
            hits = self._begins[called] == targets
            owners = self._owners(start + at[hits])
            for callee, caller in zip(called[hits].tolist(), owners.tolist(), strict=True):
                if caller >= 0:
                    callers[callee].add(caller)
        return callers

    @cached_property
    def _holders(self) -> dict[int, set[str]]:
        """Function → the variables that hold its address."""
        holders: dict[int, set[str]] = defaultdict(set)
        for name, entries in self.data.items():
            if name.endswith(_OF_SYSTEM_CALLS):
                continue
            for entry in entries:
                words = np.frombuffer(entry.body[: len(entry.body) // 8 * 8], dtype="<u8").astype(np.int64)
                index = np.minimum(np.searchsorted(self._begins, words), len(self._begins) - 1)
                for number in index[self._begins[index] == words].tolist():
                    holders[number].add(name)
        return holders

    @cached_property
    def _addresses(self) -> list[int]:
        return [address for address, _ in self._named]

    def names_at(self, address: int) -> tuple[frozenset[str], int]:
        """The symbols that begin last before the address, and how far before; none before the first."""
        index = bisect_right(self._addresses, address)
        if not index:
            return frozenset(), 0
        start = self._addresses[index - 1]
        first = bisect_right(self._addresses, start - 1)
        return frozenset(name for _, name in self._named[first:index]), address - start

    def is_in_variable(self, address: int) -> bool:
        """Whether it lies in the variable that begins last before it, or at it."""
        index = bisect_right(self._addresses, address)
        start = self._addresses[index - 1] if index else address
        return address < start + self._variables.get(start, 0)

    @property
    def named(self) -> Sequence[tuple[int, str]]:
        """Address and name of every symbol, in order; without the numbers that compilers give."""
        return self._named

    def places(self, names: Collection[str]) -> dict[str, int]:
        """Where the symbols of these names begin: those of them that it has."""
        wanted = frozenset(names)
        return {name: address for address, name in self._named if name in wanted}

    def bytes_at(self, address: int, size: int) -> bytes:
        """What is in memory there when the kernel starts; nothing outside of its sections."""
        for stretch in self._sections.values():
            if stretch.start <= address < stretch.end:
                return stretch.at(address, size)
        return b""

    @cached_property
    def symbols(self) -> Symbols:
        """Where symbols begin, and the first name at each place."""
        first = dict(reversed(self._named))
        addresses = sorted(first)
        return Symbols(np.array(addresses, dtype=np.uint64), [first[address] for address in addresses])


_WORD = 4

# Who reads a variable: code that holds its address.
#
# Who gets it through a pointer that lies elsewhere (a table of operations, a list) holds none.


def _leading_into(ranges: Sequence[tuple[int, int]], sections: Iterable[Stretch]) -> list[int]:
    """Places in these sections of words that are addresses inside one of the ranges.

    Relative to the end of their instruction, with ModRM's mod 0 and r/m 5 before them (Intel SDM, volume 2,
    tables 2-2 and 2-7), or sign-extended.
    """
    if not ranges:
        return []
    starts, ends = np.array(sorted(ranges), dtype=np.uint64).astype(np.int64).T
    places: list[int] = []
    for stretch in sections:
        content = np.frombuffer(stretch.content, dtype=np.uint8)
        start = np.uint64(stretch.start).astype(np.int64)
        for shift in range(_WORD):
            words = content[shift : shift + (len(content) - shift) // _WORD * _WORD]
            numbers = words.view("<i4").astype(np.int64)
            at = shift + _WORD * np.arange(len(numbers), dtype=np.int64)
            hits = _within(numbers, starts, ends)
            relative = np.flatnonzero((content[np.maximum(at - 1, 0)] & 0xC7) == 0x05)
            behind = _behind(content, at[relative])
            hits[relative] |= _within(start + at[relative] + _WORD + behind + numbers[relative], starts, ends)
            places += [stretch.start + int(place) for place in at[hits]]
    return places


_OF_ONE_BYTE = (0x6B, 0x80, 0x82, 0x83, 0xC0, 0xC1, 0xC6)
_OF_A_WORD = (0x69, 0x81, 0xC7)
_TEST_OF_ONE_BYTE, _TEST_OF_A_WORD = 0xF6, 0xF7
_LONG_OF_ONE_BYTE = (0x70, 0x71, 0x72, 0x73, 0xA4, 0xAC, 0xBA, 0xC2, 0xC4, 0xC5, 0xC6)


def _behind(content: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """How long the constant is that stands behind each of these words in its instruction.

    By the operation before it (Intel SDM, volume 2, appendix A: Ib, Iz); with the prefix 66 a word has two
    bytes. Without, the neighbour of a variable would be taken for it.
    """
    before = [content[np.maximum(at - distance, 0)] for distance in range(5)]
    fields, operation, one, two = before[1], before[2], before[3], before[4]
    short = (one == 0x66) | ((one & 0xF0 == 0x40) & (two == 0x66))
    is_test = fields & 0x30 == 0
    of_one = np.isin(operation, _OF_ONE_BYTE) | ((operation == _TEST_OF_ONE_BYTE) & is_test)
    of_word = np.isin(operation, _OF_A_WORD) | ((operation == _TEST_OF_A_WORD) & is_test)
    plain = np.where(of_one, 1, np.where(of_word, np.where(short, 2, _WORD), 0))
    return np.where(one == 0x0F, np.isin(operation, _LONG_OF_ONE_BYTE).astype(np.int64), plain)


def _within(
    addresses: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which of the addresses lie in one of the ranges, whose starts are sorted."""
    inside: NDArray[np.bool_] = (addresses >= starts.min()) & (addresses < ends.max())
    some = addresses[inside]
    inside[inside] = some < ends[np.searchsorted(starts, some, side="right") - 1]
    return inside


def code_image(vmlinux: Path) -> CodeImage:
    """A kernel's image from its file; the two that were read last are kept.

    Of a series each kernel is compared with the one before and the one behind. Raises ELFError,
    ConstructError, OSError.
    """
    facts = vmlinux.stat()
    return _read(vmlinux, facts.st_ino, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=2)
def _read(vmlinux: Path, *_identity: int) -> CodeImage:
    return CodeImage(vmlinux.read_bytes())


def ways_to(kernel: Kernel, names: Iterable[str]) -> dict[str, Ways]:
    """How these functions can be reached, each that the kernel's image has. Empty where it has no symbols."""
    if kernel.vmlinux is None:
        return {}
    try:
        image = code_image(kernel.vmlinux)
    except (ELFError, ConstructError, OSError):
        return {}
    return {name: image.ways_to(name) for name in names if plain_name(name) in image.functions}


def functions_at(kernel: Kernel, addresses: Collection[int]) -> frozenset[str]:
    """The kernel's own functions in which these addresses lie. None where it has no symbols."""
    if kernel.vmlinux is None or not addresses:
        return frozenset()
    try:
        return code_image(kernel.vmlinux).at(addresses)
    except (ELFError, ConstructError, OSError):
        return frozenset()


def copies_in(kernel: Kernel, names: Iterable[str]) -> dict[str, dict[int, str]]:
    """Of functions of these names: address → a name of their own (`init_once (inode.c)`).

    Names that the kernel's image has not are left out, and all where it has no symbols.
    """
    asked = set(names)
    if kernel.vmlinux is None or not asked:
        return {}
    try:
        image = code_image(kernel.vmlinux)
    except (ELFError, ConstructError, OSError):
        return {}
    copies = {name: image.copies(name) for name in asked}
    return {
        name: {entry.address: own for own, entry in named.items()} for name, named in copies.items() if named
    }
