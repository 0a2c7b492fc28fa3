"""How a budget is shared, and the smallest gain that it can show."""

import math
from dataclasses import dataclass

from ktrial.model.tuning import Goal, Space
from ktrial.stats.many_to_one import edge
from ktrial.stats.typical_blocks import PRICE
from ktrial.studyfile.errors import BudgetTooSmall

FEWEST_RUNS = 20
"""Below so many nothing can be explored and confirmed."""
FEWEST_BLOCKS, _MOST_BLOCKS = 6, 60
_BLOCKS = 0.12
"""Of confirmation, for each run of the budget."""
_TWO_FINALISTS = 40
"""Runs from which two finalists are confirmed beside each other."""
_CONTEND = 0.6
"""The contenders' part of what is left: 15 runs of a covering design and 22 contenders of 65."""
_POWER = 0.8
_SURE = 2.0
"""Standard errors by which a gain must be beyond the edge: outliers are not reckoned with."""
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
    """Of confirmation, at most, where there are as many arms."""
    arms: int = 2
    """Runs of a block: the baseline, and the finalists."""

    @property
    def confirm(self) -> int:
        """Runs of confirmation."""
        return self.arms * self.blocks

    @property
    def runs(self) -> int:
        """All together."""
        return self.calibrate + self.explore + self.contend + self.ablate + self.confirm


def shares(runs: int, *, noise_free: bool, perturbations: int = 1, dimensions: int = 1) -> Shares:
    """Share so many runs. Raises BudgetTooSmall.

    In noise-free mode nothing is repeated: confirmation is a run under each perturbation.
    """
    if noise_free:
        return _exact(runs, perturbations, dimensions)
    if runs < FEWEST_RUNS:
        raise BudgetTooSmall(runs=runs, fewest=FEWEST_RUNS)
    calibrate = min(max(runs // 16, 3), 10)
    arms = 3 if runs >= _TWO_FINALISTS else 2
    blocks = min(max(round(_BLOCKS * runs), FEWEST_BLOCKS), _MOST_BLOCKS)
    rest = runs - calibrate - arms * blocks
    # Contenders are run with and without what may be idle: of a small budget ablation has no runs of its own.
    ablate = round(0.2 * max(0, runs - 100))
    contend = round(_CONTEND * (rest - ablate))
    return Shares(calibrate, rest - ablate - contend, contend, ablate, blocks, arms)


def _exact(runs: int, perturbations: int, dimensions: int) -> Shares:
    blocks = max(1, perturbations)
    ablate = min(2 * dimensions, max(runs // 4, 2))
    fewest = 1 + 2 * blocks + 2 + 4
    if runs < fewest:
        raise BudgetTooSmall(runs=runs, fewest=fewest)
    rest = max(runs - 1 - 2 * blocks - ablate, 4)
    contend = rest // 3
    return Shares(1, rest - contend, contend, runs - 1 - 2 * blocks - rest, blocks)


def blocks_needed(gain: float, noise: float, finalists: int, most: int) -> int:
    """Blocks after which a gain (a logarithm) is shown in most searches; `most` where they are too few."""
    enough = (each for each in range(FEWEST_BLOCKS, most) if is_shown(gain, noise, finalists, each))
    return next(enough, most)


def is_shown(gain: float, noise: float, finalists: int, blocks: int) -> bool:
    """Whether so many blocks show a gain (a logarithm) in most searches."""
    error = PRICE * noise * math.sqrt(2 / blocks)
    return gain >= (edge(finalists, (blocks - 1) * finalists) + _SURE) * error


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
    from scipy import optimize, stats

    finalists = shares.arms - 1
    freedom = (shares.blocks - 1) * finalists
    far = edge(finalists, freedom)
    apart = optimize.brentq(lambda shift: float(stats.nct.sf(far, freedom, shift)) - _POWER, 0.0, 10.0)
    return math.expm1(float(apart) * PRICE * noise * math.sqrt(2 / shares.blocks))
