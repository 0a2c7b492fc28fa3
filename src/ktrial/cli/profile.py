"""`ktrial profile`: one kernel's instructions in a workload, by function."""

from pathlib import Path
from typing import Annotated

import typer

from ktrial.cli.counting import BootParameters, Memory, Top, WorkloadName
from ktrial.cli.options import Json, kernel_names


def profile(
    kernel: Annotated[str, typer.Option(metavar="NAME", help="A kernel.", autocompletion=kernel_names)],
    workload: WorkloadName,
    top: Top = 20,
    json: Json = False,
    folded: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write call stacks there, for flame graphs.")
    ] = None,
    memory: Memory = "512M",
    boot: BootParameters = None,
) -> None:
    """Count a kernel's instructions by function."""
    from ktrial.cli.counting import count, write
    from ktrial.cli.function_tables import print_profile
    from ktrial.cli.profile_json import profile_as_json
    from ktrial.cli.terminal import output, print_json

    (counted,) = count([kernel], workload, memory, boot)
    if folded:
        write(folded, list(counted.region.folded()))
    if json:
        print_json(profile_as_json(counted))
    else:
        print_profile(counted, top, output())
