"""A configuration that people ship, of which only what can be reached is built.

A distribution builds thousands of modules, of which a guest loads a few. What is built in (`=y`) stays as it
is. A module (`=m`) is built in where guests need it, or where a file that is to be reached is compiled for it
only, together with the modules that it depends on; every other one is off. So a kernel has no modules at all,
and boots as it is. `make localmodconfig` does the same by what is loaded on the machine where it runs.

Which option a file is compiled for, the Makefiles say (Documentation/kbuild/makefiles.rst): the one of its
object, of the object that it is linked into, and of the directories above it.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from ktrial.kernels.config import parse_config
from ktrial.model.kernel import Menus

_GUESTS_USE = frozenset({"CONFIG_X86_PMEM_LEGACY", "CONFIG_BLK_DEV_PMEM", "CONFIG_LIBNVDIMM"})
"""Beside the options of guest.config: persistent memory, for swap and disks."""
_ONLY_SHOWS = frozenset({"CONFIG_EXPERT"})
"""Options of guest.config that make others visible, and do nothing in a guest."""
COMPILED = (".c", ".S", ".rs")
"""How the names of files end that become objects."""
_MODULE = re.compile(r"^(CONFIG_\w+)=m$", re.MULTILINE)
_ASSIGNED = re.compile(
    r"^[ \t]*(?P<target>[\w.-]+)-(?:\$\((?P<option>CONFIG_\w+)\)|[ym]|objs)[ \t]*[+:]?=(?P<objects>[^#\n]*)",
    re.MULTILINE,
)
_CONTINUED = re.compile(r"\\\n")
_NAMES = re.compile(r"(?P<without>!)?\b(?P<name>[A-Z0-9][A-Z0-9_]*)\b(?P<off>\s*=\s*n\b)?")
_MOST_SHOWN = 6
_IN_KERNEL = frozenset({"obj", "lib", "subdir"})
"""What a Makefile calls that which goes into the kernel, or leads to a directory."""


@dataclass(frozen=True)
class Reached:
    """A configuration, and what became of its modules."""

    text: str
    """With every module built in or off."""
    built_in: tuple[str, ...]
    """Modules that are built in, `CONFIG_…`, sorted."""
    off: frozenset[str]
    """The other ones."""
    added: tuple[str, ...]
    """Options that guests need, and that are off in the configuration, sorted."""

    def __str__(self) -> str:
        """In one line: how many modules are built in, which, and how many are off."""
        names = f" ({_some(self.built_in)})" if self.built_in else ""
        added = f"; on for guests: {_some(self.added)}" if self.added else ""
        return f"of its modules {len(self.built_in)} are built in{names}, {len(self.off):,} are off{added}"


def reached(text: str, guest: str, touched: Collection[str], menus: Menus) -> Reached:
    """The configuration `text` with the modules built in that are reached, and those that they depend on.

    `guest`: the text of what guests need; `touched`: options of files that are to be compiled; `menus`: what
    the source says of its options: what it does not say is not followed.
    """
    modules, shipped = set(_MODULE.findall(text)), parse_config(text)
    needed = {name for name, value in parse_config(guest).items() if value == "y"} | _GUESTS_USE
    built_in, left = set[str](), sorted(modules.intersection(needed.union(touched)))
    while left:
        option = left.pop()
        built_in.add(option)
        left += modules.intersection(_depended_on(option, menus)) - built_in
    off = frozenset(modules - built_in)

    def line(match: re.Match[str]) -> str:
        return f"{match[1]}=y" if match[1] in built_in else f"# {match[1]} is not set"

    missing = sorted(name for name in needed - shipped.keys() - _ONLY_SHOWS if name in menus.options)
    ending = "".join(f"{name}=y\n" for name in missing)
    return Reached(_MODULE.sub(line, text) + ending, tuple(sorted(built_in)), off, tuple(missing))


def _some(options: Collection[str]) -> str:
    names = sorted(name.removeprefix("CONFIG_") for name in options)
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return f"{', '.join(names[:_MOST_SHOWN])}{more}"


def without_modules(text: str, but: Collection[str] = ()) -> str:
    """The text of a resolved configuration with what became a module by its own default off; `but` these."""
    return _MODULE.sub(lambda match: match[0] if match[1] in but else f"# {match[1]} is not set", text)


def not_held(
    shipped: Mapping[str, str], resolved: Mapping[str, str], off: Collection[str], menus: Menus
) -> tuple[str, ...]:
    """The options, `CONFIG_…`, that are on in what is shipped and off in what came out of it, although
    nothing that they depend on was a module that is off.

    Only those that the source offers and that somebody can set: every other one follows from these.

    `shipped`: with the modules that were to be built in; `off`: modules, and what ktrial itself takes away.
    """
    lost = {
        name
        for name, value in shipped.items()
        if value == "y" and resolved.get(name, "n") == "n" and name in menus.options
    }
    explained = {*off, *(name for name in lost if _follows(name, resolved, menus))}
    while more := {name for name in lost - explained if not explained.isdisjoint(_around(name, menus))}:
        explained |= more
    return tuple(sorted(lost - explained))


def _follows(option: str, resolved: Mapping[str, str], menus: Menus) -> bool:
    """Whether nobody sets it: it has no prompt, or is one of a choice that is off as a whole."""
    facts = menus.options[option]
    alternatives = {f"CONFIG_{name}" for name in facts.choice}
    return not facts.prompt or (bool(alternatives) and alternatives.isdisjoint(resolved))


def _depended_on(option: str, menus: Menus) -> set[str]:
    """The options that have to be on for it, as far as its dependencies name them without a negation."""
    facts = menus.options.get(option)
    if facts is None:
        return set()
    found_names = _NAMES.finditer(facts.depends)
    # `depends on IPV6 || IPV6=n` only says that it is no part of the kernel where IPV6 is a module.
    off = {match["name"] for match in _NAMES.finditer(facts.depends) if match["without"] or match["off"]}
    return {f"CONFIG_{match['name']}" for match in found_names if match["name"] not in off}


def _around(option: str, menus: Menus) -> set[str]:
    """Every option on which it depends that this one is on: dependencies, who selects it, its choice."""
    facts = menus.options[option]
    texts = (facts.depends, *facts.selected_by, *facts.choice)
    return {f"CONFIG_{match['name']}" for text in texts for match in _NAMES.finditer(text)}


def options_of(paths: Iterable[str], content: Callable[[str], str | None]) -> set[str]:
    """The options, `CONFIG_…`, for which files of the source are compiled.

    `content`: the text of a file, by its path below the source's top; None where there is none.
    """
    makefiles: dict[str, list[_Assignment]] = {}

    def assignments(directory: str) -> list[_Assignment]:
        if directory not in makefiles:
            prefix = f"{directory}/" if directory else ""
            texts = (content(f"{prefix}{name}") for name in ("Kbuild", "Makefile"))
            makefiles[directory] = [entry for text in texts if text for entry in _assignments(text)]
        return makefiles[directory]

    options = set[str]()
    for path in paths:
        file = PurePosixPath(path)
        if file.suffix in COMPILED:
            for above in file.parents:
                directory = "" if str(above) == "." else str(above)
                own = file.relative_to(above)
                options |= _options_in(assignments(directory), str(own.with_suffix(".o")))
                for inner in own.parents:
                    if str(inner) != ".":
                        options |= _options_in(assignments(directory), f"{inner}/")
    return options


@dataclass(frozen=True)
class _Assignment:
    """`ext4-$(CONFIG_EXT4_FS) += inode.o`."""

    target: str
    option: str
    """Empty: whatever is set."""
    objects: frozenset[str]


def _assignments(makefile: str) -> Iterator[_Assignment]:
    for match in _ASSIGNED.finditer(_CONTINUED.sub(" ", makefile)):
        yield _Assignment(match["target"], match["option"] or "", frozenset(match["objects"].split()))


def _options_in(assignments: Collection[_Assignment], name: str) -> set[str]:
    """For what an object, or a directory with its slash, is made by these lines of one Makefile."""
    options, seen, left = set[str](), set[str](), [name]
    while left:
        part = left.pop()
        seen.add(part)
        for line in assignments:
            if part in line.objects:
                options |= {line.option} - {""}
                composed = f"{line.target}.o"
                if line.target not in _IN_KERNEL and composed not in seen:
                    left.append(composed)
    return options
