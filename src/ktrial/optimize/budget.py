"""How a budget is shared, and the smallest gain that it can show."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from ktrial.model.tuning import Goal, Space
from ktrial.stats.typical_groups import OFF, PRICE, SURER, edge
from ktrial.studyfile.errors import TuningError

FEWEST_RUNS = 20
"""Below so many nothing can be explored and confirmed."""
FEWEST_BLOCKS = 3
_MOST_BLOCKS = 60
EACH = 2
"""Runs of each finalist in a block of confirmation, beside one of the baseline: it has those of the search
too."""
_CONFIRM = 0.18
"""The part of the budget that is put by for confirmation."""
_CONTEND = 0.6
"""The contenders' part of what is left: 20 runs of a covering design and 29 contenders of 65."""
KNOWN = 0.5
"""Standard deviation of what the model knows of a finalist before confirmation, in that of one run: the usual
one after 50 runs."""
_POWER = 0.8
_SURE = 2.0
"""Standard errors by which a gain must be beyond the edge: outliers are not reckoned with."""
EVERY = 16
"""Runs between two of the baseline while searching, so that drift is seen."""


@dataclass(frozen=True)
class Shares:
    """Runs for each stage; of a budget that is larger than all of them together the rest is not needed."""

    calibrate: int
    explore: int
    """With the baseline's runs among them."""
    contend: int
    ablate: int
    confirm: int
    """Put by for confirmation; what it does not need goes on searching."""

    @property
    def runs(self) -> int:
        """All together."""
        return self.calibrate + self.explore + self.contend + self.ablate + self.confirm

    @property
    def confirmation(self) -> "ConfirmationSize":
        """Of one finalist, as far as is known before anything is run."""
        earlier = self.calibrate + (self.explore + self.contend) // EVERY
        return ConfirmationSize(1, max(self.confirm // (1 + EACH), 1), earlier)


class ConfirmationSize(NamedTuple):
    """How many runs a confirmation compares."""

    finalists: int
    blocks: int
    """Each has a run of the baseline, and `EACH` of every finalist."""
    earlier: int
    """The baseline's runs during the search."""
    known: float = KNOWN
    """Standard deviation of what the model will know of a finalist, in that of one run."""

    @property
    def runs(self) -> int:
        """Fresh ones."""
        return self.blocks * (1 + EACH * self.finalists)

    def with_runs(self, runs: int) -> "ConfirmationSize":
        """As many blocks as so many runs are enough for; never fewer."""
        return self._replace(blocks=max(self.blocks, runs // (1 + EACH * self.finalists)))

    def error(self, noise: float) -> float:
        """Standard error of a gain (a logarithm), for this noise of one run."""
        return PRICE * noise * math.sqrt(self._fresh * (1 - self._share))

    @property
    def _fresh(self) -> float:
        """The variance of what fresh runs say, in that of one run."""
        return (1 + 1 / EACH) / self.blocks

    @property
    def _share(self) -> float:
        """What the model counts for beside them (ktrial.stats.typical_groups)."""
        return self._fresh / (self._fresh + SURER * self.known**2 + OFF)

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the noise."""
        return self.earlier + self.blocks * (1 + EACH * self.finalists) - 1 - self.finalists

    @property
    def edge(self) -> float:
        """|t| that is beyond chance, for all finalists together."""
        baseline = (1 - self._share) / self.blocks
        return edge(self.finalists, self.freedom, correlation=round(baseline / self._fresh, 2))

    def shows(self, gain: float, noise: float) -> bool:
        """Whether it shows a gain (a logarithm) in most searches."""
        return gain >= (self.edge + _SURE) * self.error(noise)


def shares(runs: int, *, noise_free: bool, perturbations: int = 1, dimensions: int = 1) -> Shares:
    """Share so many runs. Raises TuningError.

    In noise-free mode nothing is repeated: confirmation is a run under each perturbation.
    """
    if noise_free:
        return _exact(runs, perturbations, dimensions)
    if runs < FEWEST_RUNS:
        raise TuningError(
            f"A budget of {runs} runs is too small for a search.",
            hint=f"give at least {FEWEST_RUNS}: --budget {FEWEST_RUNS}",
        )
    calibrate = min(max(runs // 16, 3), 10)
    confirm = min(max(round(_CONFIRM * runs), (1 + EACH) * FEWEST_BLOCKS), (1 + EACH) * _MOST_BLOCKS)
    remaining = runs - calibrate - confirm
    # Contenders are run with and without what may be idle: of a small budget ablation has no runs of its own.
    ablate = round(0.2 * max(0, runs - 100))
    contend = round(_CONTEND * (remaining - ablate))
    return Shares(calibrate, remaining - ablate - contend, contend, ablate, confirm)


def _exact(runs: int, perturbations: int, dimensions: int) -> Shares:
    blocks = max(1, perturbations)
    ablate = min(2 * dimensions, max(runs // 4, 2))
    fewest = 1 + 2 * blocks + 2 + 4
    if runs < fewest:
        raise TuningError(
            f"A budget of {runs} runs is too small for a search.",
            hint=f"give at least {fewest}: --budget {fewest}",
        )
    remaining = max(runs - 1 - 2 * blocks - ablate, 4)
    contend = remaining // 3
    return Shares(1, remaining - contend, contend, runs - 1 - 2 * blocks - remaining, 2 * blocks)


def size_needed(gain: float, noise: float, most: ConfirmationSize) -> ConfirmationSize:
    """With the fewest blocks after which a gain (a logarithm) is shown in most searches; `most` where they
    are too few."""
    sizes = (most._replace(blocks=blocks) for blocks in range(FEWEST_BLOCKS, most.blocks))
    return next((size for size in sizes if size.shows(gain, noise)), most)


@dataclass(frozen=True)
class Outlook:
    """What can be said before anything is spent but the calibration."""

    shares: Shares
    noise: float
    smallest_effect: float
    """The smallest relative gain that 80 of 100 confirmations find."""


def outlook(space: Space, goal: Goal, runs: int, noise: float, *, perturbations: int = 1) -> Outlook:
    """For so many runs with this noise (standard deviation of one run's logarithm); 0: noise-free mode.

    Raises TuningError.
    """
    shared = shares(runs, noise_free=not noise, perturbations=perturbations, dimensions=len(space.dimensions))
    return Outlook(shared, noise, smallest_effect(shared.confirmation, goal.margin, noise))


def smallest_effect(size: ConfirmationSize, margin: float, noise: float) -> float:
    """See Outlook. In noise-free mode it is the margin."""
    if not noise or not math.isfinite(noise):
        return margin
    from scipy import optimize, stats

    def missed(shift: float) -> float:
        return float(stats.nct.sf(size.edge, size.freedom, shift)) - _POWER

    apart = float(optimize.brentq(missed, 0.0, 10.0))
    return math.expm1(apart * size.error(noise))
