"""The finalists of a search, and which of those that fresh runs confirm is the answer.

What brings much with few knobs, chosen once boldly and once with caution; and the best that was run, where
the model expects more of it. They are confirmed beside each other, so that what taking back costs is
measured, and a good configuration that was seen is not thrown away.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ktrial.model.tuning import Configuration
from ktrial.optimize.ablation import pruned
from ktrial.optimize.budget import EACH, FEWEST_BLOCKS, ConfirmationSize, size_needed
from ktrial.optimize.gaussian_process import Array
from ktrial.optimize.response_model import PRICE, Numbers, Surrogate
from ktrial.optimize.term_model import TermModel

_ALL = 3
"""Finalists at most."""
_AS_GOOD = 1.5
"""Margins by which the smallest answer may fall behind the best."""
_WORSE = 0.1
"""And the part of the best one's gain."""


def shortlist(surrogate: Surrogate, chosen: Sequence[Configuration]) -> list[Configuration]:
    """What promises a gain: of these, the one with the fewest knobs first, and the best that was run."""
    run = surrogate.distinct()
    seen = max(run, key=lambda configuration: float(surrogate.gains([configuration])[0]), default={})
    unsafe = [run.configuration for run in surrogate.seen if surrogate.unsafe(run)]
    finalists: list[Configuration] = []
    for configuration in (*chosen, seen):
        fit = configuration and configuration not in finalists and configuration not in unsafe
        if fit and float(surrogate.gains([configuration])[0]) > 0:
            finalists.append(configuration)
    return finalists


def fitting(
    surrogate: Surrogate, finalists: Sequence[Configuration], put_by: int, left: int
) -> tuple[list[Configuration], ConfirmationSize]:
    """As many of them as the runs can judge, and in how many blocks: no more than their gains need.

    The first, with all runs that are left if it needs them, unless what is `put_by` shows the gains of
    several: more runs of the search say more of what a knob brings than a second finalist would.
    """
    noise = max(surrogate.noise, surrogate.responses[0].strengths.noise)
    for count in range(min(len(finalists), _ALL), 0, -1):
        some = _first(surrogate, finalists, count)
        gain = _least_gain(surrogate, some)
        most = _most(surrogate, count, min(put_by, left) if count > 1 else left)
        if count == 1 or (most.blocks >= FEWEST_BLOCKS and most.shows(gain, noise)):
            return some, size_needed(gain, noise, most)
    raise ValueError("there is no finalist")


def _most(surrogate: Surrogate, count: int, runs: int) -> ConfirmationSize:
    """Of so many finalists with so many runs; the smallest that judges anything, where they are fewer."""
    failure = surrogate.scores.failure
    baseline_runs = (run for run in surrogate.seen if not run.configuration)
    baseline = sum(not failure(run) for run in baseline_runs)
    return ConfirmationSize(count, max(runs // (1 + EACH * count), 1), baseline)


def _least_gain(surrogate: Surrogate, finalists: Sequence[Configuration]) -> float:
    """What the best of them brings at least, by the model: one standard deviation less than expected."""
    gains = surrogate.gains(finalists) - surrogate.spread(finalists)
    return float(gains.max())


def _first(surrogate: Surrogate, finalists: Sequence[Configuration], count: int) -> list[Configuration]:
    """So many; of several one is that with the fewest knobs of those that are expected to be as good."""
    some = list(finalists[:count])
    best = answer_among(surrogate, finalists)
    return some if count == 1 or best in some else [*some[:-1], best]


def answer_among(surrogate: Surrogate, confirmed: Sequence[Configuration]) -> Configuration:
    """The one with the fewest knobs that is as good as the best, by all runs."""
    gains = [float(gain) for gain in surrogate.gains(confirmed)]
    allowed = _AS_GOOD * surrogate.scores.goal.margin + _WORSE * max(*gains, 0.0)
    good = [
        configuration
        for configuration, gain in zip(confirmed, gains, strict=True)
        if gain >= max(gains) - allowed
    ]
    return min(good, key=len)


# The answer that brings much with few knobs: what a knob does, and whether it does anything.
#
# From what the model of few terms expects of a configuration its knobs are paid for: each one a little, and
# more the less likely it is to act at all. So of two sets that bring as much the smaller is taken, a knob
# that surely acts stays though it brings little, and what might do nothing has to bring more (a Bayes rule
# with a loss for each false discovery: Müller, Parmigiani and Rice, Bayesian Statistics 8, 2007).

_BOLD, _CAUTIOUS = 0.3, 0.05
"""What a knob that does nothing costs, in margins."""
_STEPS = 12
_TINY = 1e-6


@dataclass(frozen=True)
class _Priced:
    """What configurations are worth."""

    surrogate: Surrogate
    terms: TermModel
    idle: float
    """What a knob that does nothing costs, as a logarithm."""

    def worth(self, table: Numbers) -> Array:
        """Shape (rows,); -inf where the guards would not be kept."""
        rows = self.surrogate.lattice.coordinates(table)
        price = PRICE * self.surrogate.scores.goal.margin + self.idle * (1 - self.terms.acting)
        worth = self.terms.expected(rows) - (table != 0) @ price
        return np.where(self.surrogate.safe_rows(table), worth, -np.inf)

    def climbed(self, row: Numbers) -> tuple[float, Numbers]:
        """The best that is found in steps of one knob, or of two that are taken back."""
        worth = float(self.worth(row[None, :])[0])
        for _ in range(_STEPS):
            near = self.surrogate.lattice.holding(
                np.concatenate([self.surrogate.lattice.around(row), *_fewer(row)])
            )
            if not len(near):
                break
            values = self.worth(near)
            at = int(np.argmax(values))
            if values[at] <= worth + _TINY:
                break
            row, worth = near[at], float(values[at])
        return worth, row


def _fewer(row: Numbers) -> list[Numbers]:
    """Without two of its knobs: of a pair that acts only together neither goes by itself."""
    changed = np.flatnonzero(row).tolist()
    rows = []
    for pair in itertools.combinations(changed, 2):
        rows.append(row.copy()[None, :])
        rows[-1][0, list(pair)] = 0
    return rows


def smallest_answers(
    surrogate: Surrogate, terms: TermModel, best: Configuration
) -> tuple[Configuration, Configuration]:
    """Chosen boldly and with caution; empty where nothing promises any gain. `best` is where looking
    begins."""
    starts = [best, pruned(surrogate, best)]
    bold, cautious = (smallest_answer(surrogate, terms, starts, idle) for idle in (_BOLD, _CAUTIOUS))
    return bold, cautious


def smallest_answer(
    surrogate: Surrogate, terms: TermModel, starts: Sequence[Configuration], idle: float
) -> Configuration:
    """The best that is found from these and from what was run, where a knob that does nothing costs `idle`
    margins; empty where nothing promises any gain."""
    choice = _Priced(surrogate, terms, idle * surrogate.scores.goal.margin)
    run = surrogate.lattice.rows(surrogate.distinct())
    rows = [*surrogate.lattice.rows([start for start in starts if start])]
    if len(run):
        rows.append(run[int(np.argmax(choice.worth(run)))])
    ends = [choice.climbed(row) for row in rows]
    worth, row = max(ends, key=lambda end: end[0], default=(0.0, None))
    if row is None or worth <= 0:
        return {}
    return surrogate.encoding.space.only_changes(surrogate.lattice.configuration(row))
