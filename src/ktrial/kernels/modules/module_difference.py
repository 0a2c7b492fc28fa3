"""What differs in the modules of two kernels, apart from what says where and when they were built.

Left out of account are the release's name, where both are as long, build ids, signatures, and information for
debuggers. What only moved by a line in its source, or in its module, can be taken for changed.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from io import BytesIO
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Section, SymbolTableSection

from ktrial.kernels.modules.depmod import SUFFIXES, module_files, unpacked
from ktrial.model.kernel import Kernel

_ALLOCATED = 2
"""SHF_ALLOC (System V ABI): the section is in memory while the module is loaded."""
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
    return {name: tuple(sorted(_functions(*both))) for name, both in _differing(a, b)}


class _Module:
    """A module of a kernel, from its file. Raises what `unpacked` and elftools raise."""

    def __init__(self, path: Path, release: str) -> None:
        self._elf = ELFFile(BytesIO(unpacked(path)))
        self._release = release.encode()

    @cached_property
    def loaded(self) -> list[tuple[str, bytes]]:
        """Each section that counts: its name, and what is in it but the marks of the build."""
        return [
            (one.name, self._content(one))
            for one in self._elf.iter_sections()
            if (one["sh_flags"] & _ALLOCATED or one["sh_type"] in _LINKED_BY) and one.name != _BUILD_ID
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
        for one in table.iter_symbols():
            if one["st_info"]["type"] == "STT_FUNC" and isinstance(one["st_shndx"], int):
                start, size = one["st_value"], one["st_size"]
                content = bytes(self._elf.get_section(one["st_shndx"]).data())[start : start + size]
                links = self._links(table, one["st_shndx"])
                inside = (link for place, link in links if start <= place < start + size)
                bodies[one.name] = content, tuple((link[0] - start, *link[1:]) for link in inside)
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
        for one in self._elf.iter_sections():
            if isinstance(one, RelocationSection) and one["sh_info"] == section:
                for link in one.iter_relocations():
                    symbol, place = table.get_symbol(link["r_info_sym"]), link["r_offset"]
                    name = symbol.name or str(symbol["st_shndx"])
                    yield place, (place, link["r_info_type"], name, link.entry.get("r_addend", 0))


def _differing(a: Kernel, b: Kernel) -> Iterator[tuple[str, tuple[_Module | None, _Module | None]]]:
    """Each module that only one of them has, or that differs: of the two what can be read."""
    one, other = ({} if kernel.modules is None else _by_name(kernel.modules) for kernel in (a, b))
    for name in sorted({*one, *other}):
        paths = one.get(name), other.get(name)
        if None not in paths and _same_file(*paths):  # type: ignore[arg-type]
            continue
        both = (_read(paths[0], a.release), _read(paths[1], b.release))
        if both[0] is None or both[1] is None or both[0].loaded != both[1].loaded:
            yield Path(name).name.replace("-", "_"), both


def _by_name(directory: Path) -> dict[str, Path]:
    return {_SUFFIX.sub("", str(path.relative_to(directory))): path for path in module_files(directory)}


def _same_file(one: Path, other: Path) -> bool:
    return one.suffix == other.suffix and one.read_bytes() == other.read_bytes()


def _read(path: Path | None, release: str) -> _Module | None:
    if path is None:
        return None
    try:
        module = _Module(path, release)
        return module if module.loaded else None
    except (ELFError, ConstructError, OSError, ValueError):
        return None


def _functions(one: _Module | None, other: _Module | None) -> set[str]:
    before, after = (module.functions() if module else {} for module in (one, other))
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}
