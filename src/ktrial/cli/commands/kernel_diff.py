"""`ktrial kernel diff`: what differs between two kernels."""

from pathlib import Path
from typing import Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json
from ktrial.cli.options.completion import kernel_names

_KERNEL = "debian:6.1, path:FILE, build:NAME, source:DIRECTORY, host, or the start of a digest."


@examples("ktrial kernel diff debian:6.1 debian:6.12")
def diff(
    before: Annotated[str, typer.Argument(metavar="A", help=_KERNEL, autocompletion=kernel_names)],
    after: Annotated[
        str, typer.Argument(metavar="B", help="What it is compared with.", autocompletion=kernel_names)
    ],
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="A source whose Kconfig tells which options follow from others (debian:linux-source-6.1, a "
            "directory); twice: one for each kernel.",
            metavar="SOURCE",
        ),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="All: long lists of drivers and modules, too."),
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with all of it.")
    ] = None,
    json: Json = False,
) -> None:
    """Show what differs between two kernels.

    Version, options by menu, patches, compiler, flags, command line, modules; nothing is booted.
    """
    from ktrial.analysis.kernel_diff import difference_between
    from ktrial.cli.console import output, print_json
    from ktrial.cli.files import write_page
    from ktrial.cli.render.kernel_diff import print_kernel_difference
    from ktrial.cli.step_display import step_display
    from ktrial.report import kernel_difference_html

    if source and len(source) > 2:
        raise typer.BadParameter("one source for both kernels, or one for each", param_hint="--source")
    with step_display() as progress:
        difference = difference_between(before, after, sources=source or (), progress=progress)
    if html:
        write_page(
            html, kernel_difference_html(difference), f"ktrial kernel diff {before} {after} --html FILE"
        )
    if json:
        print_json(difference.model_dump(mode="json"))
        return
    print_kernel_difference(difference, output(), everything=everything)
    if html:
        print(f"report: {html}")
