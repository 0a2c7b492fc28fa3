"""Obtain kernels: providers, cache, vmlinux, modules, symbols."""

from ktrial.kernels.cache import cache_directory
from ktrial.kernels.catalogue import add, all_kernels, canonical_name, get, record, remove
from ktrial.kernels.config import config_of, config_value
from ktrial.kernels.modules import builtin_names, module_names, resolve
from ktrial.kernels.progress import Progress, silent
from ktrial.kernels.records import NameRecord
from ktrial.kernels.scheduling import Scheduling, scheduling
from ktrial.kernels.symbols import Symbol, Symbols, save_symbols, symbols

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
    "module_names",
    "record",
    "remove",
    "resolve",
    "save_symbols",
    "scheduling",
    "silent",
    "symbols",
]
