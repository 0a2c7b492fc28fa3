"""What a study's differences are made of, in a line each, and as JSON."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.cli.render.proof import proof_as_json
from ktrial.format import number_format
from ktrial.format.sanitize import one_line
from ktrial.model.workload import short_labels
from ktrial.report.text.attribution import Part, Why
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


def whys_as_json(whys: Sequence[Why]) -> list[dict[str, Any]]:
    """What `run`, `compare` and `show` have as `why`; docs/commands.md names the fields."""
    return [
        {
            "workload": why.workload,
            "baseline": why.baseline,
            "treatment": why.treatment,
            "unit": "instructions/operation",
            "from": why.whole.before,
            "to": why.whole.after,
            "difference": why.whole.difference,
            "unexplained": why.unexplained,
            "functions": [_part(part) for part in why.parts],
            "others": _part(why.others),
            "causes": why.causes,
            "proof": proof_as_json(why.proof) if why.proof else None,
            "subsystems": {part.name: part.difference for part in why.subsystems},
        }
        for why in whys
    ]


def _part(part: Part) -> dict[str, Any]:
    return {
        "function": part.name,
        "subsystem": part.subsystem,
        "match": part.match.value,
        "from": part.before,
        "to": part.after,
        "difference": part.difference,
        "share": part.share,
        "string_bytes_difference": part.byte_difference,
    }
