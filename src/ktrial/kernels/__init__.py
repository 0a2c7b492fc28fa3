"""Obtain kernels: providers, cache, vmlinux, modules, symbols.

Importing this package costs next to nothing: what a name needs is loaded when the name is used first.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktrial.kernels.cache.entry import NameRecord
    from ktrial.kernels.cache.location import cache_directory
    from ktrial.kernels.image.symbols import Symbol, Symbols, save_symbols, symbols
    from ktrial.kernels.kconfig.config import Scheduling, config_of, config_value, scheduling
    from ktrial.kernels.modules.dependencies import builtin_names, module_names, resolve
    from ktrial.kernels.progress import Progress, silent
    from ktrial.kernels.registry import (
        add,
        add_parts,
        all_kernels,
        cached,
        canonical_name,
        get,
        lenient_reference,
        missing_file,
        obtain,
        record,
        reference,
        remove,
        tools_for,
        verify,
    )

__all__ = [
    "NameRecord",
    "Progress",
    "Scheduling",
    "Symbol",
    "Symbols",
    "add",
    "add_parts",
    "all_kernels",
    "builtin_names",
    "cache_directory",
    "cached",
    "canonical_name",
    "config_of",
    "config_value",
    "get",
    "lenient_reference",
    "missing_file",
    "module_names",
    "obtain",
    "record",
    "reference",
    "remove",
    "resolve",
    "save_symbols",
    "scheduling",
    "silent",
    "symbols",
    "tools_for",
    "verify",
]

_FROM = {
    "NameRecord": "ktrial.kernels.cache.entry",
    "Progress": "ktrial.kernels.progress",
    "Scheduling": "ktrial.kernels.kconfig.config",
    "Symbol": "ktrial.kernels.image.symbols",
    "Symbols": "ktrial.kernels.image.symbols",
    "add": "ktrial.kernels.registry",
    "all_kernels": "ktrial.kernels.registry",
    "builtin_names": "ktrial.kernels.modules.dependencies",
    "cache_directory": "ktrial.kernels.cache.location",
    "canonical_name": "ktrial.kernels.registry",
    "config_of": "ktrial.kernels.kconfig.config",
    "config_value": "ktrial.kernels.kconfig.config",
    "get": "ktrial.kernels.registry",
    "lenient_reference": "ktrial.kernels.registry",
    "missing_file": "ktrial.kernels.registry",
    "add_parts": "ktrial.kernels.registry",
    "cached": "ktrial.kernels.registry",
    "module_names": "ktrial.kernels.modules.dependencies",
    "obtain": "ktrial.kernels.registry",
    "record": "ktrial.kernels.registry",
    "reference": "ktrial.kernels.registry",
    "remove": "ktrial.kernels.registry",
    "resolve": "ktrial.kernels.modules.dependencies",
    "save_symbols": "ktrial.kernels.image.symbols",
    "scheduling": "ktrial.kernels.kconfig.config",
    "silent": "ktrial.kernels.progress",
    "symbols": "ktrial.kernels.image.symbols",
    "tools_for": "ktrial.kernels.registry",
    "verify": "ktrial.kernels.registry",
}
"""Name → the module that has it."""


if not TYPE_CHECKING:  # to mypy, a name that is not here is a mistake

    def __getattr__(name: str) -> object:
        if name not in _FROM:
            raise AttributeError(f"module 'ktrial.kernels' has no attribute {name!r}")
        return globals().setdefault(name, getattr(import_module(_FROM[name]), name))
