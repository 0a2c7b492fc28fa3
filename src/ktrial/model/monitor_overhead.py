"""What a workload measured while a program watched it, beside what it measured alone."""

from ktrial.model.base import Model
from ktrial.model.workload import Direction


class Monitored(Model):
    """One workload in one trial: its first metric, from two runs of the same programs."""

    monitor: str
    workload: str
    metric: str
    direction: Direction
    alone: float
    watched: float

    @property
    def slowdown(self) -> float:
        """How many times worse it was while it was watched: 1.02 is 2 % worse. 0 where there is no ratio."""
        worse, better = (
            (self.watched, self.alone) if self.direction is Direction.LOWER else (self.alone, self.watched)
        )
        return worse / better if worse > 0 and better > 0 else 0.0
