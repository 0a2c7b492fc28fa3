"""What a study's differences are made of, in a line each."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.format import number_format
from ktrial.format.sanitize import one_line
from ktrial.model.workload import short_labels
from ktrial.report.text.attribution import Why
from ktrial.report.text.proof import shares

MOST_WORKLOADS = 12
"""Lines that are printed."""
_MOST_FUNCTIONS = 3


def print_whys(whys: Sequence[Why], console: Console) -> None:
    """For each workload that has changed, the functions with the largest parts in it."""
    if not whys:
        return
    several = len({why.treatment for why in whys}) > 1
    console.print()
    console.print(Text("why, by kernel function (instructions an operation):", style="dim"))
    names = short_labels(why.workload for why in whys)
    for why in whys[:MOST_WORKLOADS]:
        where = names[why.workload] + (f", {why.treatment}" if several else "")
        shown = [
            f"{part.name} {number_format.signed(part.difference)}" for part in why.parts[:_MOST_FUNCTIONS]
        ]
        parts = ", ".join(shown) or "no function differs"
        text = f"{where}: {number_format.signed(why.whole.difference)}: {parts}"
        left = len(why.parts) > _MOST_FUNCTIONS
        console.print(f"  {one_line(breakable(text))}{', …' if left else ''}")
        if why.proof:
            measured = "; ".join(shares(why.proof))
            console.print(f"    measured by taking it back: {one_line(breakable(measured))}")
        for cause in why.causes:
            console.print(f"    suspected, not measured: setting {one_line(breakable(cause))}")
    if len(whys) > MOST_WORKLOADS:
        console.print("  and more, in the report")
