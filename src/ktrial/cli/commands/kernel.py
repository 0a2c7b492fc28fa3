"""`ktrial kernel`: obtain kernels, build them, look at them, remove them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import Argument, BadOption, Option, command_group, examples
from ktrial.cli.console import messages, output, print_json, say, write_page
from ktrial.cli.error_handling import tell_warnings
from ktrial.cli.options.common import Json
from ktrial.cli.options.completion import kernel_names
from ktrial.cli.options.kernel_measurement import BuildOptions
from ktrial.cli.running.preflight import check_first
from ktrial.errors import Interrupted
from ktrial.kernels.depmod import DEPMOD
from ktrial.kernels.files import shown

if TYPE_CHECKING:
    from ktrial.kernels import Progress

app = command_group("Add, build, show, diff and remove kernels.")

DAMAGED = 1
"""The exit code where a file is not what it was."""
Name = Annotated[
    str, typer.Argument(help="A kernel's name, or the start of its digest.", autocompletion=kernel_names)
]


@app.declare("add")
@examples(
    "ktrial kernel add debian:6.1 debian:6.12",
    "ktrial kernel add path:arch/x86/boot/bzImage --config .config",
)
def add(
    names: list[str] = Argument(..., help="debian:6.12, debian:6.1:rt, path:FILE, host", metavar="NAME…"),
    modules: Path | None = Option(None, help="Directory with the modules (path: and host)."),
    config: Path | None = Option(None, help="The kernel's .config (path: and host)."),
    refresh: bool = Option(False, "--refresh", help="Look for a newer kernel of the same name."),
) -> None:
    """Obtain kernels, and keep them in the cache.

    Nothing is installed on this system.
    """
    from ktrial.cli.render.kernels import SHORT_DIGEST
    from ktrial.kernels import kernel_registry

    check_first(kind="", kernels=names, tools=(DEPMOD,) if modules else ())
    for name in names:
        with _progress_bar(name) as progress:
            kernel = kernel_registry.add(
                name, modules=modules, config=config, progress=progress, refresh=refresh
            )
        print(f"{kernel.name}  {kernel.release}  {shown(kernel.size)}  {kernel.digest[:SHORT_DIGEST]}")
        if kernel.vmlinux is None:
            messages().print(f"note: {kernel.name} boots slowly: {kernel.vmlinux_reason}")
        if kernel.unchecked and kernel.origin.provider in {"path", "host"}:
            messages().print(
                f"warning: {kernel.name} was not checked for damage: {kernel.unchecked}; compare the "
                "file's sha256sum with that of its source"
            )


@contextmanager
def _progress_bar(name: str) -> "Iterator[Progress]":
    """Draw a bar on a terminal; elsewhere write a line for each step, and one each half a minute."""
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    from ktrial.cli.progress import StepLog

    console = messages()
    if not console.is_terminal:
        log = StepLog(console.print)
        yield lambda what, done=0, total=0: log.step(name, what, done, total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=None)
        current = ""

        def progress(what: str, done: int = 0, total: int = 0) -> None:
            nonlocal current
            if what != current:
                # Without a reset, a what of unknown length would keep the total of the what before it.
                bar.reset(task, description=f"{name}: {what}", total=total or None)
                current = what
            bar.update(task, completed=done, total=total or None)

        yield progress


@app.declare("list")
@examples("ktrial kernel list")
def list_kernels(json: Json = False) -> None:
    """Show the kernels in the cache."""
    from ktrial.cli.render.kernels import kernel_json, kernels_table
    from ktrial.kernels import kernel_registry
    from ktrial.kernels.build.build_trees import MOST_TREES, kept_trees
    from ktrial.kernels.providers import all_providers

    cached = kernel_registry.all_kernels()
    if json:
        print_json([kernel_json(kernel) for kernel in cached])
        return
    if not cached:
        forms = "; ".join(provider.summary for provider in all_providers().values())
        messages().print(f"there are no kernels yet; add one: ktrial kernel add NAME ({forms})")
        return
    console = output()
    console.print(kernels_table(cached, console))
    if trees := kept_trees():
        size = shown(sum(tree.size for tree in trees))
        verb = "tree is" if len(trees) == 1 else "trees are"
        messages().print(f"{len(trees)} build {verb} kept for the next build, {size}; at most {MOST_TREES}")


@app.declare("show")
@examples("ktrial kernel show debian:6.12")
def show(name: Name, json: Json = False) -> None:
    """Show all that is known about one kernel."""
    from ktrial.cli.render.kernels import kernel_json, kernel_table
    from ktrial.kernels import kernel_registry
    from ktrial.kernels.config import config_of

    kernel = kernel_registry.get(name)
    if json:
        print_json({**kernel_json(kernel), "config_options": config_of(kernel)})
        return
    output().print(kernel_table(kernel))


@app.declare("remove")
@examples("ktrial kernel remove debian:6.1")
def remove(name: Name) -> None:
    """Remove a kernel from the cache."""
    from ktrial.kernels import kernel_registry

    removed, freed = kernel_registry.remove(name)
    effect = f"{shown(freed)} freed" if freed else "nothing freed: another name has the same content"
    print(f"removed {removed}: {effect}")


@app.declare("build")
@examples(
    "ktrial kernel build debian:linux-source-6.1 --name plain",
    "ktrial kernel build . --option SLUB_DEBUG_ON=y --patch fix.patch --name fixed",
)
def build(
    *,
    source: str = Argument(
        ..., metavar="SOURCE", help="debian:linux-source-6.1, a directory, git:DIRECTORY@REVISION, a tarball."
    ),
    options: BuildOptions,
    patch: list[str] | None = Option(
        None, metavar="FILE", help="A patch to apply first (-p1); may be repeated."
    ),
    name: str | None = Option(None, metavar="NAME", help="Also name the kernel build:NAME."),
    json: Json = False,
) -> None:
    """Build a kernel from source.

    A kernel of the same source, patches, configuration, flags and compiler is compiled once, and then found
    in the cache.
    """
    from ktrial.cli.progress import step_display
    from ktrial.cli.render.kernels import SHORT_DIGEST
    from ktrial.experiment.provenance import patch_warnings
    from ktrial.kernels.build.builds import build
    from ktrial.kernels.build.recipes import check_alias, give_alias

    requested = options.build(source, tuple(patch or ()))
    if name is not None:
        check_alias(name)
    check_first(kind="", builds=(requested,))
    try:
        with step_display() as progress:
            kernel = build(requested, progress)
    except KeyboardInterrupt:
        raise Interrupted(
            "what was compiled is kept", hint="run the same command again: it goes on from there"
        ) from None
    tell_warnings(patch_warnings(kernel))
    if name is not None:
        give_alias(name, kernel.name)
    if json:
        print_json({**kernel.model_dump(mode="json"), "alias": f"build:{name}" if name else None})
        return
    names = f"{kernel.name} (build:{name})" if name else kernel.name
    print(f"{names}  {kernel.release}  {shown(kernel.size)}  {kernel.digest[:SHORT_DIGEST]}")


@app.declare("diff")
@examples("ktrial kernel diff debian:6.1 debian:6.12")
def diff(
    before: str = Argument(
        ...,
        metavar="A",
        help="debian:6.1, path:FILE, build:NAME, source:DIRECTORY, host, or the start of a digest.",
        autocompletion=kernel_names,
    ),
    after: str = Argument(
        ..., metavar="B", help=("The kernel to compare it with."), autocompletion=kernel_names
    ),
    source: list[str] | None = Option(
        None,
        help=(
            "A source whose Kconfig says which options follow from others (debian:linux-source-6.1, a "
            "directory); twice: one for each kernel."
        ),
        metavar="SOURCE",
    ),
    everything: bool = Option(
        False, "--all", help=("Show everything: long lists of drivers and modules, too.")
    ),
    html: Path | None = Option(None, metavar="FILE", help="Write an HTML page with everything."),
    json: Json = False,
) -> None:
    """Show what differs between two kernels.

    Version, options by menu, patches, compiler, flags, command line, modules; nothing is booted.
    """
    from ktrial.analysis.kernel_diff import difference_between
    from ktrial.cli.progress import step_display
    from ktrial.cli.render.kernels import print_kernel_difference
    from ktrial.report import kernel_difference_html

    if source and len(source) > 2:
        raise BadOption("--source", "one source for both kernels, or one for each")
    with step_display() as progress:
        difference = difference_between(before, after, sources=source or (), progress=progress)
    if html:
        page = kernel_difference_html(difference)
        write_page(html, page, f"ktrial kernel diff {before} {after} --html FILE")
    if json:
        print_json(difference.model_dump(mode="json"))
        return
    print_kernel_difference(difference, output(), everything=everything)
    if html:
        print(f"report: {html}")


@app.declare("verify")
@examples("ktrial kernel verify", "ktrial kernel verify debian:6.12")
def verify(
    names: list[str] | None = Argument(
        None,
        help="Names of kernels; else all in the cache.",
        metavar="[NAME…]",
        autocompletion=kernel_names,
    ),
    json: Json = False,
) -> None:
    """Read cached kernels in full, and compare them with their digests.

    ktrial also checks each kernel before it boots it: in full once in each boot of this system, then by its
    files' times. Exit code 1: something is damaged.
    """
    from ktrial.cli.render.kernels import verification_table
    from ktrial.kernels import kernel_registry
    from ktrial.kernels.kernel_cache import Cache

    checks = []
    with messages().status("") as status:
        for name in names or [record.name for record in Cache().names()]:

            def progress(what: str, done: int = 0, total: int = 0, name: str = name) -> None:
                status.update(f"{name}: {what}" + (f" {done}/{total}" if total else ""))

            checks.append(kernel_registry.verify(name, progress))
    if json:
        print_json([check.model_dump(mode="json") for check in checks])
    elif checks:
        output().print(verification_table(checks))
    else:
        say("there are no kernels yet; add one: ktrial kernel add NAME")
    if damaged := [check.name for check in checks if check.damaged]:
        messages().print(
            "damaged kernels are never booted: the next use repairs or refuses them. To repair them now: "
            f"ktrial kernel add {' '.join(damaged)}"
        )
        raise typer.Exit(DAMAGED)
