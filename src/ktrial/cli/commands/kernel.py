"""`ktrial kernel`: obtain kernels, look at them, remove them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from ktrial import kernels
from ktrial.cli.commands.kernel_build import build
from ktrial.cli.commands.kernel_diff import diff
from ktrial.cli.console import messages, output, print_json
from ktrial.format.sanitize import shortened
from ktrial.kernels.build.build_trees import MOST_TREES, kept_trees
from ktrial.kernels.cache.disk_space import shown
from ktrial.kernels.errors import SymbolsUnknown
from ktrial.kernels.providers.protocol import all_providers
from ktrial.model.kernel import Kernel, Origin

app = typer.Typer(
    help="Obtain kernels, look at them, remove them.", no_args_is_help=True, rich_markup_mode=None
)

_SHORT_DIGEST = 12
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

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _names(incomplete: str) -> list[str]:
    """Complete names for the shell."""
    return [kernel.name for kernel in kernels.all_kernels() if kernel.name.startswith(incomplete)]


Name = Annotated[
    str, typer.Argument(help="A kernel's name, or the start of its digest.", autocompletion=_names)
]


@app.command("add")
def add(
    names: Annotated[
        list[str], typer.Argument(help="debian:6.12, debian:6.1:rt, path:FILE, host", metavar="NAME…")
    ],
    modules: Annotated[Path | None, typer.Option(help="Directory with the modules (path: and host).")] = None,
    config: Annotated[Path | None, typer.Option(help="The kernel's .config (path: and host).")] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Look for a newer one of the same name.")
    ] = False,
) -> None:
    """Obtain kernels, and keep them in the cache.

    Nothing is installed on this system.
    """
    for name in names:
        with _progress_bar(name) as progress:
            kernel = kernels.add(name, modules=modules, config=config, progress=progress, refresh=refresh)
        print(f"{kernel.name}  {kernel.release}  {shown(kernel.size)}  {kernel.digest[:_SHORT_DIGEST]}")
        if kernel.vmlinux is None:
            messages().print(f"note: {kernel.name} boots slowly: {kernel.vmlinux_reason}")


@app.command("list")
def list_kernels(json: Json = False) -> None:
    """Show the kernels in the cache."""
    found = kernels.all_kernels()
    if json:
        print_json([_data(kernel) for kernel in found])
        return
    if not found:
        forms = "; ".join(provider.summary for provider in all_providers().values())
        messages().print(f"there are no kernels yet; add one: ktrial kernel add NAME ({forms})")
        return
    console = output()
    console.print(_table(found, console.width))
    if trees := kept_trees():
        size = shown(sum(tree.size for tree in trees))
        many = "tree is" if len(trees) == 1 else "trees are"
        messages().print(f"{len(trees)} build {many} kept for the next build, {size}; at most {MOST_TREES}")


@app.command("show")
def show(name: Name, json: Json = False) -> None:
    """Show all that is known about one kernel."""
    kernel = kernels.get(name)
    if json:
        print_json({**_data(kernel), "config_options": kernels.config_of(kernel)})
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("what")
    table.add_column("value", overflow="fold")
    for what, value in _facts(kernel).items():
        table.add_row(what, value)
    output().print(table)


@app.command("remove")
def remove(name: Name) -> None:
    """Take a kernel out of the cache."""
    removed, freed = kernels.remove(name)
    rest = f"{shown(freed)} freed" if freed else "nothing freed: another name has the same content"
    print(f"removed {removed}: {rest}")


app.command("build")(build)
app.command("diff")(diff)


def _table(found: tuple[Kernel, ...], columns: int) -> Table:
    """All kernels. Names are shortened in the middle: of a built one the key at its end says which it is."""
    heads = ("release", "flavour", "size", "added", "digest")
    table = Table("name", *heads, box=None, pad_edge=False)
    rows = [
        (
            kernel.release,
            kernel.flavour,
            shown(kernel.size),
            f"{kernels.record(kernel.name).added:%Y-%m-%d}",
            kernel.digest[:_SHORT_DIGEST],
        )
        for kernel in found
    ]
    others = sum(max(map(len, column)) + _GAP for column in zip(heads, *rows, strict=True))
    for kernel, row in zip(found, rows, strict=True):
        table.add_row(shortened(kernel.name, max(_SHORTEST_NAME, columns - others)), *row)
    return table


@contextmanager
def _progress_bar(name: str) -> Iterator[kernels.Progress]:
    """Draw a bar on a terminal; say nothing elsewhere."""
    console = messages()
    if not console.is_terminal:
        yield kernels.silent
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=None)
        current = ""

        def progress(what: str, done: int = 0, total: int = 0) -> None:
            nonlocal current
            if what != current:
                # Without a reset, a step of unknown length would keep the total of the step before it.
                bar.reset(task, description=f"{name}: {what}", total=total or None)
                current = what
            bar.update(task, completed=done, total=total or None)

        yield progress


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
        "patches": "\n".join(f"{one.path}, sha256 {one.digest[:_SHORT_DIGEST]}" for one in build.patches)
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
    return f"{built_in} built in, {modules} modules, digest {kernel.config_digest[:_SHORT_DIGEST]}\n{telling}"


def _data(kernel: Kernel) -> dict[str, Any]:
    return {
        **kernel.model_dump(mode="json"),
        "added": kernels.record(kernel.name).added.isoformat(),
        "module_count": len(kernels.module_names(kernel)),
        "scheduling": asdict(kernels.scheduling(kernel)),
    }
