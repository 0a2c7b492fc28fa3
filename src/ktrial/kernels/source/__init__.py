"""Build kernels from source: by content (`build`), or in a directory that is kept for its source (`add`)."""

from ktrial.kernels.source.asked import MAKE_VARIABLES, requested, variable_of
from ktrial.kernels.source.building import add, build_directory, name_of
from ktrial.kernels.source.builds import build, cached, configured, menu_of
from ktrial.kernels.source.debian import debian_config, debian_source
from ktrial.kernels.source.estimate import build_seconds
from ktrial.kernels.source.kept import aliases, check_alias, give_alias, recipe_of
from ktrial.kernels.source.requests import DEFCONFIG, GUEST, Wanted, option_of, wanted
from ktrial.kernels.source.trees import KeptTree, kept_trees

__all__ = [
    "DEFCONFIG",
    "GUEST",
    "MAKE_VARIABLES",
    "KeptTree",
    "Wanted",
    "add",
    "aliases",
    "build",
    "build_directory",
    "build_seconds",
    "cached",
    "check_alias",
    "configured",
    "debian_config",
    "debian_source",
    "give_alias",
    "kept_trees",
    "menu_of",
    "name_of",
    "option_of",
    "recipe_of",
    "requested",
    "variable_of",
    "wanted",
]
