"""`ktrial kernel build`: build a kernel from source by hand, as studies do by themselves."""

from pathlib import Path
from typing import Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json
from ktrial.cli.options.kernel_selection import Fuzz

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
    from ktrial.cli.running.preflight import check_first
    from ktrial.cli.step_display import step_display
    from ktrial.errors import Interrupted
    from ktrial.experiment.trial import patch_warnings
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
    check_first(kind="", builds=(wanted,))
    try:
        with step_display() as progress:
            kernel = sources.build(wanted, progress)
    except KeyboardInterrupt:
        what = "what was compiled is kept"
        raise Interrupted(what=what, hint="run the same command again: it goes on from there") from None
    for warning in patch_warnings(kernel):
        tell(warning.text, warning.advice, kind="note" if warning.is_note else "warning")
    if name is not None:
        sources.give_alias(name, kernel.name)
    if json:
        print_json({**kernel.model_dump(mode="json"), "alias": f"build:{name}" if name else None})
        return
    called = f"{kernel.name} (build:{name})" if name else kernel.name
    print(f"{called}  {kernel.release}  {shown(kernel.size)}  {kernel.digest[:_SHORT_DIGEST]}")
