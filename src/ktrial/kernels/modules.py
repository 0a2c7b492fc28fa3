"""Kernel modules: which belong to which, and reading them out of packages."""

import re
import warnings
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from ktrial.file_digests import digest_of_bytes, has_digest
from ktrial.kernels.cache_repair import whole_modules
from ktrial.kernels.depmod import LOADABLE, NOTE, SUFFIXES, UNPACK, unpacked
from ktrial.kernels.errors import ModulesUnusable, UnknownModule
from ktrial.kernels.files import file_system_errors, write_atomically
from ktrial.model.kernel import Kernel
from ktrial.model.notation import nearest
from ktrial.text_lines import lines_of

# Which module files must be loaded, and in which order.


def resolve(kernel: Kernel, names: Iterable[str]) -> tuple[Path, ...]:
    """Return the files to load for `names`, in load order: what a module needs comes before it.

    A name is a module's (`-` and `_` are one), or an alias (`fs-ext4`, `crypto-crc32c`). Dependencies
    (modules.dep) and soft dependencies (modules.softdep) are followed in modprobe's order, but all of them:
    a guest has no modprobe that the kernel could call later for the rest. An alias brings every module that
    claims it, so that one brought by a soft dependency may refuse the CPU (ENODEV) without harm. What is
    built into the kernel is left out. Compressed modules come as unpacked files.
    Raises UnknownModule; ModulesUnusable or KernelDamaged where a file is damaged.
    """
    requested = list(names)
    if not requested:
        return ()
    if kernel.modules is None:
        similar = ", because it came without modules (give them: --modules DIR)"
        raise UnknownModule(
            name=kernel.name, module=requested[0], similar=similar, directory=kernel.image.parent
        )
    catalogue = _catalogue(kernel.modules)
    order: dict[str, None] = {}
    for name in requested:
        modules = catalogue.lookup(name)
        if modules is None:
            similar = nearest(_plain(name), [*catalogue.files, *catalogue.builtin])
            raise UnknownModule(name=kernel.name, module=name, similar=similar, directory=kernel.modules)
        for module in modules:
            catalogue.collect(module, order, frozenset())
    files = [catalogue.files[module] for module in order]
    whole_modules(kernel, [kernel.modules / file for file in files])
    return tuple(_loadable(kernel, kernel.modules, file) for file in files)


def module_names(kernel: Kernel) -> tuple[str, ...]:
    """Names of all modules that the kernel brings as files, sorted."""
    return tuple(sorted(_catalogue(kernel.modules).files)) if kernel.modules else ()


def builtin_names(kernel: Kernel) -> tuple[str, ...]:
    """Names of what would be a module, but is built into this kernel; sorted."""
    return tuple(sorted(_catalogue(kernel.modules).builtin)) if kernel.modules else ()


class _Catalogue:
    """What depmod wrote down about one kernel's modules. Names are in the form with underscores."""

    def __init__(self, directory: Path) -> None:
        self.files: dict[str, Path] = {}
        self.needs: dict[str, list[str]] = {}
        for line in _lines(directory / "modules.dep"):
            file, _, needed = line.partition(":")
            name = _plain(Path(file).name)
            self.files[name] = Path(file)
            # modules.dep lists the nearest dependency first; the last one must be loaded first.
            self.needs[name] = [_plain(Path(dependency).name) for dependency in reversed(needed.split())]
        self.builtin = {_plain(Path(line).name) for line in _lines(directory / "modules.builtin")}
        self.aliases = _aliases(directory)
        self.soft = _soft_dependencies(directory)

    def lookup(self, name: str) -> tuple[str, ...] | None:
        """Modules behind a name or an alias; nothing for what is built in; None for what is unknown."""
        plain = _plain(name)
        if plain in self.files:
            return (plain,)
        if plain in self.builtin:
            return ()
        modules = [
            module
            for pattern, module in self.aliases
            if pattern in (name, plain) or fnmatchcase(name, pattern)
        ]
        if not modules:
            return None
        return tuple(dict.fromkeys(module for module in modules if module in self.files))

    def collect(self, module: str, order: dict[str, None], above: frozenset[str]) -> None:
        """Add `module` to `order`, with what must be before it and what shall come after it."""
        if module in order or module in above:
            return
        above |= {module}
        before, after = self.soft.get(module, ((), ()))
        for needed in self.needs[module]:
            self.collect(needed, order, above)
        for soft in before:
            for dependency in self.lookup(soft) or ():
                self.collect(dependency, order, above)
        order[module] = None
        for soft in after:
            for dependency in self.lookup(soft) or ():
                self.collect(dependency, order, above)


@lru_cache(maxsize=16)
def _catalogue(directory: Path) -> _Catalogue:
    return _Catalogue(directory)


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8", errors="replace")
    return [line for line in lines_of(text) if line and not line.startswith("#")]


def _aliases(directory: Path) -> list[tuple[str, str]]:
    """`alias PATTERN MODULE` lines; depmod writes aliases of built-in modules to a binary file only."""
    matches = [re.fullmatch(r"alias (\S+) (\S+)", line) for line in _lines(directory / "modules.alias")]
    listed = [(match[1], _plain(match[2])) for match in matches if match]
    return listed + _builtin_aliases(directory / "modules.builtin.modinfo")


def _builtin_aliases(path: Path) -> list[tuple[str, str]]:
    """`module.alias=PATTERN`, separated by NUL."""
    if not path.exists():
        return []
    matches = (
        re.fullmatch(r"([\w-]+)\.alias=(\S+)", entry.decode("utf-8", "replace"))
        for entry in path.read_bytes().split(b"\0")
    )
    return [(match[2], _plain(match[1])) for match in matches if match]


def _soft_dependencies(directory: Path) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """`softdep MODULE pre: a b post: c` → the names before and after."""
    dependencies: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for line in _lines(directory / "modules.softdep"):
        words = line.split()
        lists: dict[str, list[str]] = {"pre:": [], "post:": []}
        current: list[str] = []
        for word in words[2:]:
            if word in lists:
                current = lists[word]
            else:
                current.append(word)
        before, after = dependencies.get(_plain(words[1]), ((), ()))
        dependencies[_plain(words[1])] = (before + tuple(lists["pre:"]), after + tuple(lists["post:"]))
    return dependencies


def _plain(name: str) -> str:
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        name = name.removesuffix(suffix)
    return name.replace("-", "_")


def _loadable(kernel: Kernel, directory: Path, file: Path) -> Path:
    """The file itself, or its unpacked copy, made on first use beside the entry's other parts."""
    packed = directory / file
    if packed.suffix not in UNPACK:
        return packed
    entry = directory.parents[2]
    target = entry / LOADABLE / file.with_suffix("")
    note = target.with_name(f"{target.name}{NOTE}")
    if not _is_noted(target, note):
        try:
            plain = unpacked(packed)
        except ValueError as error:
            raise ModulesUnusable(
                name=kernel.name, directory=directory, release=kernel.release, problem=error
            ) from error
        with file_system_errors(entry):
            target.parent.mkdir(parents=True, exist_ok=True)
            if note.exists() and not (target.exists() and target.read_bytes() == plain):
                warnings.warn(f"module {target} was damaged: unpacked again from {packed}", stacklevel=2)
            write_atomically(target, plain)
            write_atomically(note, digest_of_bytes(plain))
    return target


def _is_noted(target: Path, note: Path) -> bool:
    """Whether the unpacked file is there, with the digest that was noted of it."""
    try:
        return has_digest(target, note.read_text(encoding="ascii"))
    except (FileNotFoundError, UnicodeDecodeError):
        return False
