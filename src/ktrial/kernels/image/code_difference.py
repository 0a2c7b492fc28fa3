"""Which functions and variables differ between two images of one source, apart from where things lie.

What is inserted moves all that follows, and with it every address in the code. So two bodies are the same
where they differ in addresses only, and those lead to the same place: the same symbol and offset, or the
same text. Sizes come from the symbol table that the linker wrote, so that only images that keep theirs can
be compared, as those that ktrial builds do.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from io import BytesIO
from typing import NamedTuple

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ktrial.kernels.image.moved_code import BEHIND, FARTHEST, Moved, Symbols, only_moved
from ktrial.kernels.modules.module_difference import functions_in_modules
from ktrial.model.kernel import CodeDifference, Kernel

_ROW = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
"""Elf64_Sym; its low four bits of `info` are the kind (System V ABI)."""
_OBJECT, _FUNCTION, _SECTION, _FILE = 1, 2, 3, 4
_RESERVED, _ABSOLUTE = 0xFF00, 0xFFF1
_ALLOCATED = 2
"""SHF_ALLOC (System V ABI): the section is in memory while the kernel runs."""
_NUMBERED = re.compile(r"\.\d+")
"""GCC's numbers differ between builds: `copy.isra.0`, `copy.isra.1`."""
_OF_THE_LINKER = re.compile(
    r"kallsyms_\w+|linux_(?:proc_)?banner|init_uts_ns|vermagic|__func__|__PRETTY_FUNCTION__"
)
"""Tables of the symbols themselves, and what tells of the build."""
_DATA_SECTIONS = (".data", ".rodata", ".data..read_mostly", ".data..ro_after_init", ".init.data")
_TEXT_BYTES = 24
"""Of what has no symbol of its own (texts, jump tables): so much must be the same."""
_TAB, _LEVEL = 9, 1
"""Of the bytes below 32 the first that texts have, and the one before a message's level (KERN_SOH)."""


def code_difference(a: Kernel, b: Kernel) -> CodeDifference | None:
    """What differs from the image of `a` to that of `b`, and from modules to modules.

    A function of a module is named with it, `read [ext4]`; a module of which something else differs
    than functions counts as data: `[ext4]`. None where one of the images has no table with sizes.
    """
    if a.vmlinux is None or b.vmlinux is None:
        return None
    try:
        before, after = _Image(a.vmlinux.read_bytes()), _Image(b.vmlinux.read_bytes())
    except (ELFError, ConstructError, OSError):
        return None
    if not before.functions or not after.functions:
        return None
    pair, modules = _ImagePair(before, after), functions_in_modules(a, b)
    in_modules = {called(name, module) for module, names in modules.items() for name in names}
    others = {f"[{module}]" for module, names in modules.items() if not names}
    return CodeDifference(
        functions=tuple(sorted({*pair.differing(before.functions, after.functions), *in_modules})),
        data=tuple(sorted({*pair.differing(before.data, after.data), *others})),
    )


def called(symbol: str, module: str = "") -> str:
    """A function's name as a difference has it: `copy.isra` for `copy.isra.0`; `read [ext4]` in a module."""
    return without_numbers(symbol) + (f" [{module}]" if module else "")


def without_numbers(symbol: str) -> str:
    """A function's name as a difference has it: `copy.isra` for `copy.isra.0`."""
    return _NUMBERED.sub("", symbol)


class _Object(NamedTuple):
    """A function or variable."""

    address: int
    body: bytes


class _Stretch(NamedTuple):
    """A section in memory."""

    start: int
    end: int
    content: bytes

    def at(self, address: int, size: int) -> bytes:
        """What is there when the kernel starts."""
        return self.content[address - self.start : address - self.start + size]


class _Symbol(NamedTuple):
    name: str
    address: int
    size: int
    kind: int
    section: int


def _symbols(table: SymbolTableSection) -> Iterator[_Symbol]:
    """As the table has them; read at once: a kernel has some 30,000."""
    names = bytes(table.stringtable.data())
    rows = np.frombuffer(table.data(), dtype=_ROW)
    columns = (rows[one].tolist() for one in ("name", "value", "size", "info", "section"))
    for name, address, size, info, section in zip(*columns, strict=True):
        text = names[name : names.index(b"\0", name)].decode("utf-8", errors="replace")
        yield _Symbol(text, address, size, info & 15, section)


