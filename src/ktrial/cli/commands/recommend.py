"""`ktrial recommend`: which of the measured kernels serve some workloads best, and which to avoid."""

from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.options.common import Json, StoreOption
from ktrial.cli.options.completion import workload_names

if TYPE_CHECKING:
    from rich.table import Table

    from ktrial.model.recommendation import Candidate, Recommendation


def recommend(
    workloads: Annotated[
        list[str],
        typer.Option(metavar="W1,W2…", help="default, quick, or workloads.", autocompletion=workload_names),
    ],
    margin: Annotated[
        str | None, typer.Option(metavar="1%", help="The smallest change that matters.")
    ] = None,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Say which kernels serve some workloads best.

    And which to avoid. Nothing is run, and nothing is averaged over workloads: the table is the evidence.
    """
    from ktrial.analysis.recommend import recommend as recommend_from
    from ktrial.cli.commands.matrix import in_sets, workload_names_of
    from ktrial.cli.console import output, print_json
    from ktrial.cli.options.quantities import margin_of
    from ktrial.format.sanitize import one_line
    from ktrial.store import default_location, open_store

    edge = margin_of(margin)
    with open_store(store or default_location()) as opened:
        names, of_sets = workload_names_of(workloads), in_sets(workloads)
        found = recommend_from(opened, names, edge, optional=of_sets)
    if json:
        print_json(found.model_dump(mode="json"))
        return
    console = output()
    console.print("how far behind the best kernel of each workload, in %:")
    console.print()
    console.print(_table(found))
    console.print()
    for one in found.candidates:
        if one.dominated_by:
            console.print(one_line(f"{one.version}: dominated by {', '.join(one.dominated_by)}"))
    if found.left_out:
        console.print(one_line(f"not measured, and left out: {', '.join(found.left_out)}"))
    for name, missing in found.incomplete.items():
        console.print(one_line(f"{name}: not judged, it has no number of {', '.join(missing)}"))
    console.print(one_line(found.answer), style="bold")


def _table(found: "Recommendation") -> "Table":
    from rich.table import Table

    from ktrial.format.sanitize import shortened
    from ktrial.model.workload import short_labels

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("workload", overflow="fold")
    for one in found.candidates:
        table.add_column(shortened(one.version.removeprefix("debian:"), 18), justify="right", no_wrap=True)
    names = short_labels(found.workloads)
    for place, workload in enumerate(found.workloads):
        table.add_row(
            shortened(names[workload], 48), *(_cell(one, place, found.margin) for one in found.candidates)
        )
    table.add_row("worst", *(f"{(one.worst - 1) * 100:.2f}" for one in found.candidates), style="bold")
    return table


def _cell(one: "Candidate", place: int, margin: float) -> str:
    regret = one.regrets[place]
    # `~`: inside margin and spread, as good as the best.
    mark = "~" if regret.low <= 1 + margin and regret.ratio > 1 else ""
    return f"{mark}{(regret.ratio - 1) * 100:.2f}"
