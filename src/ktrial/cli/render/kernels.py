"""Kernels of the cache, for people and for programs."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich.table import Table as RichTable

from ktrial import kernels
from ktrial.cli.render.table import rendered
from ktrial.format.sanitize import shortened
from ktrial.format.table import Field, facts, table, text_field
from ktrial.kernels.cache.disk_space import shown
from ktrial.kernels.cache.full_check import KernelCheck
from ktrial.kernels.errors import SymbolsUnknown
from ktrial.model.kernel import Kernel, Origin, options_shown

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


def kernels_table(cached: tuple[Kernel, ...], columns: int) -> RichTable:
    """All kernels. Names are shortened in the middle: of a built one the key at its end says which it is."""
    fields: tuple[Field[Kernel], ...] = (
        text_field("release", lambda kernel: kernel.release),
        text_field("flavour", lambda kernel: kernel.flavour),
        text_field("size", lambda kernel: shown(kernel.size)),
        text_field("added", lambda kernel: f"{kernels.record(kernel.name).added:%Y-%m-%d}"),
        text_field("digest", lambda kernel: kernel.digest[:SHORT_DIGEST]),
    )
    others = table(fields, cached)
    texts = [
        [column.heading for column in others.columns],
        *([one.text for one in row.cells] for row in others.rows),
    ]
    left = columns - sum(max(map(len, column)) + _GAP for column in zip(*texts, strict=True))
    name: Field[Kernel] = text_field("name", lambda kernel: shortened(kernel.name, max(_SHORTEST_NAME, left)))
    return rendered(table((name, *fields), cached), heading_style="")


def verification_table(checks: Iterable[KernelCheck]) -> RichTable:
    """What became of looking through kernels; the damaged files by their paths."""
    fields: tuple[Field[KernelCheck], ...] = (
        text_field("name", lambda check: check.name),
        text_field("digest", lambda check: check.digest[:SHORT_DIGEST]),
        text_field("files", lambda check: str(check.files)),
        text_field("damaged", lambda check: _paths(check) or "none"),
    )
    return rendered(table(fields, checks), heading_style="")


def _paths(check: KernelCheck) -> str:
    return "\n".join(str(check.directory / path) for path in check.damaged)


def kernel_table(kernel: Kernel) -> RichTable:
    """All that is known about one kernel."""
    return rendered(facts(_facts(kernel)))


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
        **({"new options": options_shown(origin.new_options)} if origin.new_options else {}),
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
        symbols = kernels.symbols(kernel)
    except SymbolsUnknown as error:
        return f"unknown: {error.advice}"
    return f"{len(symbols.all)} from {symbols.source}"


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
