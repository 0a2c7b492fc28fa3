"""What a source's Kconfig asks for, evaluated over configurations that are there already.

kconfiglib reads the files. The values of options come from the configurations themselves: what kconfiglib
would work out depends on the compiler of this machine, not on the one that built the kernel.
"""

from collections import ChainMap
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

import kconfiglib

Config = MutableMapping[str, str]
"""Options that are set, `CONFIG_SMP` → `y`; texts without their quotes."""

_N, _M, _Y = 0, 1, 2
_TRISTATE = {"n": _N, "m": _M, "y": _Y}
_LETTERS = "nmy"
_SWITCHES = (kconfiglib.BOOL, kconfiglib.TRISTATE)
_NUMBERS = {kconfiglib.INT: 10, kconfiglib.HEX: 16}
_PREFIX = "CONFIG_"


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
        self._symbols: dict[str, Any] = {_PREFIX + one.name: one for one in kconfig.unique_defined_syms}

    def knows(self, option: str) -> bool:
        """Whether the source defines the option."""
        return option in self._symbols

    def place(self, option: str) -> MenuPosition:
        """Where it is shown: the first definition with a prompt, else the first."""
        symbol = self._symbols.get(option)
        if symbol is None:
            return MenuPosition()
        node = next((one for one in symbol.nodes if one.prompt), symbol.nodes[0])
        choice = symbol.choice.nodes[0].prompt if symbol.choice else None
        prompt = node.prompt[0] if node.prompt else ""
        return MenuPosition(tuple(self._menus(node))[::-1], prompt, choice[0] if choice else "")

    def alternatives(self, option: str) -> frozenset[str]:
        """All options of the choice that it belongs to; none where it belongs to none."""
        symbol = self._symbols.get(option)
        if symbol is None or symbol.choice is None:
            return frozenset()
        return frozenset(_PREFIX + one.name for one in symbol.choice.syms)

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
        wanted, lowest = _TRISTATE.get(value or "n", _N), _value(symbol.rev_dep, config)
        if highest == _N:
            return _LETTERS[wanted] == self._automatic(symbol, config)
        if symbol.orig_type is kconfiglib.BOOL:
            lowest, highest = _promoted(lowest), _promoted(highest)
        return lowest <= wanted <= max(lowest, highest)

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
        mentioned = {name for one in expressions for name in _names(one)} - {option}
        differing = frozenset(one for one in mentioned if before.get(one) != after.get(one))
        decisive = frozenset(
            one for one in differing if any(_matters(each, one, before, after) for each in expressions)
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
            return next((_text(one, config) for one in defaults), "")
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


def _promoted(value: int) -> int:
    """A bool has no m: it is taken for y."""
    return _Y if value else _N


def _value(expression: Any, config: Config) -> int:
    """What an expression of kconfiglib's (see its `expr_value`) is: 0, 1 or 2 for n, m, y."""
    if expression.__class__ is not tuple:
        return _tristate(expression, config)
    operator, first, *rest = expression
    if operator is kconfiglib.AND:
        return min(_value(first, config), _value(rest[0], config))
    if operator is kconfiglib.OR:
        return max(_value(first, config), _value(rest[0], config))
    if operator is kconfiglib.NOT:
        return _Y - _value(first, config)
    return _Y if _related(operator, first, rest[0], config) else _N


def _tristate(item: Any, config: Config) -> int:
    if item.__class__ is kconfiglib.Choice:
        return max((_tristate(one, config) for one in item.syms), default=_N)
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
    left, right = (_text(one, config) for one in (first, second))
    one, other = _number(first, left), _number(second, right)
    as_texts = (left > right) - (left < right)
    order = as_texts if one is None or other is None else one - other
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
            yield from (_PREFIX + one.name for one in item.syms)
        elif not item.is_constant:
            yield _PREFIX + item.name


def _matters(expression: Any, option: str, before: Config, after: Config) -> bool:
    """Whether the expression has another value where this one option has the other configuration's value."""
    for here, there in ((before, after), (after, before)):
        swapped = ChainMap({option: there.get(option, "n")}, here)
        if _value(expression, here) != _value(expression, swapped):
            return True
    return False
