"""Whether changes are the same on every machine of a store, for the front page of its site."""

from collections.abc import Sequence

from ktrial.analysis.history.series import Measured
from ktrial.analysis.machine_agreement import across
from ktrial.model.history import History, Line
from ktrial.model.machine_agreement import Across


def on_several_machines(found: Sequence[Measured], past: Sequence[History]) -> tuple[Across, ...]:
    """For each workload that several machines have measured: from the first version that two of them have to
    the last. None is averaged over machines.
    """
    asked: dict[tuple[str, str], list[History]] = {}
    for one in past:
        shared = _shared(one.lines)
        if len(shared) > 1:
            asked.setdefault((shared[0], shared[-1]), []).append(one)
    return tuple(
        row
        for (before, after), histories in asked.items()
        for row in across(found, [one.workload for one in histories], before, after, histories[0].margin)
    )


def _shared(lines: Sequence[Line]) -> list[str]:
    """Versions of the first line that another machine has too, in its order."""
    if not lines:
        return []
    first, *others = lines
    elsewhere = {
        point.version
        for line in others
        if line.system != first.system and (line.metric, line.mode) == (first.metric, first.mode)
        for point in line.points
        if point.value is not None
    }
    return list(dict.fromkeys(point.version for point in first.points if point.version in elsewhere))
