"""Which functions and variables differ between two images of one source, apart from where things lie.

What is inserted moves all that follows, and with it every address in the code. So two bodies are the same
where they differ in addresses only, and those lead to the same place: the same symbol and offset, or the
same text. Sizes come from the symbol table that the linker wrote, so that only images that keep theirs can
be compared, as those that ktrial builds do.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from io import BytesIO
from itertools import dropwhile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import NoteSection, Section, SymbolTableSection
from numpy.typing import NDArray

from ktrial.kernels.code_image import ALLOCATED, SYMBOL_ROW, CodeImage, CodeObject, Symbols, code_image
from ktrial.kernels.depmod import SUFFIXES, module_files, unpacked
from ktrial.model.kernel import CodeDifference, Kernel
from ktrial.model.profile import called, plain_name

_TEXT_BYTES = 24
"""Of what has no symbol of its own (texts, jump tables): so much must be the same."""
_LONG = 8
"""Bytes of an address in a table."""
_FEWEST_JUMPS, _MOST_JUMPS = 4, 4096
"""Entries of a table of jumps: compilers compare one after another below (gcc: case-values-threshold)."""
_TAB, _LEVEL = 9, 1
"""Of the bytes below 32 the first that texts have, and the one before a message's level (KERN_SOH)."""


_MAP = 0xFFFFFFFF80000000
"""__START_KERNEL_map (arch/x86/include/asm/page_64_types.h): where physical address 0 would be there."""

UNNAMED = "constants without a name"


def code_difference(a: Kernel, b: Kernel) -> CodeDifference | None:
    """What differs from the image of `a` to that of `b`, and from modules to modules.

    A function of a module is named with it, `read [ext4]`; a module of which something else differs
    than functions counts as data: `[ext4]`. A function whose text changes counts as changed, although its
    code is the same. None where one of the images has no table with sizes.
    """
    if a.vmlinux is None or b.vmlinux is None:
        return None
    try:
        before, after = code_image(a.vmlinux), code_image(b.vmlinux)
    except (ELFError, ConstructError, OSError):
        return None
    if not before.functions or not after.functions:
        return None
    pair, modules = _ImagePair(before, after), functions_in_modules(a, b)
    differing = pair.differing(before.functions, after.functions)
    copies = {name: pair.changed_copies(name) for name in sorted(differing) if pair.is_shared(name)}
    # Where no copy differs, they only lie in another order.
    changed = {name for name in differing if copies.get(name, (name,))}
    in_modules = {called(name, module) for module, names in modules.items() for name in names}
    changed_modules = {f"[{module}]" for module, names in modules.items() if not names}
    data = pair.differing(before.data, after.data)
    if constants := before.changed_constants(after):
        readers = before.readers_of(constants)
        for own in sorted(readers):
            changed.add(plain_name(own))
            if own != plain_name(own):
                copies[plain_name(own)] = tuple(sorted({*copies.get(plain_name(own), ()), own}))
        data |= set() if readers else {UNNAMED}
    return CodeDifference(
        functions=tuple(sorted({*changed, *in_modules})),
        copies={name: own for name, own in copies.items() if own},
        data=tuple(sorted({*data, *changed_modules})),
        readers=tuple(sorted(before.readers(data) | after.readers(data))),
    )


