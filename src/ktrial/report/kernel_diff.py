"""What differs between two kernels, in words and lines: what the terminal, pages and Markdown show."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple, Protocol

from ktrial.format import number_format
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Cell, Column, Emphasis, Field, Kind, Table, own, table
from ktrial.model.attribution import OptionDifference
from ktrial.model.kernel import (
    KernelDifference,
    KernelSide,
    ModuleChange,
    OptionCause,
    OptionChange,
    PatchDifference,
    RenamedOption,
    Respect,
)

ELSEWHERE = "menu not known"
_BETWEEN = " › "
_SHORT_DIGEST = 12


class Fact(NamedTuple):
    """One thing about both kernels."""

    name: str
    before: str
    after: str


class OptionLine(NamedTuple):
    """An option that somebody decided on, or the alternatives of a choice, with what follows from it."""

    text: str
    prompt: str
    followers: tuple[str, ...]
    matters: bool = True
    """False of what is about a driver, a cipher or a file system, or about what an architecture can do."""


class MenuGroup(NamedTuple):
    """The options of one menu."""

    title: str
    lines: tuple[OptionLine, ...]

    @property
    def matters(self) -> bool:
        """Whether one of its lines does."""
        return any(line.matters for line in self.lines)


class Listing(NamedTuple):
    """Names of one kind."""

    title: str
    names: tuple[str, ...]
    matters: bool = False
    """Whether a short form shows all of it, however long."""


def _in_words(respect: Respect, difference: KernelDifference) -> str:
    if respect is Respect.OPTIONS:
        beside = len(difference.set_beside)
        more = f" (and {beside} set against {'its' if beside == 1 else 'their'} default)" if beside else ""
        return number_format.counted(len(difference.decided), "option") + more
    if respect is Respect.PATCHES and difference.patches:
        count = len(difference.patches)
        return f"{count}{number_format.SPACE}{'patch' if count == 1 else 'patches'}"
    return {Respect.FLAGS: "compiler flags", Respect.PATCHES: "the order of patches"}.get(
        respect, respect.value
    )


def in_words(difference: KernelDifference) -> str:
    """`version, 82 options and compiler`."""
    words = [_in_words(respect, difference) for respect in difference.respects]
    *first, last = words or ["nothing that is known"]
    return f"{', '.join(first)} and {last}" if first else last


def sentence(difference: KernelDifference) -> str:
    """`They differ in version, 82 options and compiler.`"""
    if difference.same_content:
        return "No difference: image, modules and configuration are the same to the last bit."
    if difference.nothing:
        limits = "" if not difference.unknown else ", as far as is known"
        return f"No difference but in the image{limits}."
    if difference.respects:
        return f"They differ in {in_words(difference)}."
    parts = [
        number_format.counted(len(changes), word)
        for word, changes in (("option", difference.options), ("module", difference.modules))
        if changes
    ]
    return f"They differ in {' and '.join(parts)} that nobody decided on."


class KernelChange(NamedTuple):
    """A difference, ready to be shown."""

    before: str
    after: str
    sentence: str
    facts: tuple[Fact, ...]
    groups: tuple[MenuGroup, ...]
    folded: tuple[Listing, ...]
    """Options that nobody decided on one by one: the sources offer them or not, the compiler has them."""
    patches: tuple[Listing, ...]
    """A patch, with the files that it touches."""
    modules: tuple[Listing, ...]
    unknown: tuple[str, ...]


def shown(difference: KernelDifference) -> KernelChange:
    """All of it, in the order in which it is read."""
    return KernelChange(
        before=difference.before.name,
        after=difference.after.name,
        sentence=sentence(difference),
        facts=tuple(_facts(difference.before, difference.after)),
        groups=tuple(_groups(difference)),
        folded=tuple(_folded(difference)),
        patches=tuple(_patches(difference)),
        modules=tuple(_modules(difference.modules)),
        unknown=tuple(map(one_line, difference.unknown)),
    )


def _facts(before: KernelSide, after: KernelSide) -> Iterator[Fact]:
    def fact(name: str, old: str, new: str) -> Iterator[Fact]:
        if old or new:
            yield Fact(name, one_line(old) or number_format.NONE, one_line(new) or number_format.NONE)

    yield from fact("release", before.release, after.release)
    yield from fact("version", before.package or before.version, after.package or after.version)
    yield from fact("source", before.source, after.source)
    yield from fact("compiler", before.compiler, after.compiler)
    yield from fact("flags", _variables(before), _variables(after))
    yield from fact("command line", before.command_line, after.command_line)
    yield from fact("digest", before.digest[:_SHORT_DIGEST], after.digest[:_SHORT_DIGEST])


def _variables(side: KernelSide) -> str:
    return " ".join(f"{name}={value}" for name, value in side.flags.items())


def _groups(difference: KernelDifference) -> Iterator[MenuGroup]:
    """By menu: first what every workload runs, then others, drivers and modules; last those whose menu is not
    known, under one title.
    """
    menus: dict[tuple[str, ...], list[OptionChange]] = {}
    for option in (*difference.decided, *difference.set_beside):
        menus.setdefault(option.menu, []).append(option)

    def rank(menu: tuple[str, ...]) -> tuple[bool, bool, int, tuple[str, ...]]:
        minor = all(_kind(option) != "kernel" for option in menus[menu])
        top = menu[0] if menu else ""
        return not menu, minor, _RUN_BY_ALL.index(top) if top in _RUN_BY_ALL else len(_RUN_BY_ALL), menu

    for menu in sorted(menus, key=rank):
        title = _BETWEEN.join(map(one_line, menu)) or ELSEWHERE
        yield MenuGroup(
            title,
            tuple(
                _line(option, difference)._replace(matters=_kind(option) == "kernel")
                for option in menus[menu]
            ),
        )


def _line(root: OptionChange, difference: KernelDifference) -> OptionLine:
    if root.against_default:
        beside = f"set against its default, beside {root.follows.removeprefix('CONFIG_')}"
        return OptionLine(option_change(root), one_line(f"{root.prompt} ({beside})"), ())
    followers = [option for option in difference.following(root.option) if not option.against_default]
    alternatives = [option for option in followers if root.choice and option.choice == root.choice]
    following = tuple(option_change(option) for option in followers if option not in alternatives)
    if not alternatives:
        old = (
            f"{option.removeprefix('CONFIG_')} before it was renamed" if (option := root.renamed_from) else ""
        )
        return OptionLine(
            option_change(root), one_line("; ".join(filter(None, (root.prompt, old)))), following
        )
    members = [root, *alternatives]
    old = ", ".join(_name(option) for option in members if option.before is not None)
    new = ", ".join(_name(option) for option in members if option.after is not None)
    text = f"{old or number_format.NONE} → {new or number_format.NONE}"
    return OptionLine(text, one_line(root.choice), following)


def _name(option: OptionChange) -> str:
    return option.option.removeprefix("CONFIG_")


def _folded(difference: KernelDifference) -> Iterator[Listing]:
    offered = [option for option in difference.options if option.cause is OptionCause.SOURCE]
    if names := tuple(map(_renamed, difference.renamed)):
        yield Listing("renamed: the same option", names, matters=True)
    for kind, title in _OFFERED.items():
        if names := tuple(option_change(option) for option in offered if _kind(option) == kind):
            yield Listing(title, names, matters=kind == "kernel")
    if names := tuple(
        option_change(option) for option in difference.options if option.cause is OptionCause.COMPILER
    ):
        yield Listing("follow from the compiler and its kin", names)
    if names := tuple(option_change(option) for option in difference.options if option.of_command_line):
        yield Listing("of the command line that is built in", names)


_RUN_BY_ALL = (
    "General setup",
    "Processor type and features",
    "Memory Management options",
    "Mitigations for CPU vulnerabilities",
    "Mitigations for speculative execution vulnerabilities",
    "General architecture-dependent options",
    "IO Schedulers",
    "Kernel hacking",
    "Security options",
    "Power management and ACPI options",
    "Networking options",
)
"""Menus of code that most workloads run, as arch/x86/Kconfig and its neighbours call them, in 5.10 to 7.0."""
_OFFERED = {
    "kernel": "one of the two does not offer: new, gone, or its dependencies are not met",
    "drivers": "of drivers, ciphers and file systems one of the two does not offer",
    "capabilities": "that tell what an architecture or driver can do one of the two does not offer",
}

_CAPABILITY = re.compile(
    r"CONFIG_(?:.*_)?(?:ARCH|HAVE|HAS|GENERIC|CC|AS|LD|RUSTC|NEED|NEEDS|WANT|WANTS|USE|SUPPORTS?|CAN|HELPERS?)_.*"
)
"""Names of options without a prompt, which others select (Documentation/kbuild/kconfig-language.rst)."""

_DRIVERS = re.compile(
    r"Device Drivers|.*(?:crypto|cipher|hash|digest|AEAD|compression|file ?system).*", re.IGNORECASE
)


def _kind(option: OptionChange) -> str:
    if _CAPABILITY.fullmatch(option.option) and not option.prompt:
        return "capabilities"
    of_drivers = "m" in {option.before, option.after} or _of_drivers(option.menu)
    return "drivers" if of_drivers or option.option.startswith("CONFIG_CRYPTO_") else "kernel"


def _of_drivers(menu: Iterable[str]) -> bool:
    return any(_DRIVERS.fullmatch(title) for title in menu)


def _renamed(option: RenamedOption) -> str:
    before, after = (name.removeprefix("CONFIG_") for name in (option.before, option.after))
    return f"{before} → {after}"


def _patches(difference: KernelDifference) -> Iterator[Listing]:
    for patch in difference.patches:
        files = patch.files or ("which files it touches is not known any more",)
        yield Listing(_patch(patch, difference), files, matters=True)
    if difference.reordered_patches:
        yield Listing("the same patches, in another order", ())


def _patch(patch: PatchDifference, difference: KernelDifference) -> str:
    owner = difference.before.name if patch.in_first else difference.after.name
    name = one_line(patch.patch.path.rpartition("/")[2])
    return f"{name} ({patch.patch.digest[:_SHORT_DIGEST]}), in {one_line(owner)} only"


def _modules(changes: Iterable[ModuleChange]) -> Iterator[Listing]:
    kinds: dict[tuple[str, str], list[str]] = {}
    for module in changes:
        kinds.setdefault((module.before, module.after), []).append(module.name)
    for (before, after), names in sorted(kinds.items()):
        if before and after:
            title = f"{before} in the first, {after} in the second"
        else:
            title = f"in the {'first' if before else 'second'} only: {before or after}"
        yield Listing(title, tuple(names))


# One option of the kernel's configuration that is not the same in two kernels, in a few characters.

_VALUE_COLUMNS = 24
_LIST = 4
"""A value of so many words between commas is a list: only the words that differ are shown."""


class Changed(Protocol):
    """An option with both of its values."""

    @property
    def option(self) -> str: ...  # noqa: D102
    @property
    def before(self) -> str | None: ...  # noqa: D102
    @property
    def after(self) -> str | None: ...  # noqa: D102


def option_change(option: Changed) -> str:
    """`+LRU_GEN`: set in the second only; `−NR_CPUS=64`: in the first only; `HZ 250 → 1000`."""
    name = option.option.removeprefix("CONFIG_")
    if option.before is not None and option.after is not None:
        if words := _words(option.before, option.after):
            return f"{name} {words}"
        old, new = (shortened(value, _VALUE_COLUMNS * 2) or '""' for value in (option.before, option.after))
        return f"{name} {old} → {new}"
    value = shortened(option.after or option.before or "", _VALUE_COLUMNS)
    sign = number_format.MINUS if option.after is None else "+"
    return f"{sign}{name}" if value == "y" else f"{sign}{name}={value}"


def followers_of(option: OptionDifference) -> str:
    """` (and 3 that follow)`; empty where nothing follows from it."""
    return f" (and {len(option.followers)} that follow)" if option.followers else ""


def _words(before: str, after: str) -> str:
    """`−smack +ipe`; empty where the values are no lists, or differ in the order only."""
    old, new = (value.split(",") for value in (before, after))
    if min(len(old), len(new)) < _LIST:
        return ""
    gone = [f"{number_format.MINUS}{word}" for word in old if word not in new]
    come = [f"+{word}" for word in new if word not in old]
    return shortened(" ".join([*gone, *come]), _VALUE_COLUMNS * 2)


# The table of facts about two kernels, side by side.

_HEADING_COLUMNS = 30
_LONGEST_VALUE = 10_000
"""Character cells: a command line is shown as long as it is."""


def facts_table(change: KernelChange) -> Table:
    """Release, version, source, compiler: muted where both have the same."""
    shown_table = table(_fields(change), change.facts, "sides")
    rows = (
        replace(row, emphasis=Emphasis.MUTED if fact.before == fact.after else Emphasis.PLAIN)
        for row, fact in zip(shown_table.rows, change.facts, strict=True)
    )
    return replace(shown_table, rows=tuple(rows))


def _fields(change: KernelChange) -> tuple[Field[Fact], ...]:
    return (
        Field(Column("what", "what", hidden=True), lambda fact: own(fact.name)),
        Field(_side("before", change.before), lambda fact: Cell(fact.before, fact.before, Kind.CODE)),
        Field(_side("after", change.after), lambda fact: Cell(fact.after, fact.after, Kind.CODE)),
    )


def _side(key: str, kernel: str) -> Column:
    return Column(
        key, kernel, named=True, wraps=True, columns=_LONGEST_VALUE, heading_columns=_HEADING_COLUMNS
    )