class _Image:
    """An ELF image with its symbols."""

    def __init__(self, content: bytes) -> None:
        elf = ELFFile(BytesIO(content))
        self._sections = {
            number: _Stretch(one["sh_addr"], one["sh_addr"] + one["sh_size"], bytes(one.data()))
            for number, one in enumerate(elf.iter_sections())
            if one["sh_flags"] & _ALLOCATED and one["sh_type"] != "SHT_NOBITS" and one["sh_addr"]
        }
        names = [one.name for one in elf.iter_sections()]
        self.functions: dict[str, list[_Object]] = defaultdict(list)
        self.data: dict[str, list[_Object]] = defaultdict(list)
        self._named: list[tuple[int, str]] = []
        for table in elf.iter_sections():
            if isinstance(table, SymbolTableSection):
                for one in _symbols(table):
                    self._add(one, names)
        self._named.sort()

    def _add(self, symbol: _Symbol, sections: list[str]) -> None:
        address, size, kind, place = symbol.address, symbol.size, symbol.kind, symbol.section
        inside = 0 < place < _RESERVED
        if not symbol.name or kind in {_FILE, _SECTION} or not (inside or place == _ABSOLUTE):
            return
        key = without_numbers(symbol.name)
        self._named.append((address, key))
        if not size or not inside:
            return
        objects = self.functions if kind == _FUNCTION else self.data
        if kind == _FUNCTION or (kind == _OBJECT and _is_told(key, sections[place])):
            there = self._sections.get(place)
            objects[key].append(_Object(address, there.at(address, size) if there else b""))

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

    def bytes_at(self, address: int, size: int) -> bytes:
        """What is in memory there when the kernel starts; nothing outside of its sections."""
        for one in self._sections.values():
            if one.start <= address < one.end:
                return one.at(address, size)
        return b""

    @cached_property
    def symbols(self) -> Symbols:
        """Where symbols begin, and the first name at each place."""
        first = dict(reversed(self._named))
        addresses = sorted(first)
        return Symbols(np.array(addresses, dtype=np.uint64), [first[one] for one in addresses])


def _is_told(name: str, section: str) -> bool:
    """Whether a variable is more than a mark of the build."""
    return section.startswith(_DATA_SECTIONS) and not _OF_THE_LINKER.fullmatch(name)


class _ImagePair:
    """Two images, compared."""

    def __init__(self, before: _Image, after: _Image) -> None:
        self._before, self._after = before, after
        self._known: dict[tuple[int, int], bool] = {}

    def differing(self, before: dict[str, list[_Object]], after: dict[str, list[_Object]]) -> set[str]:
        """Names that only one of the two has, or whose bodies differ in more than addresses."""
        moved: list[tuple[str, _Object, _Object]] = []
        differing = set()
        for name in before.keys() | after.keys():
            # Those of one name lie in the linker's order in both.
            old, new = sorted(before.get(name, [])), sorted(after.get(name, []))
            if [len(one.body) for one in old] != [len(one.body) for one in new]:
                differing.add(name)
            else:
                pairs = zip(old, new, strict=True)
                moved += [(name, one, other) for one, other in pairs if one.body != other.body]
        bodies = [Moved(*old, *new) for _, old, new in moved]
        plain = only_moved(bodies, self._before.symbols, self._after.symbols).tolist()
        rest = (one for one, is_plain in zip(moved, plain, strict=True) if not is_plain)
        return differing | {name for name, old, new in rest if not self._same(old, new)}

    def _same(self, old: _Object, new: _Object) -> bool:
        """Whether bodies as long differ in addresses only, which lead to the same."""
        arrays = (np.frombuffer(one.body, dtype=np.uint8) for one in (old, new))
        explained = 0
        for place in map(int, np.flatnonzero(np.not_equal(*arrays))):
            if place >= explained:
                end = self._address_ends(old, new, place, explained)
                if not end:
                    return False
                explained = end
        return True

    def _address_ends(self, old: _Object, new: _Object, place: int, least: int) -> int:
        """Where an address ends that holds this byte, and leads to the same in both; 0: nowhere."""
        for start in range(place, max(least, place - 3) - 1, -1):
            words = [int.from_bytes(one.body[start : start + 4], "little", signed=True) for one in (old, new)]
            if start + 4 <= len(old.body) and self._lead_to_the_same(old, new, start, words):
                return start + 4
        for start in range(place, max(least, place - 7) - 1, -1):
            if start + 8 <= len(old.body):
                long = [int.from_bytes(one.body[start : start + 8], "little") for one in (old, new)]
                if self._alike(long[0], long[1]):
                    return start + 8
        return 0

    def _lead_to_the_same(self, old: _Object, new: _Object, start: int, words: list[int]) -> bool:
        for behind in BEHIND:
            ends = [one.address + start + 4 + behind for one in (old, new)]
            if self._alike(*((end + word) % 2**64 for end, word in zip(ends, words, strict=True))):
                return True
        # Sign-extended, as the code model of the kernel has them; those of one CPU's variables are small.
        return self._alike(words[0] % 2**64, words[1] % 2**64)

    def _alike(self, old: int, new: int) -> bool:
        key = (old, new)
        if key not in self._known:
            self._known[key] = self._leads_alike(old, new)
        return self._known[key]

    def _leads_alike(self, old: int, new: int) -> bool:
        names, offset = self._before.names_at(old)
        others, other_offset = self._after.names_at(new)
        if offset == other_offset and names & others and offset < FARTHEST:
            return True
        texts = self._before.bytes_at(old, _TEXT_BYTES), self._after.bytes_at(new, _TEXT_BYTES)
        return any(texts[0]) and _text(texts[0]) == _text(texts[1])


def _text(content: bytes) -> bytes:
    """Up to its end, where a text begins there."""
    text, _, _ = content.partition(b"\0")
    return text if len(text) > 1 and all(one >= _TAB or one == _LEVEL for one in text) else content
