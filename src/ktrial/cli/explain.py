"""`ktrial explain`: what the difference between two kernels is made of, function by function."""

from typing import Annotated

import typer

from ktrial.cli.counting import BootParameters, Memory, Top, WorkloadName
from ktrial.cli.exporting import FlameGraph, FlameWidth, Folded, WidthOf
from ktrial.cli.options import Json, kernel_names


def explain(
    kernel: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="A kernel; given twice: from, to.", autocompletion=kernel_names),
    ],
    workload: WorkloadName,
    top: Top = 20,
    json: Json = False,
    folded: Folded = None,
    flame_graph: FlameGraph = None,
    width: FlameWidth = WidthOf.TO,
    memory: Memory = "512M",
    boot: BootParameters = None,
) -> None:
    """Say which functions make the difference between two kernels."""
    from ktrial.cli.counting import BadOption, count
    from ktrial.cli.exporting import check_writable, write_difference
    from ktrial.cli.function_tables import print_explanation
    from ktrial.cli.profile_json import explanation_as_json
    from ktrial.cli.terminal import output, print_json
    from ktrial.stats.explain import explain as explanation_of

    if len(kernel) != 2:
        given = f"{len(kernel)} given; give two, the first is what the second is compared with"
        raise BadOption(option="--kernel", problem=given)
    check_writable([path for path in (folded, flame_graph) if path])
    before, after = count(kernel, workload, memory, boot)
    explanation = explanation_of(before, after)
    write_difference(before, after, explanation, folded=folded, flame_graph=flame_graph, width=width)
    if json:
        print_json(explanation_as_json(explanation))
    else:
        print_explanation(explanation, top, output())
