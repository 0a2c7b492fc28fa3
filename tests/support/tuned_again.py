"""`ktrial revalidate` of what a simulated search left undecided: the same blocks, looks and verdicts."""

from collections.abc import Mapping

from tests.support.tuning_families import METRIC, Problem

from ktrial.model.comparison import Verdict
from ktrial.model.tuning import Purpose
from ktrial.model.workload import Direction, Metric
from ktrial.optimize.evaluation_log import Ask
from ktrial.stats.sequential import BlockedMetric, SequentialDesign, look

BLOCKS = 30
"""At most, as the command has it."""
_RATE = Metric(name=METRIC, unit="1/s", direction=Direction.HIGHER)
_FIRST_ORDER = 1000
"""Beyond all runs of the search: their noise is another."""


def gains_in_more_blocks(on: Problem, configuration: Mapping[str, str]) -> bool:
    """Whether fresh blocks show that it is better than the baseline."""
    design = SequentialDesign(margin=on.goal.margin)
    values: dict[str, list[float]] = {"before": [], "candidate": []}
    wanted: int | None = 1
    while wanted is not None:
        while len(values["before"]) < min(wanted, BLOCKS):
            for label, one in (("before", {}), ("candidate", dict(configuration))):
                order = _FIRST_ORDER + sum(map(len, values.values()))
                ask = Ask(configuration=one, purpose=Purpose.CONFIRM, order=order)
                values[label].append(on.values(ask)[METRIC])
        done = len(values["before"])
        blocked = {label: tuple(each) for label, each in values.items()}
        said = look(
            [BlockedMetric("bench", _RATE, "before", blocked, primary=True)], design, final=done >= BLOCKS
        )
        wanted = None if done >= BLOCKS else said.next_look
    return any(each.verdict is Verdict.BETTER for each in said.comparisons)
