"""`ktrial kernel`: obtain kernels, look at them, remove them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import KtrialCommand, command_group, examples
from ktrial.cli.commands.kernel_build import build
from ktrial.cli.commands.kernel_diff import diff
from ktrial.cli.commands.kernel_verify import verify
from ktrial.cli.console import messages, output, print_json
from ktrial.cli.options.common import Json
from ktrial.cli.options.completion import kernel_names
from ktrial.cli.step_display import StepLog

if TYPE_CHECKING:
    from ktrial import kernels

app = command_group("Obtain kernels, look at them, remove them.")


Name = Annotated[
    str, typer.Argument(help="A kernel's name, or the start of its digest.", autocompletion=kernel_names)
]


@app.command("add", cls=KtrialCommand)
@examples(
    "ktrial kernel add debian:6.1 debian:6.12",
    "ktrial kernel add path:arch/x86/boot/bzImage --config .config",
)
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
    from ktrial import kernels
    from ktrial.cli.render.kernels import SHORT_DIGEST
    from ktrial.cli.running.preflight import check_first
    from ktrial.kernels.cache.disk_space import shown
    from ktrial.kernels.modules.depmod import DEPMOD

    check_first(kind="", kernels=names, tools=(DEPMOD,) if modules else ())
    for name in names:
        with _progress_bar(name) as progress:
            kernel = kernels.add(name, modules=modules, config=config, progress=progress, refresh=refresh)
        print(f"{kernel.name}  {kernel.release}  {shown(kernel.size)}  {kernel.digest[:SHORT_DIGEST]}")
        if kernel.vmlinux is None:
            messages().print(f"note: {kernel.name} boots slowly: {kernel.vmlinux_reason}")
        if kernel.unchecked and kernel.origin.provider in {"path", "host"}:
            advice = "compare the file with where it came from (sha256sum)"
            messages().print(
                f"warning: {kernel.name} was not checked for damage: {kernel.unchecked}; {advice}"
            )


@app.command("list", cls=KtrialCommand)
@examples("ktrial kernel list")
def list_kernels(json: Json = False) -> None:
    """Show the kernels in the cache."""
    from ktrial import kernels
    from ktrial.cli.render.kernels import kernel_json, kernels_table
    from ktrial.kernels.build.build_trees import MOST_TREES, kept_trees
    from ktrial.kernels.cache.disk_space import shown
    from ktrial.kernels.providers.protocol import all_providers

    cached = kernels.all_kernels()
    if json:
        print_json([kernel_json(kernel) for kernel in cached])
        return
    if not cached:
        forms = "; ".join(provider.summary for provider in all_providers().values())
        messages().print(f"there are no kernels yet; add one: ktrial kernel add NAME ({forms})")
        return
    console = output()
    console.print(kernels_table(cached, console.width))
    if trees := kept_trees():
        size = shown(sum(tree.size for tree in trees))
        many = "tree is" if len(trees) == 1 else "trees are"
        messages().print(f"{len(trees)} build {many} kept for the next build, {size}; at most {MOST_TREES}")


@app.command("show", cls=KtrialCommand)
@examples("ktrial kernel show debian:6.12")
def show(name: Name, json: Json = False) -> None:
    """Show all that is known about one kernel."""
    from ktrial import kernels
    from ktrial.cli.render.kernels import kernel_json, kernel_table

    kernel = kernels.get(name)
    if json:
        print_json({**kernel_json(kernel), "config_options": kernels.config_of(kernel)})
        return
    output().print(kernel_table(kernel))


@app.command("remove", cls=KtrialCommand)
@examples("ktrial kernel remove debian:6.1")
def remove(name: Name) -> None:
    """Take a kernel out of the cache."""
    from ktrial import kernels
    from ktrial.kernels.cache.disk_space import shown

    removed, freed = kernels.remove(name)
    rest = f"{shown(freed)} freed" if freed else "nothing freed: another name has the same content"
    print(f"removed {removed}: {rest}")


app.command("build", cls=KtrialCommand)(build)
app.command("diff", cls=KtrialCommand)(diff)
app.command("verify", cls=KtrialCommand)(verify)


@contextmanager
def _progress_bar(name: str) -> "Iterator[kernels.Progress]":
    """Draw a bar on a terminal; elsewhere write a line for each step, and one each half a minute."""
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

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
                # Without a reset, a step of unknown length would keep the total of the step before it.
                bar.reset(task, description=f"{name}: {what}", total=total or None)
                current = what
            bar.update(task, completed=done, total=total or None)

        yield progress