class _ImagePair:
    """Two images, compared."""

    def __init__(self, before: CodeImage, after: CodeImage) -> None:
        self._before, self._after = before, after
        self._known: dict[tuple[int, int], bool] = {}

    def differing(self, before: dict[str, list[CodeObject]], after: dict[str, list[CodeObject]]) -> set[str]:
        """Names that only one of the two has, or whose bodies differ in more than addresses."""
        moved: list[tuple[str, CodeObject, CodeObject]] = []
        differing = set(before.keys() ^ after.keys())
        for name, old in before.items():
            new = after.get(name)
            if new is None:
                continue
            if len(old) > 1 or len(new) > 1:
                # Those of one name lie in the linker's order in both.
                old, new = sorted(old), sorted(new)
            if len(old) != len(new):
                differing.add(name)
                continue
            for first, second in zip(old, new, strict=True):
                if first.body == second.body:
                    continue
                if len(first.body) != len(second.body):
                    differing.add(name)
                    break
                moved.append((name, first, second))
        bodies = [Moved(old.address, old.body, new.address, new.body) for _, old, new in moved]
        plain = only_moved(bodies, self._before.symbols, self._after.symbols).tolist()
        unclear = (first for first, is_plain in zip(moved, plain, strict=True) if not is_plain)
        return differing | {name for name, old, new in unclear if not self._same(old, new)}

    def is_shared(self, name: str) -> bool:
        """Whether several functions of one of the images have this name."""
        return any(len(image.copies(name)) > 1 for image in (self._before, self._after))

    def changed_copies(self, name: str) -> tuple[str, ...]:
        """Which functions of that name differ, or are in one of the images only."""
        before, after = self._before.copies(name), self._after.copies(name)
        return tuple(
            own
            for own in sorted({*before, *after})
            if not (
                (old := before.get(own))
                and (new := after.get(own))
                and len(old.body) == len(new.body)
                and self._same(old, new)
            )
        )

    def _same(self, old: CodeObject, new: CodeObject) -> bool:
        """Whether bodies as long differ in addresses only, which lead to the same."""
        arrays = (np.frombuffer(side.body, dtype=np.uint8) for side in (old, new))
        explained = 0
        for place in map(int, np.flatnonzero(np.not_equal(*arrays))):
            if place >= explained:
                end = self._address_ends(old, new, place, explained)
                if not end:
                    return False
                explained = end
        return True

    def _address_ends(self, old: CodeObject, new: CodeObject, place: int, least: int) -> int:
        """Where an address ends that holds this byte, and leads to the same in both; 0: nowhere."""
        for start in range(place, max(least, place - 3) - 1, -1):
            words = [
                int.from_bytes(side.body[start : start + 4], "little", signed=True) for side in (old, new)
            ]
            if start + 4 <= len(old.body) and self._lead_to_the_same(old, new, start, words):
                return start + 4
        for start in range(place, max(least, place - 7) - 1, -1):
            if start + 8 <= len(old.body):
                long = [int.from_bytes(side.body[start : start + 8], "little") for side in (old, new)]
                if self._alike(long[0], long[1]):
                    return start + 8
        return 0

    def _lead_to_the_same(self, old: CodeObject, new: CodeObject, start: int, words: list[int]) -> bool:
        ends = [[side.address + start + 4 + behind for side in (old, new)] for behind in BEHIND]
        is_code = old.address in self._code
        # Sign-extended, as the code model of the kernel has them; those of one CPU's variables are small.
        for origins in (*ends, (0, 0)):
            leads = [(origin + word) % 2**64 for origin, word in zip(origins, words, strict=True)]
            # A variable's number may look like an address, and a change of it like a move: between two
            # warnings, or among bytes that repeat themselves. Variables refer to texts by eight bytes.
            if not is_code and self._same_symbol(*leads):
                return True
            if is_code and (self._alike(*leads) or self._are_warnings(*leads)):
                return True
        return is_code and self._are_physical(*words)

    @cached_property
    def _code(self) -> frozenset[int]:
        """Where the functions of the first image begin."""
        return frozenset(entry.address for entries in self._before.functions.values() for entry in entries)

    def _alike(self, old: int, new: int) -> bool:
        key = (old, new)
        if key not in self._known:
            self._known[key] = self._leads_alike(old, new)
        return self._known[key]

    def _leads_alike(self, old: int, new: int) -> bool:
        if self._same_symbol(old, new):
            return True
        texts = self._before.bytes_at(old, _TEXT_BYTES), self._after.bytes_at(new, _TEXT_BYTES)
        if any(texts[0]) and _text(texts[0]) == _text(texts[1]):
            return True
        alike = self._constants_alike(old, new) or self._same_unnamed(old, new, texts)
        return alike or self._jump_alike(old, new)

    def _constants_alike(self, old: int, new: int) -> bool:
        """Whether the same constant begins there, and behind it is the same, or addresses that lead to the
        same: next to a constant of few bytes a table of jumps may lie, which moves with the code.
        """
        first = _LONG - old % _LONG
        size = first + (_TEXT_BYTES - _LONG)
        begins = self._before.bytes_at(old, size), self._after.bytes_at(new, size)
        if old % _LONG != new % _LONG or not any(begins[0][:first]) or begins[0][:first] != begins[1][:first]:
            return False
        places = range(first, min(map(len, begins)), _LONG)
        sides = [[int.from_bytes(side[at : at + _LONG], "little") for at in places] for side in begins]
        # Where such a table is aligned, there may be more zeros before it on one side.
        behind = [list(dropwhile(lambda word: not word, side)) for side in sides]
        aligned = [behind] if all(behind) else []
        return any(
            all(
                before == after or self._same_symbol(before, after)
                for before, after in zip(*both, strict=False)
            )
            for both in (sides, *aligned)
        )

    def _same_unnamed(self, old: int, new: int, contents: tuple[bytes, bytes]) -> bool:
        """Whether both are the same constant without a symbol, as far behind the last that has one; it may
        begin with zeros.
        """
        names, offset = self._before.names_at(old)
        other_names, other_offset = self._after.names_at(new)
        alike = offset == other_offset and bool(names & other_names)
        return alike and len(contents[0]) == _TEXT_BYTES and contents[0] == contents[1]

    def _same_symbol(self, old: int, new: int) -> bool:
        names, offset = self._before.names_at(old)
        other_names, other_offset = self._after.names_at(new)
        alike = offset == other_offset and bool(names & other_names)
        if offset < FARTHEST:
            return alike
        # `preferred_node_policy` has 272 kB with 1,024 nodes, and loops end with its last element.
        return alike and self._before.is_in_variable(old) and self._after.is_in_variable(new)

    def _are_warnings(self, old: int, new: int) -> bool:
        """Whether both begin an entry of the table of warnings: Linux 7.2 hands them to what prints the
        warning, and each moves with all before it.
        """
        (names, offset), (other_names, other_offset) = self._before.names_at(old), self._after.names_at(new)
        if _WARNINGS[0] not in names & other_names:
            return False
        return any(not offset % size and not other_offset % size for size in _ENTRY_SIZES)

    def _are_physical(self, old: int, new: int) -> bool:
        """Whether both are a symbol's physical address, or the byte before it: clang adds up the constants of
        `__pa_symbol(_end) - 1` (`setup_arch`).
        """
        at = [[_MAP + word + behind for word in (old, new)] for behind in (0, 1)]
        return min(old, new) > 0 and any(self._same_symbol(*addresses) for addresses in at)

    def _jump_alike(self, old: int, new: int) -> bool:
        """Whether tables of jumps begin there, as a `switch` has them, that lead to the same places.

        Such a table has no symbol, and its entries are addresses inside one function: it ends in both images
        where the next word is none.
        """
        within: frozenset[str] = frozenset()
        for entry in range(_MOST_JUMPS):
            sides = ((self._before, old), (self._after, new))
            contents = [image.bytes_at(start + 8 * entry, 8) for image, start in sides]
            if not all(map(any, contents)):  # outside of the image, or zero: no jump leads there
                return entry >= _FEWEST_JUMPS
            words = [int.from_bytes(content, "little") for content in contents]
            names = [image.names_at(word)[0] for (image, _), word in zip(sides, words, strict=True)]
            within = within or names[0] & names[1]
            belong = [bool(within & own) for own in names]
            if not any(belong):
                return entry >= _FEWEST_JUMPS
            if not all(belong) or not self._same_symbol(*words):
                return False
        return True


