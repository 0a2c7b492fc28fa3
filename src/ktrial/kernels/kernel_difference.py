"""Two kernels side by side: who they are, their options, their modules. Nothing is fetched or booted."""

import os
import re
import tempfile
import threading
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import kconfiglib

from ktrial.kernels import Progress, silent
from ktrial.kernels.config import ConfigText, config_of, read
from ktrial.kernels.errors import SourceUnusable
from ktrial.kernels.kconfig_reader import MenuReader
from ktrial.kernels.modules import builtin_names, module_names
from ktrial.model.kernel import (
    Build,
    Kernel,
    KernelSide,
    ModuleChange,
    OptionCause,
    OptionChange,
    RenamedOption,
)

if TYPE_CHECKING:
    from ktrial.kernels.build.patches import BuildSource

MODULE, BUILT_IN = "module", "built in"
_KERNEL_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*(?:-rc\d+)?")
_BUILD_DETAILS = re.compile(r" \(.*\)$")
"""What a build's version says beside the commit."""


def side_of(kernel: Kernel) -> KernelSide:
    """Who a kernel is, by its record and its configuration."""
    origin, build, options = kernel.origin, kernel.origin.build, config_of(kernel)
    commit = _BUILD_DETAILS.sub("", origin.version)
    packaged = origin.version if origin.provider not in {"build", "source"} else ""
    number = _KERNEL_VERSION.match(packaged.partition(":")[2] or packaged or kernel.release)
    return KernelSide(
        name=kernel.name,
        release=kernel.release,
        version=number[0] if number else kernel.release,
        package=packaged,
        source=" ".join(filter(None, (build.source if build else origin.source, commit))),
        digest=kernel.digest,
        compiler=options.get("CONFIG_CC_VERSION_TEXT", origin.compiler),
        flags=build.make if build else {},
        patches=build.patches if build else (),
        command_line=options.get("CONFIG_CMDLINE", ""),
        built=build is not None,
    )


# What a source's Kconfig asks for, evaluated over configurations that are there already.
#
# kconfiglib reads the files. The values of options come from the configurations themselves: what kconfiglib
# would work out depends on the compiler of this machine, not on the one that built the kernel.

Config = MutableMapping[str, str]
"""Options that are set, `CONFIG_SMP` → `y`; texts without their quotes."""


@dataclass(frozen=True)
class MenuPosition:
    """Where `menuconfig` shows an option."""

    menu: tuple[str, ...] = ()
    prompt: str = ""
    choice: str = ""


