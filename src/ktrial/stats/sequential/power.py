"""How many blocks a study needs, by simulating studies of normal log ratios under its own rule."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ktrial.model.comparison import Calibration, Estimand, MetricCalibration
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign, fewest_blocks
from ktrial.stats.sequential.estimands import PairedArms
from ktrial.stats.sequential.repeated_intervals import first_claims
from ktrial.stats.verdict_rules import Claim

STUDIES = 4000
_FEW_STUDIES = 500
"""They decide where the share is far from the one that is asked for: by five standard errors."""
_SEED = 20261121
_SLACK = 0.02
"""More than the error of a simulated share."""
MOST_BLOCKS = 3840
_HORIZONS = (10, 15, 20, 30, 40, 60, 90, 120, 180, 240, 360, 480, 720, 960, 1920, MOST_BLOCKS)


@dataclass(frozen=True)
class Power:
    """What a design does with a given effect and spread."""

    blocks: int
    """The most that a study may take."""
    right: float
    """Share of studies that find the difference, in its direction."""
    equivalent: float
    """Share that call it equivalent."""
    average_blocks: float
    """When a study stops, on average."""
    stopped_by: dict[int, float]
    """Look → share of studies that had stopped by then."""


def ratio_spread(trial_sd: float) -> float:
    """Standard deviation of a block's log ratio, from a trial's (both as fractions: 0.012 for 1.2 %)."""
    return trial_sd * math.sqrt(2)


def power(effect: float, spread: float, design: SequentialDesign, studies: int = STUDIES) -> Power:
    """Simulate studies of a true ratio 1 + `effect`, with standard deviation `spread` of the log ratios.

    Both arms scatter alike. The same every time: the random numbers come from a fixed seed. The error of a
    share is at most 0.8 %.
    """
    blocks = design.looks[-1]
    noise = np.random.default_rng(_SEED).standard_normal((studies, blocks))
    ratios = math.log1p(effect) + spread * noise
    if design.estimand is Estimand.TYPICAL:
        claimed, taken = first_claims(ratios, design)
    else:
        shared = np.random.default_rng(_SEED + 1).standard_normal((studies, blocks)) * spread / 2
        arms = np.exp(np.stack([shared - ratios / 2, shared + ratios / 2], axis=1))
        claimed, taken = first_claims(PairedArms(arms, arms), design)
    right = claimed == (Claim.ABOVE if effect > 0 else Claim.BELOW)
    return Power(
        blocks=blocks,
        right=float(right.mean()),
        equivalent=float((claimed == Claim.EQUIVALENT).mean()),
        average_blocks=float(taken.mean()),
        stopped_by={look: float(((taken <= look) & (claimed != Claim.NONE)).mean()) for look in design.looks},
    )


def blocks_needed(
    effect: float, spread: float, design: SequentialDesign, *, share: float = 0.95
) -> Power | None:
    """The smallest usual number of blocks with which this `share` of studies gets the right verdict.

    That is the difference in its direction; for effect 0, 'equivalent'. None where 3840 blocks are too few.
    """
    for blocks in _HORIZONS:
        if blocks < fewest_blocks(design.estimand) or _at_most(effect, spread, design, blocks) < share:
            continue
        simulated = power(effect, spread, design.up_to(blocks), _FEW_STUDIES)
        if _is_far(_seen(simulated, effect), share) and _seen(simulated, effect) < share:
            continue
        simulated = power(effect, spread, design.up_to(blocks))
        if _seen(simulated, effect) >= share:
            return simulated
    return None


def _seen(simulated: Power, effect: float) -> float:
    """The share of right verdicts: the difference in its direction; for effect 0, 'equivalent'."""
    return simulated.right if effect else simulated.equivalent


def _is_far(seen: float, share: float) -> bool:
    return abs(seen - share) > 5 * math.sqrt(share * (1 - share) / _FEW_STUDIES)


def _at_most(effect: float, spread: float, design: SequentialDesign, blocks: int) -> float:
    """Nearly the share that one look at the end would find, with a known spread: more than any design."""
    edge = float(-NormalDist().inv_cdf(design.alpha / 2))
    distance = abs(math.log1p(effect)) if effect else math.log1p(design.margin)
    # A clock that is too coarse shows no spread at all.
    reached = float(NormalDist().cdf(distance * math.sqrt(blocks) / spread - edge)) if spread else 1.0
    return (reached if effect else 2 * reached - 1) + _SLACK


def smallest_detectable(spread: float, design: SequentialDesign, *, share: float = 0.95) -> float:
    """The smallest effect (a fraction) that this `share` of studies finds within the design's blocks.

    By bisection. Where the spread is small against the margin, smaller differences are called equivalent.
    """
    low, high = 0.0, 1.0
    while not _finds(high, spread, design, share) and high < 1e3:
        high *= 2
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _finds(middle, spread, design, share) else (middle, high)
    return high


def _finds(effect: float, spread: float, design: SequentialDesign, share: float) -> bool:
    seen = power(effect, spread, design, _FEW_STUDIES).right
    return (seen if _is_far(seen, share) else power(effect, spread, design).right) >= share


# From an A/A study, in which every arm is the same treatment, to what this machine can tell apart.

Array = NDArray[np.float64]
PSEUDO_STUDIES = 2000
FEWEST_BLOCKS = 10
_AA_CALIBRATION_SEED = 1


def calibrate(measured: Sequence[BlockedMetric], design: SequentialDesign, machine: str = "") -> Calibration:
    """Each metric's spread, false-alarm rate, smallest detectable effect and suggested blocks.

    Raises ValueError where a metric has fewer than ten blocks with a value in every arm, or values that are
    not above zero.
    """
    return Calibration(
        machine=machine,
        margin=design.margin,
        metrics=tuple(_calibrated(blocked, design) for blocked in measured),
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
    complete = values[np.isfinite(values).all(axis=1)]
    subject = f"{measured.workload}, {measured.metric.name}"
    if complete.shape[1] < 2:
        raise ValueError(f"{subject}: an A/A study has at least two arms")
    if len(complete) < FEWEST_BLOCKS:
        raise ValueError(
            f"{subject}: {len(complete)} whole blocks; a calibration needs at least {FEWEST_BLOCKS}"
        )
    if np.any(complete <= 0):
        raise ValueError(f"{subject}: a ratio needs values above zero")
    return np.asarray(np.log(complete))


def false_alarms(logs: Array, design: SequentialDesign) -> float:
    """How often the design finds a difference in these A/A blocks (logarithms, shape (blocks, arms)).

    Each pseudo-study takes the blocks in their order from a random one on (so that what neighbours have in
    common stays), and two arms of each at random.
    """
    rng = np.random.default_rng(_AA_CALIBRATION_SEED)
    blocks = len(logs)
    starts = rng.integers(blocks, size=PSEUDO_STUDIES)
    chosen = (starts[:, None] + np.arange(blocks)) % blocks
    mixed = rng.permuted(logs[chosen], axis=2)
    differences = mixed[:, :, 1] - mixed[:, :, 0]
    looked = differences[:, : design.last] if design.last else differences
    claimed, _ = first_claims(looked, design)
    return float(np.isin(claimed, (Claim.ABOVE, Claim.BELOW)).mean())
