"""Two kernels side by side: who they are, their options, their modules. Nothing is fetched or booted."""

import re

from ktrial.kernels.kconfig.config import config_of
from ktrial.kernels.kconfig.config_text import read
from ktrial.kernels.kconfig.evaluator import Rules
from ktrial.kernels.kconfig.implied_options import Known
from ktrial.kernels.modules.dependencies import builtin_names, module_names
from ktrial.model.kernel import Kernel
from ktrial.model.kernel_diff import ModuleChange, Side

MODULE, BUILT_IN = "module", "built in"
_KERNEL_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*(?:-rc\d+)?")
_HOW = re.compile(r" \(.*\)$")
"""What a build's version says beside the commit."""


def side_of(kernel: Kernel) -> Side:
    """Who a kernel is, by its record and its configuration."""
    origin, build, options = kernel.origin, kernel.origin.build, config_of(kernel)
    commit = _HOW.sub("", origin.version)
    packaged = origin.version if origin.provider not in {"build", "source"} else ""
    number = _KERNEL_VERSION.match(packaged.partition(":")[2] or packaged or kernel.release)
    return Side(
        name=kernel.name,
        release=kernel.release,
        version=number[0] if number else kernel.release,
        package=packaged,
        source=" ".join(filter(None, (build.source if build else origin.source, commit))),
        digest=kernel.digest,
        compiler=options.get("CONFIG_CC_VERSION_TEXT", origin.compiler),
        flags=build.make if build else {},
        patches=build.patches if build else (),
        command_line=options.get("CONFIG_CMDLINE", ""),
        built=build is not None,
    )


def known_of(kernel: Kernel, rules: Rules | None) -> Known | None:
    """A kernel's options, with what is known about them; None where its configuration is not known."""
    if kernel.config is None:
        return None
    config = config_of(kernel)
    text = kernel.config.read_text(encoding="utf-8", errors="replace")
    return Known(config, read(text), rules) if config else None


def modules_known(kernel: Kernel) -> bool:
    """Whether its modules came with it, and depmod's lists with them."""
    return bool(_modules(kernel))


def changed_modules(before: Kernel, after: Kernel) -> tuple[ModuleChange, ...]:
    """Modules that only one of the two has, or that one of them has built in; by name."""
    old, new = _modules(before), _modules(after)
    return tuple(
        ModuleChange(name=name, before=old.get(name, ""), after=new.get(name, ""))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def _modules(kernel: Kernel) -> dict[str, str]:
    files = dict.fromkeys(module_names(kernel), MODULE)
    return dict.fromkeys(builtin_names(kernel), BUILT_IN) | files
