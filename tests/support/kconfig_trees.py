"""A small tree of Kconfig files with what Linux's have: menus, a choice, selects, defaults, tools."""

from pathlib import Path

from ktrial.kernels.config import parse_config, read
from ktrial.kernels.kernel_difference import ConfigSide, Rules, rules_in

KCONFIG = """\
mainmenu "Linux/$(ARCH) $(KERNELVERSION)"

config MODULES
\tbool "Loadable modules"
\tmodules
\tdefault y

config CC_VERSION_TEXT
\tstring
\tdefault "gcc 12"

config CC_HAS_FANCY
\tdef_bool $(shell,false)

source "mm/Kconfig"
source "arch/$(SRCARCH)/Kconfig"
"""
MM = """\
menu "Memory Management options"

menu "SLAB allocator options"

choice
\tprompt "Choose SLAB allocator"
\tdefault SLUB

config SLAB
\tbool "SLAB"

config SLUB
\tbool "SLUB (Unqueued Allocator)"

endchoice

config SLUB_CPU_PARTIAL
\tdefault y
\tdepends on SLUB && SMP
\tbool "SLUB per cpu partial cache"

config SLUB_DEBUG
\tdefault y
\tbool "Enable SLUB debugging support" if EXPERT
\tdepends on SLUB
\tselect STACKDEPOT

config DEBUG_SLAB
\tbool "Debug slab memory allocations"
\tdepends on SLAB

endmenu

config EXPERT
\tbool "Experts"

config SWAP
\tbool "Support for paging of anonymous memory"

config ZSWAP
\ttristate "Compressed cache for swap pages"
\tdepends on SWAP
\tselect ZPOOL

config ZPOOL
\ttristate

config STACKDEPOT
\tbool "Stack depot"

endmenu
"""
X86 = """\
config SMP
\tbool "Symmetric multi-processing support"

config NR_CPUS
\tint "Maximum number of CPUs"
\trange 1 8192
\tdefault 64 if SMP
\tdefault 1

config NR_CPUS_DEFAULT
\tint
\tdefault 64 if SMP
\tdefault 1

config CMDLINE_BOOL
\tbool "Built-in kernel command line"

config CMDLINE
\tstring "Built-in kernel command string"
\tdepends on CMDLINE_BOOL
\tdefault ""

config LOCALVERSION
\tstring "Local version"

config MODEL
\tstring
\tdefault "small" if NR_CPUS < 8
\tdefault "large"
"""
SLUB = """\
CONFIG_MODULES=y
CONFIG_CC_VERSION_TEXT="gcc 12"
#
# Memory Management options
#
#
# SLAB allocator options
#
# CONFIG_SLAB is not set
CONFIG_SLUB=y
CONFIG_SLUB_CPU_PARTIAL=y
CONFIG_SLUB_DEBUG=y
# end of SLAB allocator options
CONFIG_STACKDEPOT=y
# end of Memory Management options
CONFIG_SMP=y
CONFIG_NR_CPUS=64
CONFIG_NR_CPUS_DEFAULT=64
CONFIG_MODEL="large"
"""
SLAB = """\
CONFIG_MODULES=y
CONFIG_CC_VERSION_TEXT="gcc 12"
#
# Memory Management options
#
#
# SLAB allocator options
#
CONFIG_SLAB=y
# CONFIG_SLUB is not set
# CONFIG_DEBUG_SLAB is not set
# end of SLAB allocator options
# CONFIG_STACKDEPOT is not set
# end of Memory Management options
CONFIG_SMP=y
CONFIG_NR_CPUS=64
CONFIG_NR_CPUS_DEFAULT=64
CONFIG_MODEL="large"
"""


def a_kconfig_tree(directory: Path, extra: str = "") -> Path:
    """Write it into a directory; `extra` comes after mm/Kconfig's own lines."""
    files = {"Kconfig": KCONFIG, "mm/Kconfig": MM + extra, "arch/x86/Kconfig": X86}
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def some_rules(directory: Path, extra: str = "") -> Rules:
    return rules_in(a_kconfig_tree(directory, extra))


def known(text: str, rules: Rules | None = None) -> ConfigSide:
    return ConfigSide(parse_config(text), read(text), rules)
