"""Checks how a study is to go whose numbers scatter: in real time, or by their seeds."""

from collections.abc import Sequence

from ktrial.model import quantities
from ktrial.model.study import EXACT_MACHINES, Stopping, Timing
from ktrial.model.workload import WorkloadUse
from ktrial.studyfile.diagnostics import Mistakes
from ktrial.studyfile.schema import AS_MANY_AS_IT_TAKES, StudyTable, TimedTable

_CHAOTIC = "exact-parallel"
"""The machine on which every trial depends on its seed, unless so many are asked for."""
_PERTURBATIONS = 3


def perturbations_of(tables: StudyTable) -> int:
    """How many there are where verdicts are those of exact numbers."""
    return tables.perturbations or _PERTURBATIONS


def timing(tables: StudyTable, kind: str, uses: Sequence[WorkloadUse], mistakes: Mistakes) -> Timing | None:
    """How it goes; None where the numbers are exact, and so many perturbations are asked for."""
    asked = tables.perturbations == AS_MANY_AS_IT_TAKES
    by_seeds = asked or (kind == _CHAOTIC and tables.perturbations is None)
    if kind in EXACT_MACHINES and not by_seeds:
        if tables.timed:
            mistakes.add(
                ("timed",),
                f'the machine "{kind}" has no noise, and needs no blocks: take the table out, name a machine '
                'in real time, machine = "host", or let seeds be the blocks, perturbations = "auto"',
            )
        return None
    if kind not in EXACT_MACHINES and asked:
        problem = f'"auto" is for exact machines: on the machine {kind} [timed] blocks says how many'
        mistakes.add(("perturbations",), problem)
    table = tables.timed or TimedTable()
    _check_primary(table, uses, mistakes)
    return Timing(
        blocks=table.blocks,
        stopping=Stopping(table.stopping),
        alpha=table.alpha,
        budget_seconds=quantities.seconds(table.budget) if table.budget else 0.0,
        primary=tuple(table.primary),
    )


def _check_primary(table: TimedTable, uses: Sequence[WorkloadUse], mistakes: Mistakes) -> None:
    """A workload's metrics may be known only when it has run: its name is checked."""
    labels = [use.label for use in uses]
    for place, name in enumerate(table.primary):
        label = name if name in labels else name.partition(": ")[0]
        if label not in labels:
            mistakes.unknown(("timed", "primary", place), "workload", label, labels)
