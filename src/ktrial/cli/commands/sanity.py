"""`ktrial sanity OLD NEW`: after an upgrade, is anything beyond the limit?"""

from pathlib import Path
from typing import Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import GuestMemory, Jobs, Json, Perturbations, StoreOption
from ktrial.cli.options.completion import kernel_names
from ktrial.cli.options.fleet import on_fleet
from ktrial.cli.options.kernel_measurement import Cpus, Limits, WorkloadSets


@examples(
    "ktrial sanity debian:6.1 debian:6.12",
    "ktrial sanity debian:6.1 debian:6.12 --workloads fork,pipe --max +2%",
)
@on_fleet
def sanity(
    context: typer.Context,
    old: Annotated[
        str, typer.Argument(metavar="OLD", help="The kernel before.", autocompletion=kernel_names)
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The kernel now.", autocompletion=kernel_names)],
    workloads: WorkloadSets = None,
    maximum: Limits = None,
    top: Annotated[int, typer.Option(min=0, metavar="N", help="Functions to show for each change.")] = 3,
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE.md", help="Append the result as Markdown.")
    ] = None,
    json: Json = False,
    perturbations: Perturbations = None,
    memory: GuestMemory = None,
    cpus: Cpus = None,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Compare a kernel with the one before it, after an upgrade.

    What the store has is not measured again. Exit codes as in check: 0 within, 1 beyond, 125 where it does
    not boot or nothing can be decided, 128 or more where nothing was measured.
    """
    from ktrial.cli.commands.check import check
    from ktrial.cli.commands.matrix import workload_names_of
    from ktrial.experiment.kernel_choice import full_name

    check(
        context,
        against=full_name(old),
        kernel=full_name(new),
        workload=workload_names_of(workloads or ["quick"]),
        maximum=maximum,
        top=top,
        summary=summary,
        json=json,
        perturbations=perturbations,
        memory=memory,
        cpus=cpus,
        store=store,
        jobs=jobs,
    )
