"""How a budget is shared, and the smallest gain that it can show."""

import math
from dataclasses import dataclass

from ktrial.model.tuning import Goal, Space
from ktrial.stats.sequential import SequentialDesign, smallest_detectable
from ktrial.stats.sequential.design import usual_looks
from ktrial.stats.sequential.power import ratio_spread
from ktrial.studyfile.errors import BudgetTooSmall

FEWEST_RUNS = 20
"""Below so many nothing can be explored and confirmed."""
_FEWEST_BLOCKS, _MOST_BLOCKS = 6, 60
_BLOCKS = 0.14
"""Of confirmation, for each run of the budget."""
_CONTEND = 0.6
"""The contenders' part of what is left: 17 runs of a covering design and 26 contenders of 65."""
EVERY = 8
"""Runs between two of the baseline while exploring, so that drift is seen."""


@dataclass(frozen=True)
class Shares:
    """Runs for each stage; of a budget that is larger than all of them together the rest is not needed."""

    calibrate: int
    explore: int
    """With the baseline's runs among them."""
    contend: int
    ablate: int
    blocks: int
    """Of confirmation, at most; two runs each."""

    @property
    def runs(self) -> int:
        """All together."""
        return self.calibrate + self.explore + self.contend + self.ablate + 2 * self.blocks


def shares(runs: int, *, noise_free: bool, perturbations: int = 1, dimensions: int = 1) -> Shares:
    """Share so many runs. Raises BudgetTooSmall.

    In noise-free mode nothing is repeated: confirmation is a run under each perturbation.
    """
    if noise_free:
        return _exact(runs, perturbations, dimensions)
    if runs < FEWEST_RUNS:
        raise BudgetTooSmall(runs=runs, fewest=FEWEST_RUNS)
    calibrate = min(max(runs // 16, 3), 10)
    blocks = min(max(round(_BLOCKS * runs), _FEWEST_BLOCKS), _MOST_BLOCKS)
    rest = runs - calibrate - 2 * blocks
    # Contenders are run with and without what may be idle: of a small budget ablation has no runs of its own.
    ablate = round(0.2 * max(0, runs - 100))
    contend = round(_CONTEND * (rest - ablate))
    return Shares(calibrate, rest - ablate - contend, contend, ablate, blocks)


def _exact(runs: int, perturbations: int, dimensions: int) -> Shares:
    blocks = max(1, perturbations)
    ablate = min(2 * dimensions, max(runs // 4, 2))
    fewest = 1 + 2 * blocks + 2 + 4
    if runs < fewest:
        raise BudgetTooSmall(runs=runs, fewest=fewest)
    rest = max(runs - 1 - 2 * blocks - ablate, 4)
    contend = rest // 3
    return Shares(1, rest - contend, contend, runs - 1 - 2 * blocks - rest, blocks)


def design_of(shares: Shares, margin: float) -> SequentialDesign:
    """The rule by which confirmation judges: fixed before its first block."""
    return SequentialDesign(margin=margin, looks=usual_looks(shares.blocks), independent=True)


@dataclass(frozen=True)
class Outlook:
    """What can be said before anything is spent but the calibration."""

    shares: Shares
    noise: float
    smallest_effect: float
    """The smallest relative gain that 80 of 100 confirmations find."""


def outlook(space: Space, goal: Goal, runs: int, noise: float, *, perturbations: int = 1) -> Outlook:
    """For so many runs with this noise (standard deviation of one run's logarithm); 0: noise-free mode.

    Raises BudgetTooSmall.
    """
    shared = shares(runs, noise_free=not noise, perturbations=perturbations, dimensions=len(space.dimensions))
    return Outlook(shared, noise, smallest_effect(shared, goal.margin, noise))


def smallest_effect(shares: Shares, margin: float, noise: float) -> float:
    """See Outlook. In noise-free mode it is the margin."""
    if not noise or not math.isfinite(noise):
        return margin
    return smallest_detectable(ratio_spread(noise), design_of(shares, margin), wanted=0.8)
