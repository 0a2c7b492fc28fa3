"""Kernels of the cache, for people and for programs."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich.table import Table

from ktrial import kernels
from ktrial.format.sanitize import shortened
from ktrial.kernels.cache.disk_space import shown
from ktrial.kernels.cache.verification import KernelCheck
from ktrial.kernels.errors import SymbolsUnknown
from ktrial.model.kernel import Kernel, Origin

SHORT_DIGEST = 12
"""How many digits of a digest are shown."""
_GAP, _SHORTEST_NAME = 2, 24
"""Columns between two columns of a table; what a name has at least."""
_TELLING_OPTIONS = (
    "CONFIG_HZ",
    "CONFIG_NR_CPUS",
    "CONFIG_PREEMPT_NONE",
    "CONFIG_PREEMPT_VOLUNTARY",
    "CONFIG_PREEMPT",
    "CONFIG_PREEMPT_LAZY",
    "CONFIG_PREEMPT_RT",
    "CONFIG_PREEMPT_DYNAMIC",
    "CONFIG_SLUB",
    "CONFIG_SLAB",
    "CONFIG_TRANSPARENT_HUGEPAGE_ALWAYS",
    "CONFIG_TRANSPARENT_HUGEPAGE_MADVISE",
    "CONFIG_MITIGATION_PAGE_TABLE_ISOLATION",
    "CONFIG_PAGE_TABLE_ISOLATION",
    "CONFIG_INIT_ON_ALLOC_DEFAULT_ON",
    "CONFIG_PVH",
)
"""Options of the configuration that move many workloads at once."""


def kernels_table(found: tuple[Kernel, ...], columns: int) -> Table:
    """All kernels. Names are shortened in the middle: of a built one the key at its end says which it is."""
    heads = ("release", "flavour", "size", "added", "digest")
    table = Table("name", *heads, box=None, pad_edge=False)
    rows = [
        (
            kernel.release,
            kernel.flavour,
            shown(kernel.size),
            f"{kernels.record(kernel.name).added:%Y-%m-%d}",
            kernel.digest[:SHORT_DIGEST],
        )
        for kernel in found
    ]
    others = sum(max(map(len, column)) + _GAP for column in zip(heads, *rows, strict=True))
    for kernel, row in zip(found, rows, strict=True):
        table.add_row(shortened(kernel.name, max(_SHORTEST_NAME, columns - others)), *row)
    return table


def verification_table(checks: Iterable[KernelCheck]) -> Table:
    """What became of looking through kernels; the damaged files by their paths."""
    table = Table("name", "digest", "files", "damaged", box=None, pad_edge=False)
    for check in checks:
        paths = [str(check.directory / path) for path in check.damaged]
        table.add_row(check.name, check.digest[:SHORT_DIGEST], str(check.files), "\n".join(paths) or "none")
    return table


def kernel_table(kernel: Kernel) -> Table:
    """All that is known about one kernel."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("what")
    table.add_column("value", overflow="fold")
    for what, value in _facts(kernel).items():
        table.add_row(what, value)
    return table


def _facts(kernel: Kernel) -> dict[str, str]:
    origin = kernel.origin
    return {
        "name": kernel.name,
        "release": kernel.release,
        "flavour": kernel.flavour or "-",
        "architecture": kernel.architecture,
        "from": " ".join(filter(None, (origin.provider, origin.source, origin.version, origin.suite))),
        **(_recipe(origin) if origin.build else {"packages": "\n".join(origin.packages) or "-"}),
        "added": f"{kernels.record(kernel.name).added:%Y-%m-%d %H:%M} UTC",
        "size": shown(kernel.size),
        "digest": kernel.digest,
        "directory": str(kernel.image.parent),
        "vmlinux": "extracted" if kernel.vmlinux else f"none: {kernel.vmlinux_reason}",
        "modules": _modules(kernel),
        "symbols": _symbols(kernel),
        "scheduler": str(kernels.scheduling(kernel)),
        "config": _config(kernel),
    }


def _recipe(origin: Origin) -> dict[str, str]:
    """What a kernel was built from, beside the source."""
    build = origin.build
    if build is None:
        return {}
    set_over = " ".join(f"{name.removeprefix('CONFIG_')}={value}" for name, value in build.options.items())
    return {
        "built with": f"configuration {build.config}{f'; {set_over}' if set_over else ''}",
        "patches": "\n".join(f"{one.path}, sha256 {one.digest[:SHORT_DIGEST]}" for one in build.patches)
        or "-",
        "flags": " ".join(f"{name}={value}" for name, value in build.make.items()) or "-",
        "compiler": origin.compiler or "not known",
    }


def _modules(kernel: Kernel) -> str:
    if kernel.modules is None:
        return "none were given"
    files, builtin = len(kernels.module_names(kernel)), len(kernels.builtin_names(kernel))
    return f"{files} files, {builtin} built in"


def _symbols(kernel: Kernel) -> str:
    try:
        found = kernels.symbols(kernel)
    except SymbolsUnknown as error:
        return f"unknown: {error.advice}"
    return f"{len(found.all)} from {found.source}"


def _config(kernel: Kernel) -> str:
    options = kernels.config_of(kernel)
    if not options:
        return "not known"
    built_in, modules = (sum(value == kind for value in options.values()) for kind in "ym")
    telling = ", ".join(f"{name[7:]}={options[name]}" for name in _TELLING_OPTIONS if name in options)
    return f"{built_in} built in, {modules} modules, digest {kernel.config_digest[:SHORT_DIGEST]}\n{telling}"


def kernel_json(kernel: Kernel) -> dict[str, Any]:
    """A kernel for programs."""
    return {
        **kernel.model_dump(mode="json"),
        "added": kernels.record(kernel.name).added.isoformat(),
        "module_count": len(kernels.module_names(kernel)),
        "scheduling": asdict(kernels.scheduling(kernel)),
    }
