"""From an A/A study, in which every arm is the same treatment, to what this machine can tell apart."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ktrial.model.calibration import Calibration, MetricCalibration
from ktrial.stats.sequential.design import SequentialDesign
from ktrial.stats.sequential.metric_blocks import BlockedMetric
from ktrial.stats.sequential.power import blocks_needed, smallest_detectable
from ktrial.stats.sequential.repeated_intervals import first_claims
from ktrial.stats.verdict_rules import Claim

Array = NDArray[np.float64]

PSEUDO_STUDIES = 2000
FEWEST_BLOCKS = 10
_SEED = 1


def calibrate(measured: Sequence[BlockedMetric], design: SequentialDesign, machine: str = "") -> Calibration:
    """Each metric's spread, false-alarm rate, smallest detectable effect and suggested blocks.

    Raises ValueError where a metric has fewer than ten blocks with a value in every arm, or values that are
    not above zero.
    """
    return Calibration(
        machine=machine,
        margin=design.margin,
        metrics=tuple(_calibrated(each, design) for each in measured),
    )


def _calibrated(measured: BlockedMetric, design: SequentialDesign) -> MetricCalibration:
    logs = _whole_blocks(measured)
    # Every arm is the same treatment: the spread within blocks comes from all of them.
    within = logs - logs.mean(axis=1, keepdims=True)
    blocks, arms = logs.shape
    spread = float(np.sqrt(2 * (within**2).sum() / (blocks * (arms - 1))))
    needed = blocks_needed(design.margin, spread, design)
    return MetricCalibration(
        workload=measured.workload,
        metric=measured.metric.name,
        blocks=blocks,
        ratio_spread=spread,
        false_alarms=false_alarms(logs, design),
        smallest_effect=smallest_detectable(spread, design),
        suggested_blocks=needed.blocks if needed else None,
    )


def _whole_blocks(measured: BlockedMetric) -> Array:
    """Logarithms of shape (blocks, arms), of the blocks in which every arm has a value."""
    values = np.array(list(measured.values.values()), dtype=np.float64).T
    whole = values[np.isfinite(values).all(axis=1)]
    what = f"{measured.workload}, {measured.metric.name}"
    if whole.shape[1] < 2:
        raise ValueError(f"{what}: an A/A study has at least two arms")
    if len(whole) < FEWEST_BLOCKS:
        raise ValueError(f"{what}: {len(whole)} whole blocks; a calibration needs at least {FEWEST_BLOCKS}")
    if np.any(whole <= 0):
        raise ValueError(f"{what}: a ratio needs values above zero")
    return np.asarray(np.log(whole))


def false_alarms(logs: Array, design: SequentialDesign) -> float:
    """How often the design finds a difference in these A/A blocks (logarithms, shape (blocks, arms)).

    Each pseudo-study takes the blocks in their order from a random one on (so that what neighbours have in
    common stays), and two arms of each at random.
    """
    rng = np.random.default_rng(_SEED)
    blocks = len(logs)
    starts = rng.integers(blocks, size=PSEUDO_STUDIES)
    chosen = (starts[:, None] + np.arange(blocks)) % blocks
    mixed = rng.permuted(logs[chosen], axis=2)
    differences = mixed[:, :, 1] - mixed[:, :, 0]
    looked = differences[:, : design.last] if design.last else differences
    claimed, _ = first_claims(looked, design)
    return float(np.isin(claimed, (Claim.ABOVE, Claim.BELOW)).mean())
