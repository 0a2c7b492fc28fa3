"""`ktrial profile`: one kernel's instructions in a workload, by function."""

from pathlib import Path
from typing import Annotated

import typer

from ktrial.cli.commands._exports import Exports, FlameGraph, Folded
from ktrial.cli.options.caches import Caches, FirstCode, FirstData, LastLevel
from ktrial.cli.options.common import Json, kernel_names
from ktrial.cli.options.profiling import BootParameters, Memory, Top, WorkloadName


def profile(
    kernel: Annotated[str, typer.Option(metavar="NAME", help="A kernel.", autocompletion=kernel_names)],
    workload: WorkloadName,
    top: Top = 20,
    json: Json = False,
    folded: Folded = None,
    flame_graph: FlameGraph = None,
    vector: Annotated[
        Path | None,
        typer.Option("--vector", metavar="FILE", help="Write each operation's instructions there."),
    ] = None,
    export: Exports = None,
    caches: Caches = False,
    l1i: FirstCode = None,
    l1d: FirstData = None,
    llc: LastLevel = None,
    memory: Memory = "512M",
    boot: BootParameters = None,
) -> None:
    """Count a kernel's instructions by function."""
    from ktrial.cli.commands._exports import check_writable, wanted, write_text
    from ktrial.cli.console import output, print_json
    from ktrial.cli.options.caches import shapes
    from ktrial.cli.options.profiling import count
    from ktrial.cli.render.profile import print_profile
    from ktrial.cli.render.profile_json import profile_as_json

    shorthands = {"folded": folded, "flame-graph": flame_graph, "vector": vector}
    files = wanted(export or (), shorthands)
    check_writable([path for _, path in files])
    modelled = shapes(caches, l1i, l1d, llc)
    (counted,) = count([kernel], workload, memory, boot, modelled)
    for form, path in files:
        write_text(path, form.text(counted))
    if json:
        print_json(profile_as_json(counted))
        return
    print_profile(counted, top, output())
    if modelled:
        from ktrial.cli.render.cache_misses import print_caches

        print_caches(counted, top, modelled, output())
