"""`ktrial systems OLD NEW`: is a change the same on all machines of a store?"""

from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.analysis.errors import HistoryError
from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json, StoreOption
from ktrial.cli.options.completion import kernel_names, workload_names

if TYPE_CHECKING:
    from rich.console import Console

    from ktrial.model.machine_agreement import Across


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
    from ktrial.experiment.kernel_ranges import full_name
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
        _print(row, console)


def _print(row: "Across", console: "Console") -> None:
    from ktrial.format import number_format
    from ktrial.format.labels import AGREEMENTS
    from ktrial.format.sanitize import one_line

    chance = f", p {row.p:.2g}" if row.p is not None else ""
    reason = f" ({row.reason})" if row.reason else ""
    what = f"{row.workload}, {row.metric}: {row.before} → {row.after}"
    console.print(one_line(f"{what}: {AGREEMENTS[row.agreement]}{chance}{reason}"), style="bold")
    for one in row.systems:
        system = one.system
        about = "; ".join(part for part in (system.machine, system.qemu[:24], system.cpu_model) if part)
        change = f"{number_format.change(one.ratio)} ({number_format.interval(one.low, one.high)})"
        console.print(one_line(f"  {change}  {about}; study {one.study_id}"))
    if over := row.over_machines:
        change = f"{number_format.change(over.ratio)} ({number_format.interval(over.low, over.high)})"
        apart = f"their own changes differ by {number_format.change(over.between)}"
        console.print(one_line(f"  {change}  over machines like these {len(row.systems)}; {apart}"))
