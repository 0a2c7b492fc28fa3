"""Proofs for the terminal and as JSON: what was taken back, what that changed, what remains unexplained."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.sanitize import one_line
from ktrial.model.proof import Candidate, Cost, Proof
from ktrial.report.tables import proof as tables
from ktrial.report.text.proof import closing, headline, known_so_far


def estimate(cost: Cost, candidates: Sequence[Candidate], *, in_groups: bool = False) -> str:
    """`19 things differ that can be taken back: at most 63 trials, about 40 CPU seconds`."""
    if not candidates:
        return "nothing that may matter here differs and can be taken back: no trial is run for it"
    trials = number_format.counted(cost.trials, "trial")
    parts = [f"some {trials} where two of them matter" if in_groups else f"at most {trials}"]
    parts += [f"{number_format.counted(cost.boots, 'system')} to boot"] if cost.boots else []
    parts += [f"{number_format.counted(cost.builds, 'kernel')} to build"] if cost.builds else []
    things = number_format.counted(len(candidates), "thing")
    differs = "differs" if len(candidates) == 1 else "differ"
    how = ", first together, then by halves" if in_groups else ""
    seconds = number_format.duration(max(1.0, cost.seconds))
    text = f"{things} {differs} and can be taken back{how}: {', '.join(parts)}, about {seconds} of CPU time"
    return breakable(text)


def print_proof(proof: Proof, console: Console) -> None:
    """The table, all together, and what was not tried."""
    console.print()
    console.print(Text(headline(proof), style="bold"))
    table = tables.of_proof(proof)
    if table.rows:
        console.print(rendered(table))
    for line in closing(proof):
        console.print(one_line(breakable(line)))


def print_known_so_far(proof: Proof, console: Console) -> None:
    """What an interrupted proof has found."""
    for line in known_so_far(proof):
        console.print(one_line(breakable(line)))
