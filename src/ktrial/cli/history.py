"""`ktrial history`: one metric over versions, with the places where it changed."""

from pathlib import Path
from typing import Annotated

import typer

from ktrial.cli.options import Json, StoreOption, workload_names

Kernels = Annotated[
    list[str] | None,
    typer.Option(metavar="A..B", help="Versions: 5.10..7.2, or names with commas between them."),
]
PageFile = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page here too.")]


def history(
    workload: Annotated[str, typer.Argument(metavar="W", autocompletion=workload_names, help="A workload.")],
    kernels: Kernels = None,
    metric: Annotated[str | None, typer.Option(metavar="M", help="A metric; else the first one.")] = None,
    by_time: Annotated[
        bool, typer.Option("--by-time", help="In the order of measuring, not of versions.")
    ] = False,
    margin: Annotated[str | None, typer.Option(metavar="1%", help="Exact: what is no change.")] = None,
    alpha: Annotated[
        float, typer.Option(min=1e-6, max=0.5, metavar="0.05", help="Timed: rate of false alarms.")
    ] = 0.05,
    json: Json = False,
    html: PageFile = None,
    store: StoreOption = None,
) -> None:
    """Show one metric over versions, and where it changed.

    Numbers of other machines, settings or modes are lines of their own, and never mixed.
    """
    from ktrial.cli.history_tables import print_history
    from ktrial.cli.measuring import margin_of
    from ktrial.cli.terminal import output, print_json
    from ktrial.cli.written import write_page
    from ktrial.errors import NotMeasured
    from ktrial.report.history import history_page
    from ktrial.runner.history import history as history_of
    from ktrial.runner.history import measured
    from ktrial.runner.kernel_ranges import chosen
    from ktrial.store import default_location, open_store

    edge = margin_of(margin)
    with open_store(store or default_location()) as opened:
        found, name = measured(opened, workload), opened.name
    seen = {(one.provenance.kernel, one.provenance.kernel_release) for each in found for one in each.trials}
    only = chosen(kernels, seen) if kernels else None
    result = history_of(
        found, workload, metric=metric, kernels=only, margin=edge, by_time=by_time, alpha=alpha
    )
    if not result.lines:
        detail = f", metric {metric}" if metric and found else ""
        raise NotMeasured(store=name, workload=workload, detail=detail)
    if html:
        write_page(html, history_page(result))
    if json:
        print_json(result.model_dump(mode="json"))
    else:
        print_history(result, output())
        if html:
            print(f"page: {html.expanduser().absolute()}")
