"""Checks how a study in real time is to go."""

from collections.abc import Sequence

from ktrial.model import quantities
from ktrial.model.study import Stopping, Timing
from ktrial.model.workload import WorkloadUse
from ktrial.studyfile.diagnostics import Mistakes
from ktrial.studyfile.schema import TimedTable

_EXACT = ("exact", "exact-parallel")


def timing(
    table: TimedTable | None, kind: str, uses: Sequence[WorkloadUse], mistakes: Mistakes
) -> Timing | None:
    """How it goes; None on the machine whose numbers are exact."""
    if kind in _EXACT:
        if table:
            mistakes.add(
                ("timed",),
                f'the machine "{kind}" has no noise, and needs no blocks: take the table out, '
                'or name a machine in real time, machine = "host"',
            )
        return None
    table = table or TimedTable()
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
