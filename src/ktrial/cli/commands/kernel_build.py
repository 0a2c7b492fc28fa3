"""`ktrial kernel build`: build a kernel from source by hand, as studies do by themselves."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json
from ktrial.cli.options.kernel_selection import Fuzz

if TYPE_CHECKING:
    from ktrial.kernels import Progress

_SECONDS_BETWEEN_LINES = 60.0
_SHORT_DIGEST = 12


@examples(
    "ktrial kernel build debian:linux-source-6.1 --name plain",
    "ktrial kernel build . --option SLUB_DEBUG_ON=y --patch fix.patch --name fixed",
)
def build(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="debian:linux-source-6.1, a directory, git:DIRECTORY@REVISION, a tarball."
        ),
    ],
    config: Annotated[
        str, typer.Option(metavar="guest|defconfig|debian|FILE", help="What the options are set over.")
    ] = "guest",
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="NAME=y", help="An option; may be repeated.")
    ] = None,
    patch: Annotated[
        list[str] | None,
        typer.Option("--patch", metavar="FILE", help="A patch to apply first (-p1); may be repeated."),
    ] = None,
    fuzz: Fuzz = 0,
    make: Annotated[
        list[str] | None,
        typer.Option("--make", metavar="KCFLAGS=-O3", help="A variable of make; may be repeated."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Call the kernel build:NAME too.")
    ] = None,
    json: Json = False,
) -> None:
    """Build a kernel from source.

    Or find it in the cache: the same source, patches, configuration, flags and compiler give the same kernel,
    and are compiled once.
    """
    from ktrial.cli.console import print_json
    from ktrial.cli.error_handling import tell
    from ktrial.errors import Interrupted
    from ktrial.experiment.trial_recorder import patch_warnings
    from ktrial.kernels import build as sources
    from ktrial.kernels.cache.disk_space import shown

    wanted = sources.requested(
        source,
        config=config,
        options=option or (),
        patches=patch or (),
        fuzz=fuzz,
        make=dict(sources.variable_of(text) for text in make or ()),
        directory=Path.cwd(),
    )
    if name is not None:
        sources.check_alias(name)
    try:
        with _told() as progress:
            kernel = sources.build(wanted, progress)
    except KeyboardInterrupt:
        what = "what was compiled is kept"
        raise Interrupted(what=what, resume="run the same command again: it goes on from there") from None
    for warning in patch_warnings(kernel):
        tell(warning.text, warning.advice, kind="note" if warning.is_note else "warning")
    if name is not None:
        sources.give_alias(name, kernel.name)
    if json:
        print_json({**kernel.model_dump(mode="json"), "alias": f"build:{name}" if name else None})
        return
    called = f"{kernel.name} (build:{name})" if name else kernel.name
    print(f"{called}  {kernel.release}  {shown(kernel.size)}  {kernel.digest[:_SHORT_DIGEST]}")


@contextmanager
def _told() -> Iterator["Progress"]:
    """On a terminal one line that changes; in a log a line for each step, and one a minute."""
    from ktrial.cli.console import messages

    console = messages()
    begin = time.monotonic()
    if console.is_terminal:
        with console.status("") as status:
            yield lambda what, done=0, total=0: status.update(_with_bytes(what, done, total))
        return
    step, last = "", 0.0

    def progress(what: str, done: int = 0, total: int = 0) -> None:
        nonlocal step, last
        now = time.monotonic()
        begun = what.partition(":")[0]
        if begun != step or now - last > _SECONDS_BETWEEN_LINES:
            step, last = begun, now
            console.print(f"{now - begin:.0f} s: {_with_bytes(what, done, total)}")

    yield progress


def _with_bytes(what: str, done: int, total: int) -> str:
    from ktrial.kernels.cache.disk_space import shown

    return f"{what}: {shown(done)} of {shown(total)}" if total else what