def _text(content: bytes) -> bytes:
    """Up to its end, where a text begins there."""
    text, _, _ = content.partition(b"\0")
    return text if len(text) > 1 and all(byte >= _TAB or byte == _LEVEL for byte in text) else content


# Which bodies of code were only moved, told of all of them at once.
#
# A patch that makes one function longer moves some 20,000 others, and changes 50,000 addresses in them.
# Here is told what is plain: each word that differs is an address, and leads to the same symbol. What is
# not plain (texts without a symbol, symbols with other first names) may be the same all the same: it is
# compared word by word elsewhere in this file.

BEHIND = (0, 1, 2, 4)
"""Bytes of an operand that may stand between a relative address and the instruction's end."""
FARTHEST = 1 << 16
"""Outside of variables nothing is this far behind the symbol that it belongs to."""
_WORD = 4


class Moved(NamedTuple):
    """One body in two images, as long in both."""

    old_address: int
    old: bytes
    new_address: int
    new: bytes


def only_moved(bodies: Sequence[Moved], before: Symbols, after: Symbols) -> NDArray[np.bool_]:
    """For each of the bodies whether it plainly was only moved: of two symbols with one name."""
    if not bodies or not before.names or not after.names:
        return np.zeros(len(bodies), dtype=np.bool_)
    code = _Code(bodies, _Names(before, after))
    places = np.flatnonzero(code.old != code.new)
    # Most addresses differ in their first byte.
    first = places[np.diff(places, prepend=-2) > 1]
    leading = code.leading(first)
    remaining = places[~_covered(places, leading)]
    leading = np.union1d(leading, code.leading(np.unique(remaining[:, None] - np.arange(_WORD))))
    plain = np.ones(len(bodies), dtype=np.bool_)
    plain[code.owners(places[~_covered(places, leading)])] = False
    # Where two addresses could share a byte, one of them is none.
    plain[code.owners(leading[1:][np.diff(leading) < _WORD])] = False
    return plain