class Rules:
    """The options of one source."""

    def __init__(self, kconfig: kconfiglib.Kconfig) -> None:
        self._kconfig = kconfig
        self._symbols: dict[str, Any] = {
            _PREFIX + symbol.name: symbol for symbol in kconfig.unique_defined_syms
        }

    def knows(self, option: str) -> bool:
        """Whether the source defines the option."""
        return option in self._symbols

    def place(self, option: str) -> MenuPosition:
        """Where it is shown: the first definition with a prompt, else the first."""
        symbol = self._symbols.get(option)
        if symbol is None:
            return MenuPosition()
        node = next((entry for entry in symbol.nodes if entry.prompt), symbol.nodes[0])
        choice = symbol.choice.nodes[0].prompt if symbol.choice else None
        prompt = node.prompt[0] if node.prompt else ""
        return MenuPosition(tuple(self._menus(node))[::-1], prompt, choice[0] if choice else "")

    def alternatives(self, option: str) -> frozenset[str]:
        """All options of the choice that it belongs to; none where it belongs to none."""
        symbol = self._symbols.get(option)
        if symbol is None or symbol.choice is None:
            return frozenset()
        return frozenset(_PREFIX + alternative.name for alternative in symbol.choice.syms)

    def allows(self, option: str, value: str | None, config: Config) -> bool:
        """Whether the option could have had the value, were all others as in `config`.

        What is not visible has the value that its defaults, and the options that select it, give it.
        """
        symbol = self._symbols.get(option)
        if symbol is None:
            return value is None
        highest = self._highest(symbol, config)
        if symbol.orig_type not in _SWITCHES:
            return highest > _N or (value or "") == self._automatic(symbol, config)
        level, lowest = _TRISTATE.get(value or "n", _N), _value(symbol.rev_dep, config)
        if highest == _N:
            return _LETTERS[level] == self._automatic(symbol, config)
        if symbol.orig_type is kconfiglib.BOOL:
            lowest, highest = _promoted(lowest), _promoted(highest)
        return lowest <= level <= max(lowest, highest)

    def default(self, option: str, config: Config) -> str | None:
        """The value that it has where nobody sets it, were all others as in `config`; None: not set."""
        symbol = self._symbols.get(option)
        value = self._automatic(symbol, config) if symbol else ""
        return None if value in {"n", ""} else value

    def against_default(self, option: str, value: str | None, config: Config) -> bool:
        """Whether somebody must have set it in `config`: it is shown there, and its default is another value.

        Not told of alternatives of a choice: one of them is always set.
        """
        symbol = self._symbols.get(option)
        if symbol is None or symbol.choice or self._highest(symbol, config) == _N:
            return False
        return (value or "n") != (self.default(option, config) or "n")

    def reasons(self, option: str, before: Config, after: Config) -> frozenset[str]:
        """Options that decide its value or its bounds, and differ between the two in a way that matters.

        Where no one of them does alone, all that differ.
        """
        symbol = self._symbols.get(option)
        if symbol is None:
            return frozenset()
        expressions = list(self._expressions(symbol))
        mentioned = {name for expression in expressions for name in _names(expression)} - {option}
        differing = frozenset(name for name in mentioned if before.get(name) != after.get(name))
        decisive = frozenset(
            name
            for name in differing
            if any(_matters(expression, name, before, after) for expression in expressions)
        )
        return decisive or differing

    def _menus(self, node: Any) -> Iterator[str]:
        """From the inside out."""
        while (node := node.parent) is not None and node is not self._kconfig.top_node:
            if node.prompt and node.item.__class__ is not kconfiglib.Choice:
                yield node.prompt[0]

    def _highest(self, symbol: Any, config: Config) -> int:
        """The highest value that a person may give it; 0 where it is not shown."""
        shown = [_value(node.prompt[1], config) for node in symbol.nodes if node.prompt]
        return max(shown, default=_N)

    def _automatic(self, symbol: Any, config: Config) -> str:
        if symbol.orig_type not in _SWITCHES:
            defaults = (default for default, condition in symbol.defaults if _value(condition, config))
            return next((_text(default, config) for default in defaults), "")
        value = _N
        for default, condition in symbol.defaults:
            if met := _value(condition, config):
                value = min(met, _value(default, config))
                break
        if implied := _value(symbol.weak_rev_dep, config):
            value = max(value, min(implied, _value(symbol.direct_dep, config)))
        value = max(value, _value(symbol.rev_dep, config))
        return _LETTERS[_promoted(value) if symbol.orig_type is kconfiglib.BOOL else value]

    def _expressions(self, symbol: Any) -> Iterator[Any]:
        yield symbol.direct_dep
        yield symbol.rev_dep
        yield symbol.weak_rev_dep
        for node in symbol.nodes:
            if node.prompt:
                yield node.prompt[1]
        for default, condition in symbol.defaults:
            yield default
            yield condition


@dataclass(frozen=True)
class ConfigSide:
    """One of two configurations, and what is known about it."""

    config: Config
    text: ConfigText = field(default_factory=ConfigText)
    rules: Rules | None = None
    """What its source's Kconfig asks for; None where no source is at hand."""


def known_of(kernel: Kernel, rules: Rules | None) -> ConfigSide | None:
    """A kernel's options, with what is known about them; None where its configuration is not known."""
    if kernel.config is None:
        return None
    config = config_of(kernel)
    text = kernel.config.read_text(encoding="utf-8", errors="replace")
    return ConfigSide(config, read(text), rules) if config else None


