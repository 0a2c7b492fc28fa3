"""What a machine's A/A study says about the studies that it can carry."""

from ktrial.model.base import Model


class MetricCalibration(Model):
    """One metric of one workload, the same treatment in every arm."""

    workload: str
    metric: str
    blocks: int
    ratio_spread: float
    """Standard deviation of a block's log ratio: 0.014 is about 1.4 %."""
    false_alarms: float
    """Share of pseudo-studies (labels exchanged within blocks) that found a difference where none is."""
    smallest_effect: float
    """The smallest relative change that 95 of 100 studies find within the design's blocks."""
    suggested_blocks: int | None
    """Blocks with which 95 of 100 studies find a change of the margin's size; None: no sensible number."""


class Calibration(Model):
    """The calibration of one machine."""

    machine: str = ""
    margin: float
    metrics: tuple[MetricCalibration, ...]

    @property
    def largest_spread(self) -> float:
        """That of the least steady metric: what a study of all of them has to be planned for."""
        return max(each.ratio_spread for each in self.metrics)
