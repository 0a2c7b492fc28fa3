"""Build kernels from source: out of tree, in a directory of the cache that is kept between calls."""

from ktrial.kernels.source.building import add, build_directory, name_of
from ktrial.kernels.source.debian import debian_source
from ktrial.kernels.source.requests import DEFCONFIG, GUEST, Wanted, option_of, wanted

__all__ = [
    "DEFCONFIG",
    "GUEST",
    "Wanted",
    "add",
    "build_directory",
    "debian_source",
    "name_of",
    "option_of",
    "wanted",
]