def modules_known(kernel: Kernel) -> bool:
    """Whether its modules came with it, and depmod's lists with them."""
    return bool(_modules(kernel))


def changed_modules(before: Kernel, after: Kernel) -> tuple[ModuleChange, ...]:
    """Modules that only one of the two has, or that one of them has built in; by name."""
    old, new = _modules(before), _modules(after)
    return tuple(
        ModuleChange(name=name, before=old.get(name, ""), after=new.get(name, ""))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def _modules(kernel: Kernel) -> dict[str, str]:
    files = dict.fromkeys(module_names(kernel), MODULE)
    return dict.fromkeys(builtin_names(kernel), BUILT_IN) | files


_rules: dict[str, Rules] = {}
"""By the digest of all the source's files: reading takes seconds, and two builds mostly share one source."""
_MOST_KEPT = 4


def rules_of_kernel(kernel: Kernel, progress: Progress = silent) -> Rules | None:
    """What Kconfig asks for in the kernel's own source; None where that is not known.

    Raises SourceUnusable, and what obtaining the source raises.
    """
    if kernel.origin.build is not None:
        return rules_of_build(kernel.origin.build, progress)
    if kernel.origin.provider == "source" and Path(kernel.origin.source).is_dir():
        return rules_of_build(Build(source=kernel.origin.source), progress)
    return None


def rules_of_source(source: str, progress: Progress = silent) -> Rules:
    """What Kconfig asks for in a source that a user names, relative to the directory that we are in.

    Raises SourceUnusable, NotASource, KernelError, FetchFailed and other KernelErrors.
    """
    from ktrial.kernels.build.requests import requested  # what builds kernels takes its time to load

    return rules_of_build(requested(source, directory=Path.cwd()), progress)


def rules_of_build(spec: Build, progress: Progress = silent) -> Rules:
    """What Kconfig asks for in the source of a build, with its patches.

    Raises what `rules_of_source` raises, BadPatch, PatchNotApplied.
    """
    from ktrial.kernels.build.patches import source_of

    with tempfile.TemporaryDirectory(prefix="ktrial-kconfig-") as scratch:
        patching, files = Path(scratch) / "patching", Path(scratch) / "files"
        patching.mkdir()
        source = source_of(spec, patching, progress)
        key = source.manifest.digest
        if key not in _rules:
            progress("reading Kconfig")
            rules = rules_in(_directory(source, files))
            while len(_rules) >= _MOST_KEPT:
                del _rules[next(iter(_rules))]
            _rules[key] = rules
        return _rules[key]


def _directory(source: "BuildSource", files: Path) -> Path:
    """Where its Kconfig files lie: in the cache's own copy, or in `files`, made for it."""
    if source.snapshot.unchanging and not source.overlay.files:
        return source.snapshot.directory
    paths = (path for path in source.manifest.files if PurePosixPath(path).name.startswith("Kconfig"))
    files.mkdir()
    source.write(files, paths, rewrite=False)
    return files


# Which options are not the same, and which of them only because others are not: told by Kconfig.
#
# An option follows from others where it could not have stayed as it was: in one of the two configurations
# its dependencies, the options that select it, or its lack of a prompt leave no room for the other's value;
# or both have their default, and the default is what changed. All of this is the same seen from either
# side.

_TOOLS = re.compile(
    r"CONFIG_("
    r"(CC|GCC|CLANG|LD|LLD|PAHOLE|BINDGEN|TOOLS)_"
    r"(VERSION(_TEXT)?|(IS|HAS|CAN|NO|SUPPORTS?|LLVM)_\w+|IMPLICIT_FALLTHROUGH|\w+_VERSION)"
    r"|(AS|RUSTC)_\w+|GCC\d+_NO_\w+|RUST_IS_AVAILABLE"
    r")"
)
"""Options that say which tools built the kernel and what they can do: nobody sets them."""


def changed_options(before: ConfigSide, after: ConfigSide, *, same_source: bool) -> tuple[OptionChange, ...]:
    """Every option that is not the same, by name, with why it is not.

    Without rules for both of them nothing is folded, apart from what names alone tell. `same_source`: both
    come from one source, so that none of the options is offered by one of the two only.
    """
    names = sorted(before.config.keys() | after.config.keys())
    plain = {
        name: OptionChange(option=name, before=before.config.get(name), after=after.config.get(name))
        for name in names
        if before.config.get(name) != after.config.get(name)
    }
    placed = {name: _placed(change, before, after) for name, change in plain.items()}
    if before.rules and after.rules:
        folding = _Folding(placed, before, after, before.rules, after.rules, same_source)
        return tuple(folding.folded())
    return tuple(_by_name(change, before, after, same_source=same_source) for change in placed.values())


def is_of_tools(option: str) -> bool:
    """Whether the option tells of the compiler and its kin, by its name."""
    return bool(_TOOLS.fullmatch(option))


def _placed(change: OptionChange, before: ConfigSide, after: ConfigSide) -> OptionChange:
    """With its menu, prompt and choice: of the two, those that say the most."""
    places = [
        side.rules.place(change.option)
        if side.rules
        else MenuPosition(side.text.menus.get(change.option, ()))
        for side in (before, after)
    ]
    best = max(places, key=lambda place: (bool(place.prompt), len(place.menu), place.menu, place.prompt))
    return change.model_copy(update={"menu": best.menu, "prompt": best.prompt, "choice": best.choice})


def _by_name(
    change: OptionChange, before: ConfigSide, after: ConfigSide, *, same_source: bool
) -> OptionChange:
    if is_of_tools(change.option):
        return change.model_copy(update={"cause": OptionCause.COMPILER})
    offered = all(side.text.mentions(change.option) for side in (before, after) if side.text.menus)
    return change if offered or same_source else change.model_copy(update={"cause": OptionCause.SOURCE})


@dataclass(frozen=True)
class _Root:
    cause: OptionCause
    option: str = ""
    """With the cause `option`."""


@dataclass
class _Folding:
    changes: Mapping[str, OptionChange]
    before: ConfigSide
    after: ConfigSide
    old: Rules
    new: Rules
    same_source: bool
    roots: dict[str, _Root] = field(default_factory=dict)

    def folded(self) -> Iterable[OptionChange]:
        """Every change with its cause."""
        waiting: dict[str, frozenset[str]] = {}
        for name, change in self.changes.items():
            if root := self._obvious(change):
                self.roots[name] = root
            else:
                waiting[name] = self._reasons(name)
        self._choose_one_of_each_choice()
        self._resolve(waiting)
        for name, change in self.changes.items():
            root = self.roots[name]
            follows = root.option if root.cause is OptionCause.OPTION else ""
            by_hand = bool(follows) and self._set_by_hand(change)
            yield change.model_copy(
                update={"cause": root.cause, "follows": follows, "against_default": by_hand}
            )

    def _set_by_hand(self, change: OptionChange) -> bool:
        """Whether it is set in one of the two only, and there against its own default."""
        sides = (change.before, self.old, self.before), (change.after, self.new, self.after)
        set_sides = [(value, rules, side) for value, rules, side in sides if value not in {None, "n", ""}]
        if len(set_sides) != 1:
            return False
        ((value, rules, side),) = set_sides
        return rules.against_default(change.option, value, side.config)

    def _obvious(self, change: OptionChange) -> _Root | None:
        """The root of an option that follows from no other; None for one that does."""
        name = change.option
        if is_of_tools(name):
            return _Root(OptionCause.COMPILER)
        defined = self.old.knows(name), self.new.knows(name)
        if not all(defined):
            return _Root(OptionCause.SOURCE if any(defined) or not self.same_source else OptionCause.OWN)
        return None if self._could_not_stay(change) else _Root(OptionCause.OWN)

    def _could_not_stay(self, change: OptionChange) -> bool:
        old, new = self.before.config, self.after.config
        if not self.new.allows(change.option, change.before, new) or not self.old.allows(
            change.option, change.after, old
        ):
            return True
        by_default = (self.old.default(change.option, old), self.new.default(change.option, new))
        return not change.choice and (change.before, change.after) == by_default

    def _reasons(self, name: str) -> frozenset[str]:
        configs = self.before.config, self.after.config
        options = self.old.reasons(name, *configs) | self.new.reasons(name, *configs)
        return options & self.changes.keys()

    def _choose_one_of_each_choice(self) -> None:
        """Of the alternatives that changed places, the first by name stands for the choice."""
        for name in [name for name, root in self.roots.items() if root.cause is OptionCause.OWN]:
            alternatives = self.old.alternatives(name) | self.new.alternatives(name)
            first = min(
                (option for option in alternatives if self.roots.get(option) == _Root(OptionCause.OWN)),
                default=name,
            )
            if first < name:
                self.roots[name] = _Root(OptionCause.OPTION, first)

    def _resolve(self, waiting: dict[str, frozenset[str]]) -> None:
        """Round by round: what follows from something whose root is known has that root."""
        while waiting:
            resolved = {
                name: root for name, reasons in waiting.items() if (root := self._best(reasons)) is not None
            }
            if not resolved:
                # Nothing that is left follows from anything known: another definition, or a circle.
                first = min(waiting)
                resolved = {first: self._without_reason(first, waiting[first])}
            self.roots |= resolved
            waiting = {name: reasons for name, reasons in waiting.items() if name not in resolved}

    def _without_reason(self, name: str, reasons: frozenset[str]) -> _Root:
        if reasons:
            return _Root(OptionCause.OWN)
        if not self.same_source:
            return _Root(OptionCause.SOURCE)
        prompt = self.changes[name].prompt
        return _Root(OptionCause.OWN if prompt else OptionCause.COMPILER)

    def _best(self, reasons: frozenset[str]) -> _Root | None:
        """Options before sources before tools, and the first by name."""
        roots = [(self.roots[name], name) for name in reasons if name in self.roots]
        options = sorted(
            root.option or name for root, name in roots if root.cause in {OptionCause.OWN, OptionCause.OPTION}
        )
        if options:
            return _Root(OptionCause.OPTION, options[0])
        causes = {root.cause for root, _ in roots}
        return next(
            (_Root(cause) for cause in (OptionCause.SOURCE, OptionCause.COMPILER) if cause in causes), None
        )


# Options that the kernel has renamed: one option under two names is no difference.
#
# Kconfig itself can say so only since 6.18 (the keyword `transitional`, f9afce4f32e9). So there is a table,
# with the commit that renamed each.

_RENAMED = {
    "UNWINDER_ORC": ("ORC_UNWINDER", "11af847446ed"),  # 4.15
    "UNWINDER_FRAME_POINTER": ("FRAME_POINTER_UNWINDER", "11af847446ed"),
    "UNWINDER_GUESS": ("GUESS_UNWINDER", "11af847446ed"),
    "STACKPROTECTOR": ("CC_STACKPROTECTOR", "050e9baa9dc9"),  # 4.18
    "STACKPROTECTOR_STRONG": ("CC_STACKPROTECTOR_STRONG", "050e9baa9dc9"),
    "CPU_MITIGATIONS": ("SPECULATION_MITIGATIONS", "fe42754b94a4"),  # 6.9
    "MITIGATION_GDS_FORCE": ("GDS_FORCE_MITIGATION", "be83e809ca67"),
    "MITIGATION_IBPB_ENTRY": ("CPU_IBPB_ENTRY", "e0b8fcfa3cfa"),
    "MITIGATION_CALL_DEPTH_TRACKING": ("CALL_DEPTH_TRACKING", "5fa31af31e72"),
    "MITIGATION_PAGE_TABLE_ISOLATION": ("PAGE_TABLE_ISOLATION", "ea4654e08853"),
    "MITIGATION_RETPOLINE": ("RETPOLINE", "aefb2f2e619b"),
    "MITIGATION_SLS": ("SLS", "7b75782ffd82"),
    "MITIGATION_UNRET_ENTRY": ("CPU_UNRET_ENTRY", "ac61d43983a4"),
    "MITIGATION_IBRS_ENTRY": ("CPU_IBRS_ENTRY", "1da8d2172ce5"),
    "MITIGATION_SRSO": ("CPU_SRSO", "a033eec9a06c"),
    "MITIGATION_RETHUNK": ("RETHUNK", "0911b8c52c4d"),
    "KSTACK_ERASE": ("GCC_PLUGIN_STACKLEAK", "57fbad15c2ee"),  # 6.17
    "KSTACK_ERASE_TRACK_MIN_SIZE": ("STACKLEAK_TRACK_MIN_SIZE", "57fbad15c2ee"),
    "KSTACK_ERASE_METRICS": ("STACKLEAK_METRICS", "57fbad15c2ee"),
    "KSTACK_ERASE_RUNTIME_DISABLE": ("STACKLEAK_RUNTIME_DISABLE", "57fbad15c2ee"),
    "CFI": ("CFI_CLANG", "23ef9d439769"),  # 6.18
}
"""New name → old name, and the commit (with the release that it came in, where that changes)."""


@dataclass(frozen=True)
class Paired:
    """Two configurations with each renamed option under its newer name, in both."""

    before: ConfigSide
    after: ConfigSide
    renamed: tuple[RenamedOption, ...]
    """Those that both have, by their newer names."""


def paired(before: ConfigSide, after: ConfigSide) -> Paired:
    """Give renamed options one name, where one of the two offers the old one, and the other the new."""
    forward, backward = _renames(before, after), _renames(after, before)
    pairs = [
        RenamedOption(
            before=old if new in forward else new,
            after=new if new in forward else old,
            forward=new in forward,
            commit=_RENAMED[new.removeprefix("CONFIG_")][1],
        )
        for new, old in sorted({**forward, **backward}.items())
    ]
    return Paired(_under(forward, before), _under(backward, after), tuple(pairs))


def _renames(old: ConfigSide, new: ConfigSide) -> dict[str, str]:
    """Newer name → older one, of options that one side offers by the older name, the other by the newer."""
    return {
        f"CONFIG_{newer}": f"CONFIG_{older}"
        for newer, (older, _) in _RENAMED.items()
        if _offers(old, f"CONFIG_{older}")
        and not _offers(old, f"CONFIG_{newer}")
        and _offers(new, f"CONFIG_{newer}")
        and not _offers(new, f"CONFIG_{older}")
    }


def _offers(side: ConfigSide, option: str) -> bool:
    return option in side.config or side.text.mentions(option)


def _under(names: Mapping[str, str], side: ConfigSide) -> ConfigSide:
    newer = {old: new for new, old in names.items()}
    menus = {newer.get(option, option): menu for option, menu in side.text.menus.items()}
    config = {newer.get(option, option): value for option, value in side.config.items()}
    return replace(side, config=config, text=replace(side.text, menus=menus))


_N, _M, _Y = 0, 1, 2
_TRISTATE = {"n": _N, "m": _M, "y": _Y}
_LETTERS = "nmy"
_SWITCHES = (kconfiglib.BOOL, kconfiglib.TRISTATE)
_NUMBERS = {kconfiglib.INT: 10, kconfiglib.HEX: 16}
_PREFIX = "CONFIG_"


def _promoted(value: int) -> int:
    """A bool has no m: it is taken for y."""
    return _Y if value else _N


def _value(expression: Any, config: Config) -> int:
    """What an expression of kconfiglib's (see its `expr_value`) is: 0, 1 or 2 for n, m, y."""
    if expression.__class__ is not tuple:
        return _tristate(expression, config)
    operator, first, *remainder = expression
    if operator is kconfiglib.AND:
        return min(_value(first, config), _value(remainder[0], config))
    if operator is kconfiglib.OR:
        return max(_value(first, config), _value(remainder[0], config))
    if operator is kconfiglib.NOT:
        return _Y - _value(first, config)
    return _Y if _related(operator, first, remainder[0], config) else _N


def _tristate(item: Any, config: Config) -> int:
    if item.__class__ is kconfiglib.Choice:
        return max((_tristate(alternative, config) for alternative in item.syms), default=_N)
    if item.is_constant:
        return _TRISTATE.get(item.name, _N)
    return _TRISTATE.get(config.get(_PREFIX + item.name, "n"), _N)


def _text(symbol: Any, config: Config) -> str:
    """A symbol's value as text. One that nobody defines has its name: `FOO = bar` compares with `bar`."""
    if symbol.__class__ is tuple:
        return _LETTERS[_value(symbol, config)]
    if symbol.is_constant or symbol.orig_type is kconfiglib.UNKNOWN:
        return str(symbol.name)
    return config.get(_PREFIX + symbol.name, "n" if symbol.orig_type in _SWITCHES else "")


def _related(operator: int, first: Any, second: Any, config: Config) -> bool:
    left, right = _text(first, config), _text(second, config)
    left_value, right_value = _number(first, left), _number(second, right)
    as_texts = (left > right) - (left < right)
    order = as_texts if left_value is None or right_value is None else left_value - right_value
    return {
        kconfiglib.EQUAL: order == 0,
        kconfiglib.UNEQUAL: order != 0,
        kconfiglib.LESS: order < 0,
        kconfiglib.LESS_EQUAL: order <= 0,
        kconfiglib.GREATER: order > 0,
        kconfiglib.GREATER_EQUAL: order >= 0,
    }[operator]


def _number(symbol: Any, text: str) -> int | None:
    try:
        return int(text, _NUMBERS.get(symbol.orig_type, 0))
    except ValueError:
        return None


def _names(expression: Any) -> Iterator[str]:
    for item in kconfiglib.expr_items(expression):
        if item.__class__ is kconfiglib.Choice:
            yield from (_PREFIX + symbol.name for symbol in item.syms)
        elif not item.is_constant:
            yield _PREFIX + item.name


def _matters(expression: Any, option: str, before: Config, after: Config) -> bool:
    """Whether the expression has another value where this one option has the other configuration's value."""
    for config, counterpart in ((before, after), (after, before)):
        swapped = ChainMap({option: counterpart.get(option, "n")}, config)
        if _value(expression, config) != _value(expression, swapped):
            return True
    return False


# Read the Kconfig files of a kernel's source with kconfiglib. Nothing of the source is run.
#
# Kconfig asks the compiler what it can do, by shell commands (scripts/Kconfig.include). Here all of them
# are taken to say yes: what matters is which options depend on which, not what this machine's compiler can
# do.

_ENVIRONMENT = {"ARCH": "x86", "SRCARCH": "x86", "KERNELVERSION": "", "KCONFIG_FUNCTIONS": __name__}
_lock = threading.Lock()
"""kconfiglib takes its surroundings from the environment of the process."""


def rules_in(directory: Path) -> Rules:
    """What Kconfig asks for in the source in `directory`, for x86. Takes some two seconds for Linux.

    Raises SourceUnusable where kconfiglib cannot read it.
    """
    directory = directory.resolve()
    with _lock, _environment(directory):
        try:
            return Rules(MenuReader("Kconfig", warn=False))
        except (kconfiglib.KconfigError, OSError, RecursionError, UnicodeError) as error:
            raise SourceUnusable(
                source=directory,
                problem=f"its Kconfig files cannot be read: {error}",
                advice="without them nobody can tell which options follow from others",
            ) from None


@contextmanager
def _environment(directory: Path) -> Iterator[None]:
    variables = {**_ENVIRONMENT, "srctree": str(directory)}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _yes(kconfig: Any, name: str, command: str) -> str:
    return "y"


def _nothing(kconfig: Any, name: str, *arguments: str) -> str:
    return ""


functions = {"shell": (_yes, 1, 1), "error-if": (_nothing, 2, 2), "warning-if": (_nothing, 2, 2)}
"""kconfiglib's name for what takes the place of Kconfig's own macros."""
