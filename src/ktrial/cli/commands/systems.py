"""`ktrial systems OLD NEW`: is a change the same on all machines of a store?"""

from typing import Annotated

import typer

from ktrial.analysis.errors import HistoryError
from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json, StoreOption
from ktrial.cli.options.completion import kernel_names, workload_names


class OneMachine(HistoryError):
    """Store {store}: no two machines have measured both {old} and {new} in one of these workloads."""

    hint = "measure them with this store on another machine: ktrial matrix --kernels {old},{new}"


@examples("ktrial systems debian:6.1 debian:6.12 --workloads fork,pipe")
def systems(
    old: Annotated[str, typer.Argument(metavar="OLD", help="A kernel.", autocompletion=kernel_names)],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Another.", autocompletion=kernel_names)],
    workloads: Annotated[
        list[str] | None,
        typer.Option(metavar="W1,W2…", help="Else all that the store has.", autocompletion=workload_names),
    ] = None,
    margin: Annotated[str, typer.Option(metavar="1%", help="The smallest difference that matters.")] = "1%",
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Say whether a change is the same on all machines.

    Machine by machine, and the interaction of machine and version tested. In real time also over machines
    like these, as random effects; exact numbers are not averaged over machines.
    """
    from ktrial.analysis.history.stored_numbers import stored_numbers
    from ktrial.analysis.machine_agreement import across
    from ktrial.analysis.store_queries import labels_of
    from ktrial.cli.commands.matrix import workload_names_of
    from ktrial.cli.console import output, print_json, say
    from ktrial.cli.options.duration_size_share import margin_of
    from ktrial.cli.options.stored_study import open_existing
    from ktrial.cli.render.machine_agreement import print_across
    from ktrial.experiment.kernel_choice import full_name
    from ktrial.kernels import canonical_name

    first, second = (canonical_name(full_name(one)) for one in (old, new))
    with open_existing(store) as opened:
        stored, name = stored_numbers(opened, say), opened.name
        studies = stored.studies
        labels = list(dict.fromkeys(use.label for study in studies for use in study.workloads))
        wanted = labels_of(studies, workload_names_of(workloads)) if workloads else labels
        rows = across(stored, wanted, first, second, margin_of(margin) or 0.01)
    if not rows:
        raise OneMachine(store=name, old=first, new=second)
    if json:
        print_json([row.model_dump(mode="json") for row in rows])
        return
    console = output()
    for row in rows:
        print_across(row, console)
