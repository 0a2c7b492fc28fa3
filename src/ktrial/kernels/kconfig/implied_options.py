"""Which options are not the same, and which of them only because others are not: told by Kconfig.

An option follows from others where it could not have stayed as it was: in one of the two configurations
its dependencies, the options that select it, or its lack of a prompt leave no room for the other's value; or
both have their default, and the default is what changed. All of this is the same seen from either side.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ktrial.kernels.kconfig.config import ConfigText
from ktrial.kernels.kconfig.evaluator import Config, MenuPosition, Rules
from ktrial.model.kernel import OptionCause, OptionChange

_TOOLS = re.compile(
    r"CONFIG_("
    r"(CC|GCC|CLANG|LD|LLD|PAHOLE|BINDGEN|TOOLS)_"
    r"(VERSION(_TEXT)?|(IS|HAS|CAN|NO|SUPPORTS?|LLVM)_\w+|IMPLICIT_FALLTHROUGH|\w+_VERSION)"
    r"|(AS|RUSTC)_\w+|GCC\d+_NO_\w+|RUST_IS_AVAILABLE"
    r")"
)
"""Options that say which tools built the kernel and what they can do: nobody sets them."""


@dataclass(frozen=True)
class ConfigSide:
    """One of two configurations, and what is known about it."""

    config: Config
    text: ConfigText = field(default_factory=ConfigText)
    rules: Rules | None = None
    """What its source's Kconfig asks for; None where no source is at hand."""


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
    placed = {name: _placed(one, before, after) for name, one in plain.items()}
    if before.rules and after.rules:
        folding = _Folding(placed, before, after, before.rules, after.rules, same_source)
        return tuple(folding.folded())
    return tuple(_by_name(one, before, after, same_source=same_source) for one in placed.values())


def is_of_tools(option: str) -> bool:
    """Whether the option tells of the compiler and its kin, by its name."""
    return bool(_TOOLS.fullmatch(option))


def _placed(one: OptionChange, before: ConfigSide, after: ConfigSide) -> OptionChange:
    """With its menu, prompt and choice: of the two, those that say the most."""
    places = [
        side.rules.place(one.option) if side.rules else MenuPosition(side.text.menus.get(one.option, ()))
        for side in (before, after)
    ]
    best = max(places, key=lambda place: (bool(place.prompt), len(place.menu), place.menu, place.prompt))
    return one.model_copy(update={"menu": best.menu, "prompt": best.prompt, "choice": best.choice})


def _by_name(one: OptionChange, before: ConfigSide, after: ConfigSide, *, same_source: bool) -> OptionChange:
    if is_of_tools(one.option):
        return one.model_copy(update={"cause": OptionCause.COMPILER})
    offered = all(side.text.mentions(one.option) for side in (before, after) if side.text.menus)
    return one if offered or same_source else one.model_copy(update={"cause": OptionCause.SOURCE})


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
        for name, one in self.changes.items():
            if root := self._obvious(one):
                self.roots[name] = root
            else:
                waiting[name] = self._reasons(name)
        self._choose_one_of_each_choice()
        self._resolve(waiting)
        for name, one in self.changes.items():
            root = self.roots[name]
            follows = root.option if root.cause is OptionCause.OPTION else ""
            by_hand = bool(follows) and self._set_by_hand(one)
            yield one.model_copy(update={"cause": root.cause, "follows": follows, "against_default": by_hand})

    def _set_by_hand(self, one: OptionChange) -> bool:
        """Whether it is set in one of the two only, and there against its own default."""
        sides = (one.before, self.old, self.before), (one.after, self.new, self.after)
        there = [(value, rules, side) for value, rules, side in sides if value not in {None, "n", ""}]
        if len(there) != 1:
            return False
        ((value, rules, side),) = there
        return rules.against_default(one.option, value, side.config)

    def _obvious(self, one: OptionChange) -> _Root | None:
        """The root of an option that follows from no other; None for one that does."""
        name = one.option
        if is_of_tools(name):
            return _Root(OptionCause.COMPILER)
        known = self.old.knows(name), self.new.knows(name)
        if not all(known):
            return _Root(OptionCause.SOURCE if any(known) or not self.same_source else OptionCause.OWN)
        return None if self._could_not_stay(one) else _Root(OptionCause.OWN)

    def _could_not_stay(self, one: OptionChange) -> bool:
        old, new = self.before.config, self.after.config
        if not self.new.allows(one.option, one.before, new) or not self.old.allows(
            one.option, one.after, old
        ):
            return True
        by_default = (self.old.default(one.option, old), self.new.default(one.option, new))
        return not one.choice and (one.before, one.after) == by_default

    def _reasons(self, name: str) -> frozenset[str]:
        configs = self.before.config, self.after.config
        options = self.old.reasons(name, *configs) | self.new.reasons(name, *configs)
        return options & self.changes.keys()

    def _choose_one_of_each_choice(self) -> None:
        """Of the alternatives that changed places, the first by name stands for the choice."""
        for name in [name for name, root in self.roots.items() if root.cause is OptionCause.OWN]:
            others = self.old.alternatives(name) | self.new.alternatives(name)
            first = min(
                (one for one in others if self.roots.get(one) == _Root(OptionCause.OWN)), default=name
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
        known = [(self.roots[name], name) for name in reasons if name in self.roots]
        options = sorted(
            root.option or name for root, name in known if root.cause in {OptionCause.OWN, OptionCause.OPTION}
        )
        if options:
            return _Root(OptionCause.OPTION, options[0])
        causes = {root.cause for root, _ in known}
        return next(
            (_Root(cause) for cause in (OptionCause.SOURCE, OptionCause.COMPILER) if cause in causes), None
        )
