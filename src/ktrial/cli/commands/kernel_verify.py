"""`ktrial kernel verify`: are the cached kernels what they were when they were added?"""

from typing import Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json
from ktrial.cli.options.completion import kernel_names

DAMAGED = 1
"""The exit code where a file is not what it was."""


@examples("ktrial kernel verify", "ktrial kernel verify debian:6.12")
def verify(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Kernels' names; without, all in the cache.", metavar="[NAME…]", autocompletion=kernel_names
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Read cached kernels in full, and compare them with their digests.

    Before it is booted, each kernel is looked through anyway: in full once in each boot of this system, by
    its files' times after that. Exit code 1: something is damaged.
    """
    from ktrial import kernels
    from ktrial.cli.console import messages, output, print_json
    from ktrial.cli.render.kernels import verification_table
    from ktrial.kernels.cache.cache import Cache

    checks = []
    with messages().status("") as status:
        for name in names or [record.name for record in Cache().names()]:

            def progress(what: str, done: int = 0, total: int = 0, name: str = name) -> None:
                status.update(f"{name}: {what}" + (f" {done}/{total}" if total else ""))

            checks.append(kernels.verify(name, progress))
    if json:
        print_json([check.model_dump(mode="json") for check in checks])
    elif checks:
        output().print(verification_table(checks))
    else:
        messages().print("there are no kernels yet; add one: ktrial kernel add NAME")
    damaged = [check.name for check in checks if check.damaged]
    if damaged:
        told = "what is damaged is never booted: the next use makes it whole, or refuses it. Now:"
        messages().print(f"{told} ktrial kernel add {' '.join(damaged)}")
        raise typer.Exit(DAMAGED)