def _covered(places: NDArray[np.int64], words: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the places lie in one of the words, which are sorted."""
    if not len(words):
        return np.zeros(len(places), dtype=np.bool_)
    index = np.searchsorted(words, places, side="right") - 1
    covered: NDArray[np.bool_] = (index >= 0) & (places - words[index] < _WORD)
    return covered


class _Code:
    """All bodies, one behind the other; places are offsets there."""

    def __init__(self, bodies: Sequence[Moved], names: "_Names") -> None:
        self._names = names
        self._starts = np.cumsum([0, *(len(body.old) for body in bodies)])
        self.old = np.frombuffer(b"".join(body.old for body in bodies), dtype=np.uint8)
        self.new = np.frombuffer(b"".join(body.new for body in bodies), dtype=np.uint8)
        self._origins = [np.array([body[side] for body in bodies], dtype=np.uint64) for side in (0, 2)]

    def owners(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the body that each place is in."""
        return np.searchsorted(self._starts, places, side="right") - 1

    def leading(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the places at which an address begins that leads to the same in both images."""
        places = places[(places >= 0) & (places + _WORD <= len(self.old))]
        owners = self.owners(places)
        inside = places + _WORD <= self._starts[owners + 1]
        places, owners = places[inside], owners[inside]
        old, new = (
            side[places[:, None] + np.arange(_WORD)].view("<i4").ravel().astype(np.uint64)
            for side in (self.old, self.new)
        )
        within = (places - self._starts[owners] + _WORD).astype(np.uint64)
        old_end, new_end = (side[owners] + within for side in self._origins)
        leads = self._names.alike(old, new)
        for behind in map(np.uint64, BEHIND):
            remaining = np.flatnonzero(~leads)
            ends = old_end[remaining] + behind, new_end[remaining] + behind
            leads[remaining] = self._names.alike(ends[0] + old[remaining], ends[1] + new[remaining])
        return places[leads]


class _Names:
    """The symbols of both images, with numbers for their names."""

    def __init__(self, before: Symbols, after: Symbols) -> None:
        numbers = {name: number for number, name in enumerate(before.names)}
        self._images = (
            (before.addresses, np.array([numbers[name] for name in before.names])),
            # What only the other image has is like nothing, as is what lies before the first symbol.
            (after.addresses, np.array([numbers.get(name, -1) for name in after.names])),
        )

    def alike(self, old: NDArray[np.uint64], new: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Whether addresses lead to the same symbol, and as far behind its beginning."""
        (name, offset), (other_name, other_offset) = (
            _at(*image, addresses) for image, addresses in zip(self._images, (old, new), strict=True)
        )
        alike: NDArray[np.bool_] = (
            (name == other_name) & (name >= 0) & (offset == other_offset) & (offset < FARTHEST)
        )
        return alike


def _at(
    starts: NDArray[np.uint64], numbers: NDArray[np.int64], addresses: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The number of the symbol that begins last before each address, -1 for none; and how far before."""
    index = np.searchsorted(starts, addresses, side="right") - 1
    return np.where(index >= 0, numbers[index], -1), addresses - starts[index]


# Whether two kernels do the same: image and modules load the same bytes, apart from what is never executed.
#
# Left out of account are build ids, the time of the build, the release's name where both are as long, and
# numbers that move with the lines of a source: in names of symbols (`__initcall__kmod_core__492_9715`;
# gcc's `CSWTCH.988`), which the kernel keeps for messages (kernel/kallsyms.c), and line numbers of warnings
# (`struct bug_entry`, include/asm-generic/bug.h).

_EXECUTABLE = 4
"""SHF_EXECINSTR (System V ABI): the section holds code."""
_BANNER = re.compile(rb"Linux version (\S+) [^\0\n]*?(#\d[^\0\n]*)")
_DIGITS = bytes(ord("0") if chr(code).isascii() and chr(code).isdigit() else code for code in range(256))
_NAMES = ("kallsyms_names", "kallsyms_markers")
"""Where the kernel keeps the names of its symbols, and what begins behind them."""
_WARNINGS = ("__start___bug_table", "__stop___bug_table")
_ENTRY_SIZES = (12, 16)
"""Addresses of the code and the file, of the text too since 6.19, each in four bytes; then line and flags."""
_LINE_FROM_END = 4


def same_image(a: Kernel, b: Kernel) -> bool:
    """Whether both kernels load the same bytes, apart from marks of the build and numbers of lines.

    Their modules are a part of it, loaded or not; the configuration is none. False where a file cannot be
    read.
    """
    if a.digest == b.digest:
        return True
    if (a.modules is None) != (b.modules is None) or a.vmlinux is None or b.vmlinux is None:
        return False
    try:
        before, after = _Loaded(a.vmlinux), _Loaded(b.vmlinux)
        if before.layout != after.layout:
            return False
        alike = before.names_without_digits == after.names_without_digits
        sides = (image.contents(without_names=alike) for image in (before, after))
        if any(old != new for old, new in zip(*sides, strict=True)):
            return False
    except (ELFError, ConstructError, OSError):
        return False
    return same_modules(a, b)


class _Loaded:
    """What of an image is in memory while it runs."""

    def __init__(self, vmlinux: Path) -> None:
        content = vmlinux.read_bytes()
        banner = _BANNER.search(content)
        self._marks = [mark for mark in banner.groups() if len(mark) > 1] if banner else []
        self._elf = ELFFile(BytesIO(content))
        self._sections = [section for section in self._elf.iter_sections() if section["sh_flags"] & ALLOCATED]
        self._addresses: dict[str, int] = {}

    @property
    def layout(self) -> list[tuple[str, int, int]]:
        """Each section's name, address and size."""
        return [(section.name, section["sh_addr"], section["sh_size"]) for section in self._sections]

    @cached_property
    def names_without_digits(self) -> tuple[bytes, bytes]:
        """The table of symbols and their names, each digit a zero; empty without one."""
        table, names = (self._elf.get_section_by_name(name) for name in (".symtab", ".strtab"))
        return (
            (bytes(table.data()), bytes(names.data()).translate(_DIGITS)) if table and names else (b"", b"")
        )

    def contents(self, *, without_names: bool) -> Iterator[bytearray]:
        """What is in each section, without what does not count."""
        return (self._content(section, without_names=without_names) for section in self._sections)

    def _content(self, section: Section, *, without_names: bool) -> bytearray:
        if section["sh_type"] == "SHT_NOBITS":
            return bytearray()
        content = bytes(section.data())
        marks = [*self._marks, *_build_ids(section)]
        for mark in marks:
            content = content.replace(mark, bytes(len(mark)))
        changed = bytearray(content)
        if without_names and (names := self._between(_NAMES, section)):
            changed[names.start : names.stop] = bytes(len(names))
        if warnings := self._between(_WARNINGS, section):
            self._clear_lines(changed, section["sh_addr"], warnings)
        return changed

    def _between(self, ends: tuple[str, str], section: Section) -> range | None:
        """Where in a section lies what is between two symbols; None where it is elsewhere."""
        start, end = (self._address_of(name) - section["sh_addr"] for name in ends)
        return range(start, end) if 0 <= start < end <= section["sh_size"] else None

    def _address_of(self, symbol: str) -> int:
        """0 where there is none of that name."""
        if symbol not in self._addresses:
            self._addresses[symbol] = self._look_up(symbol)
        return self._addresses[symbol]

    def _look_up(self, symbol: str) -> int:
        table, names = (self._elf.get_section_by_name(name) for name in (".symtab", ".strtab"))
        if table is None or names is None or self._elf.elfclass != 64:
            return 0
        places = [match.start() for match in re.finditer(re.escape(symbol.encode() + b"\0"), names.data())]
        symbols = np.frombuffer(table.data(), dtype=SYMBOL_ROW)
        values = symbols["value"][np.isin(symbols["name"], places)]
        return int(values[0]) if len(values) else 0

    def _clear_lines(self, content: bytearray, address: int, warnings: range) -> None:
        """Zeros for the lines of a table of warnings; nothing where its entries are of no known kind."""
        code = [
            range(section["sh_addr"], section["sh_addr"] + section["sh_size"])
            for section in self._sections
            if section["sh_flags"] & _EXECUTABLE
        ]
        table = bytes(content[warnings.start : warnings.stop])
        for size in _ENTRY_SIZES:
            if _lead_to(code, table, address + warnings.start, size):
                for place in range(warnings.start + size - _LINE_FROM_END, warnings.stop, size):
                    content[place : place + 2] = bytes(2)
                return


def _build_ids(section: Section) -> Iterator[bytes]:
    if isinstance(section, NoteSection):
        for note in section.iter_notes():
            # Another one's note may have the same number (Xen's hypercall page).
            if note["n_name"] == "GNU" and note["n_type"] == "NT_GNU_BUILD_ID":
                yield bytes.fromhex(note["n_desc"])


def _lead_to(code: list[range], table: bytes, address: int, size: int) -> bool:
    """Whether each entry of that size begins with the way from itself to code."""
    if len(table) % size:
        return False
    starts = range(0, len(table), size)
    ends = (address + at + int.from_bytes(table[at : at + 4], "little", signed=True) for at in starts)
    return all(any(end in stretch for stretch in code) for end in ends)


# What differs in the modules of two kernels, apart from what says where and when they were built.
#
# Left out of account are the release's name, where both are as long, build ids, signatures, and information
# for debuggers. What only moved by a line in its source, or in its module, can be taken for changed.

_LINKED_BY = frozenset({"SHT_REL", "SHT_RELA", "SHT_SYMTAB", "SHT_STRTAB"})
"""What a module's code and data become when they are loaded: the calls in it are blank before."""
_BUILD_ID = ".note.gnu.build-id"
_SUFFIX = re.compile("|".join(f"{re.escape(suffix)}$" for suffix in sorted(SUFFIXES, reverse=True)))


def same_modules(a: Kernel, b: Kernel) -> bool:
    """Whether each module of one is one of the other, and loads the same bytes; False if damaged."""
    return not any(_differing(a, b))


def functions_in_modules(a: Kernel, b: Kernel) -> dict[str, tuple[str, ...]]:
    """Of each module that differs, by its name: the functions that do, or that only one of the kernels has.

    None of a module that differs in something else, or that cannot be read.
    """
    differing: dict[str, tuple[str, ...]] = {}
    for name, modules in _differing(a, b):
        before, after = (module.functions() if module else {} for module in modules)
        names = sorted({*before, *after})
        differing[name] = tuple(name for name in names if before.get(name) != after.get(name))
    return differing


class _Module:
    """A module of a kernel, from its file. Raises what `unpacked` and elftools raise."""

    def __init__(self, path: Path, release: str) -> None:
        self._elf = ELFFile(BytesIO(unpacked(path)))
        self._release = release.encode()

    @cached_property
    def loaded(self) -> list[tuple[str, bytes]]:
        """Each section that counts: its name, and what is in it but the marks of the build."""
        return [
            (section.name, self._content(section))
            for section in self._elf.iter_sections()
            if (section["sh_flags"] & ALLOCATED or section["sh_type"] in _LINKED_BY)
            and section.name != _BUILD_ID
        ]

    def _content(self, section: Section) -> bytes:
        if section["sh_type"] == "SHT_NOBITS":
            return bytes(str(section["sh_size"]), "ascii")
        data = bytes(section.data())
        return data.replace(self._release, bytes(len(self._release))) if self._release else data

    def functions(self) -> dict[str, tuple[bytes, tuple[object, ...]]]:
        """Each function's code, and what it refers to: places in it, kinds, names, and offsets."""
        table = self._elf.get_section_by_name(".symtab")
        if not isinstance(table, SymbolTableSection):
            return {}
        bodies: dict[str, tuple[bytes, tuple[object, ...]]] = {}
        for symbol in table.iter_symbols():
            if symbol["st_info"]["type"] == "STT_FUNC" and isinstance(symbol["st_shndx"], int):
                start, size = symbol["st_value"], symbol["st_size"]
                content = bytes(self._elf.get_section(symbol["st_shndx"]).data())[start : start + size]
                links = self._links(table, symbol["st_shndx"])
                inside = (link for place, link in links if start <= place < start + size)
                bodies[symbol.name] = content, tuple((link[0] - start, *link[1:]) for link in inside)
        return bodies

    def _links(self, table: SymbolTableSection, section: int) -> list[tuple[int, tuple[int, int, str, int]]]:
        if section not in self._relocations:
            self._relocations[section] = list(self._read_links(table, section))
        return self._relocations[section]

    @cached_property
    def _relocations(self) -> dict[int, list[tuple[int, tuple[int, int, str, int]]]]:
        return {}

    def _read_links(
        self, table: SymbolTableSection, section: int
    ) -> Iterator[tuple[int, tuple[int, int, str, int]]]:
        for relocations in self._elf.iter_sections():
            if isinstance(relocations, RelocationSection) and relocations["sh_info"] == section:
                for link in relocations.iter_relocations():
                    symbol, place = table.get_symbol(link["r_info_sym"]), link["r_offset"]
                    name = symbol.name or str(symbol["st_shndx"])
                    yield place, (place, link["r_info_type"], name, link.entry.get("r_addend", 0))


def _differing(a: Kernel, b: Kernel) -> Iterator[tuple[str, tuple[_Module | None, _Module | None]]]:
    """Each module that only one of them has, or that differs: of the two what can be read."""
    before, after = (_by_name(kernel.modules) if kernel.modules else {} for kernel in (a, b))
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old and new and old.suffix == new.suffix and old.read_bytes() == new.read_bytes():
            continue
        both = (_read(old, a.release), _read(new, b.release))
        if both[0] is None or both[1] is None or both[0].loaded != both[1].loaded:
            yield Path(name).name.replace("-", "_"), both


def _by_name(directory: Path) -> dict[str, Path]:
    return {_SUFFIX.sub("", str(path.relative_to(directory))): path for path in module_files(directory)}


def _read(path: Path | None, release: str) -> _Module | None:
    if path is None:
        return None
    try:
        module = _Module(path, release)
        return module if module.loaded else None
    except (ELFError, ConstructError, OSError, ValueError):
        return None
