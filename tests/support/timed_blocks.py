"""Numbers of timed studies in blocks, with effects that are planted."""

import numpy as np

from ktrial.model.workload import Direction, Metric
from ktrial.stats.sequential import (
    BlockedMetric,
    SequentialDesign,
)

SECONDS = Metric(name="wall", unit="s", direction=Direction.LOWER)
RATE = Metric(name="rate", unit="MB/s", direction=Direction.HIGHER)
DESIGN = SequentialDesign(margin=0.01)
OPEN_ENDED = SequentialDesign(margin=0.01, open_ended=True)


def study(
    *effects: float,
    blocks: int = 60,
    sd: float = 0.01,
    metric: Metric = SECONDS,
    seed: int = 1,
    primary: bool = True,
    workload: str = "fork",
) -> BlockedMetric:
    """A baseline of 100, and treatments that differ from it by these effects."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(0, 0.05, blocks)
    values = {
        label: tuple(float(each) for each in 100 * (1 + effect) * np.exp(shared + rng.normal(0, sd, blocks)))
        for label, effect in zip("ABCDEFGH", (0.0, *effects), strict=False)
    }
    return BlockedMetric(workload, metric, "A", values, primary=primary)


def until(measured: BlockedMetric, blocks: int) -> BlockedMetric:
    cut = {label: values[:blocks] for label, values in measured.values.items()}
    return BlockedMetric(measured.workload, measured.metric, measured.baseline, cut, primary=measured.primary)
