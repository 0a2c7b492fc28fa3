"""Read a source's Kconfig with kconfiglib, and print what it says as JSON. A program of its own:

    python -m ktrial.kernels.kconfig_reader SOURCE [CONFIG OPTION]

kconfiglib takes what Kconfig asks about (compiler, architecture) from the environment of the process.
With a .config and an option, that option alone, with what holds it back there.
"""

import io
import json
import re
import sys
from collections import defaultdict
from typing import IO, Any

import kconfiglib

_NEWER = (
    # Linux 5.13 (6dd85ff178cd): `modules` for what was `option modules`.
    (re.compile(r"^([ \t]+)modules[ \t]*$", re.MULTILINE), r"\1option modules"),
    # Linux 6.18: an old name that is read from old configurations only.
    (re.compile(r"^[ \t]+transitional[ \t]*$", re.MULTILINE), ""),
    # Linux 7.0: a dependency that holds under a condition.
    (re.compile(r"^([ \t]+depends on )([^#\n]+?) if ([^#\n]+)", re.MULTILINE), r"\1(\2) || !(\3)"),
)
"""Words that kconfiglib 14.1 does not know, and what it reads in their place."""


class MenuReader(kconfiglib.Kconfig):  # type: ignore[misc]
    """kconfiglib, for newer sources too."""

    def _open(self, filename: str, mode: str) -> IO[str]:
        file: IO[str] = super()._open(filename, mode)
        if mode != "r" or "Kconfig" not in filename.rpartition("/")[2]:
            return file
        with file:
            text = file.read()
        for pattern, older in _NEWER:
            text = pattern.sub(older, text)
        return io.StringIO(text)


def menus(kconfig: kconfiglib.Kconfig) -> dict[str, Any]:
    """Every option, as `ktrial.model.kernel.MenuOption` has it."""
    forced = selectors(kconfig)
    return {
        f"CONFIG_{symbol.name}": facts(symbol, forced[symbol.name]) for symbol in kconfig.unique_defined_syms
    }


def selectors(kconfig: kconfiglib.Kconfig) -> dict[str, list[tuple[Any, Any]]]:
    """For each option's name, which options select it, and under which condition."""
    by_option: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
    for symbol in kconfig.unique_defined_syms:
        for selected, condition in symbol.orig_selects:
            by_option[selected.name].append((symbol, condition))
    return by_option


def facts(symbol: Any, forced: list[tuple[Any, Any]]) -> dict[str, Any]:
    """One option, as `MenuOption` has it."""
    node = next((entry for entry in symbol.nodes if entry.prompt), symbol.nodes[0])
    return {
        "kind": kconfiglib.TYPE_TO_STR[symbol.orig_type],
        "prompt": node.prompt[0] if node.prompt else "",
        "menu": path(node),
        "depends": text(symbol.direct_dep),
        "selected_by": [selecting(*entry) for entry in forced],
        "choice": [entry.name for entry in symbol.choice.syms] if symbol.choice else [],
        "place": f"{node.filename}:{node.linenr}",
    }


def path(node: Any) -> list[str]:
    """The menus around, from the outermost in."""
    prompts = []
    above = node.parent
    while above is not None and above.parent is not None:
        if above.prompt:
            prompts.append(above.prompt[0])
        above = above.parent
    return prompts[::-1]


def selecting(symbol: Any, condition: Any) -> str:
    """`NAME`, or `NAME if CONDITION`."""
    shown = text(condition)
    return f"{symbol.name} if {shown}" if shown else str(symbol.name)


def text(expression: Any) -> str:
    """In Kconfig's words; empty where it is always true."""
    shown = kconfiglib.expr_str(expression)
    return "" if shown == "y" else str(shown)


def held_back(kconfig: kconfiglib.Kconfig, config: str, name: str) -> dict[str, Any] | None:
    """One option, and what holds it back in this configuration; None where there is no such option."""
    symbol = kconfig.syms.get(name.removeprefix("CONFIG_"))
    if symbol is None or not symbol.nodes:
        return None
    kconfig.load_config(config)
    forced = selectors(kconfig)[symbol.name]
    terms = kconfiglib.split_expr(symbol.direct_dep, kconfiglib.AND)
    conditions = [node.prompt[1] for node in symbol.nodes if node.prompt]
    prompted = [term for entry in conditions for term in kconfiglib.split_expr(entry, kconfiglib.AND)]
    unmet = {valued(term): None for term in [*terms, *prompted] if not kconfiglib.expr_value(term)}
    active = [
        selecting(*entry)
        for entry in forced
        if kconfiglib.expr_value(entry[1]) and kconfiglib.expr_value(entry[0])
    ]
    return {
        **facts(symbol, forced),
        "depends": valued(symbol.direct_dep),
        "unmet": list(unmet),
        "selected_now": active,
        "chosen": symbol.choice.selection.name if symbol.choice and symbol.choice.selection else "",
        "ranges": [f"{low.str_value} to {high.str_value}" for low, high, when in symbol.ranges if when],
    }


def valued(expression: Any) -> str:
    """In Kconfig's words, with the value of each option, as menuconfig shows it: `EXPERT [=y]`."""

    def with_value(item: Any) -> str:
        shown = str(kconfiglib.standard_sc_expr_str(item))
        if isinstance(item, kconfiglib.Symbol) and (item.is_constant or not item.nodes):
            # Numbers and texts that something is compared with are symbols to kconfiglib, without a type.
            literal = item.is_constant or not item.name.isupper()
            return shown if literal else f"{shown} [not defined]"
        return f"{shown} [={item.str_value}]"

    return str(kconfiglib.expr_str(expression, with_value))


def main(source: str, config: str = "", option: str = "") -> None:
    """Print what is asked."""
    kconfig = MenuReader("Kconfig", warn=False)
    json.dump(held_back(kconfig, config, option) if option else menus(kconfig), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
