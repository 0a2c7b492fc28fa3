"""Obtain kernels: providers, cache, vmlinux, modules, symbols."""

from ktrial.kernels.cache.cache import cache_directory
from ktrial.kernels.cache.entry import NameRecord
from ktrial.kernels.image.symbols import Symbol, Symbols, save_symbols, symbols
from ktrial.kernels.kconfig.config import config_of, config_value
from ktrial.kernels.modules.dependencies import builtin_names, module_names, resolve
from ktrial.kernels.progress import Progress, silent
from ktrial.kernels.registry import (
    add,
    all_kernels,
    canonical_name,
    get,
    lenient_reference,
    obtain,
    record,
    reference,
    remove,
)
from ktrial.kernels.scheduler_model import Scheduling, scheduling

__all__ = [
    "NameRecord",
    "Progress",
    "Scheduling",
    "Symbol",
    "Symbols",
    "add",
    "all_kernels",
    "builtin_names",
    "cache_directory",
    "canonical_name",
    "config_of",
    "config_value",
    "get",
    "lenient_reference",
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
]
