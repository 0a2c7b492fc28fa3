"""Build kernels from source: by content (`build`), or in a directory that is kept for its source (`add`)."""

from ktrial.kernels.build.build_spec import (
    MAKE_VARIABLES,
    BuildRequest,
    build_request,
    option_of,
    requested,
    variable_of,
)
from ktrial.kernels.build.build_trees import KeptTree, kept_trees
from ktrial.kernels.build.builds import build, cached, check_applies, compiles_the_same, configured, menu_of
from ktrial.kernels.build.directory_build import add, build_directory, check_request, name_of
from ktrial.kernels.build.patch_check import not_applying
from ktrial.kernels.build.recipes import aliases, check_alias, give_alias, recipe_of
from ktrial.kernels.build.source_debian import debian_config, debian_source
from ktrial.kernels.build.source_packaging import debian_packaging
from ktrial.kernels.build.time_estimate import build_seconds
from ktrial.model.kernel import DEFCONFIG, GUEST

__all__ = [
    "DEFCONFIG",
    "GUEST",
    "MAKE_VARIABLES",
    "BuildRequest",
    "KeptTree",
    "add",
    "aliases",
    "build",
    "build_directory",
    "build_request",
    "build_seconds",
    "cached",
    "check_alias",
    "check_applies",
    "check_request",
    "compiles_the_same",
    "configured",
    "debian_config",
    "debian_packaging",
    "debian_source",
    "give_alias",
    "kept_trees",
    "menu_of",
    "name_of",
    "not_applying",
    "option_of",
    "recipe_of",
    "requested",
    "variable_of",
]
