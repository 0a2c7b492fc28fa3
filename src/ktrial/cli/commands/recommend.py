"""`ktrial recommend`: which of the measured kernels serve some workloads best, and which to avoid."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json, StoreOption
from ktrial.cli.options.completion import workload_sets

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from ktrial.model.recommendation import KernelCandidate, Recommendation


@examples("ktrial recommend --workloads fork,pipe")
def recommend(
    workloads: Annotated[
        list[str],
        typer.Option(metavar="W1,W2…", help="default, quick, or workloads.", autocompletion=workload_sets),
    ],
    margin: Annotated[
        str | None, typer.Option(metavar="1%", help="The smallest change that matters; else 1%.")
    ] = None,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Say which kernels serve some workloads best.

    And which to avoid. Nothing is run. Kernels are ranked by the geometric mean of how far each is behind the
    best one of each workload; it is told where one workload decides.
    """
    from ktrial.analysis.recommend import recommend as recommend_from
    from ktrial.cli.commands.matrix import in_sets, workload_names_of
    from ktrial.cli.console import output, print_json
    from ktrial.cli.options.duration_size_share import margin_of
    from ktrial.cli.options.stored_study import open_existing
    from ktrial.format.sanitize import one_line

    edge = margin_of(margin)
    with open_existing(store) as opened:
        names, of_sets = workload_names_of(workloads), in_sets(workloads)
        recommendation = recommend_from(opened, names, edge, optional=of_sets)
    if json:
        print_json(recommendation.model_dump(mode="json"))
        return
    console = output()
    by = recommendation.measured_by
    console.print(one_line(f"how far behind the best kernel of each workload, in %, by {by}:"))
    console.print()
    console.print(_table(recommendation))
    console.print()
    for one in recommendation.candidates:
        if one.dominated_by:
            console.print(one_line(f"{one.version}: dominated by {', '.join(one.dominated_by)}"))
    if recommendation.left_out:
        console.print(one_line(f"not measured, and left out: {', '.join(recommendation.left_out)}"))
    for name, missing in recommendation.incomplete.items():
        console.print(one_line(f"{name}: not judged, it has no number of {', '.join(missing)}"))
    console.print(one_line(recommendation.answer), style="bold")


def _table(recommendation: "Recommendation") -> "RichTable":
    from ktrial.cli.render.table import rendered
    from ktrial.format.table import Cell, Column, Row, RowKind, Table, name, own
    from ktrial.model.workload import short_labels

    candidates, names = recommendation.candidates, short_labels(recommendation.workloads)
    columns = [Column("workload", "workload", wraps=True, columns=48)]
    columns += [
        Column(one.version, one.version.removeprefix("debian:"), named=True, heading_columns=18, numeric=True)
        for one in candidates
    ]

    def row(first: Cell, texts: Iterable[str], kind: RowKind = RowKind.PLAIN) -> Row:
        return Row((first, *map(own, texts)), kind)

    rows = [
        row(name(names[workload]), (_behind(one, place, recommendation.margin) for one in candidates))
        for place, workload in enumerate(recommendation.workloads)
    ]
    worst = row(own("worst"), (f"{(one.worst - 1) * 100:.2f}" for one in candidates), RowKind.SUM)
    mean = row(own("geometric mean"), (f"{(one.mean - 1) * 100:.2f}" for one in candidates), RowKind.SUM)
    return rendered(Table(tuple(columns), (*rows, *((mean,) if len(rows) > 1 else ()), worst)))


def _behind(one: "KernelCandidate", place: int, margin: float) -> str:
    """How far behind the best, in %."""
    regret = one.regrets[place]
    # `~`: inside margin and spread, as good as the best.
    mark = "~" if regret.low <= 1 + margin and regret.ratio > 1 else ""
    return f"{mark}{(regret.ratio - 1) * 100:.2f}"
