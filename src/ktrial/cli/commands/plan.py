"""`ktrial plan`: how many blocks, and hours, a timed study needs."""

from typing import Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json, StoreOption


@examples(
    "ktrial plan --effect 1% --sd 1.2% --block-time 10min", "ktrial plan --effect 2% --from-calibration host"
)
def plan(
    effect: Annotated[str, typer.Option(metavar="1%", help="The change that has to be found.")] = "1%",
    sd: Annotated[
        str | None, typer.Option(metavar="1.2%", help="Standard deviation of a trial of one treatment.")
    ] = None,
    from_calibration: Annotated[
        str | None,
        typer.Option(
            metavar="MACHINE|FILE",
            help="In place of --sd: a machine that was calibrated, a calibration, or A/A blocks as CSV.",
        ),
    ] = None,
    margin: Annotated[str, typer.Option(metavar="1%", help="The smallest change that matters.")] = "1%",
    power: Annotated[str, typer.Option(metavar="95%", help="How surely it has to be found.")] = "95%",
    block_time: Annotated[
        str | None, typer.Option(metavar="10min", help="What one block takes: every treatment once.")
    ] = None,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Say how many blocks, and hours, a timed study needs.

    To find a change of a given size, and to show that there is none.
    """
    from dataclasses import asdict

    from ktrial.analysis.power_plan import plan_from, spread_of
    from ktrial.cli.console import output, print_json
    from ktrial.cli.options.duration_size_share import duration, share
    from ktrial.cli.render.power_plan import print_plan
    from ktrial.store import default_location

    smallest = share("--margin", margin, least=1e-6, most=0.99)
    scatter = share("--sd", sd, least=1e-6, most=10.0) if sd is not None else None
    spread = spread_of(scatter, from_calibration, smallest, store or default_location())
    planned = plan_from(
        effect=share("--effect", effect, least=-0.99, most=100.0),
        spread=spread,
        margin=smallest,
        power=share("--power", power, least=0.5, most=0.999),
        block_seconds=duration("--block-time", block_time, bare=True) if block_time else None,
    )
    if json:
        print_json(asdict(planned))
    else:
        print_plan(planned, output())
