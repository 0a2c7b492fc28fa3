"""The answer that brings much with few knobs: what a knob does, and whether it does anything.

From what the model of few terms expects of a configuration its knobs are paid for: each one a little, and
more the less likely it is to act at all. So of two sets that bring as much the smaller is taken, a knob that
surely acts stays though it brings little, and what might do nothing has to bring more (a Bayes rule with a
loss for each false discovery: Müller, Parmigiani and Rice, Bayesian Statistics 8, 2007).
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ktrial.model.tuning import Configuration
from ktrial.optimize.ablation import pruned
from ktrial.optimize.lattice import Numbers
from ktrial.optimize.surrogate.model import PRICE, Surrogate
from ktrial.optimize.surrogate.term_model import TermModel

Array = NDArray[np.float64]

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
        each = PRICE * self.surrogate.scores.goal.margin + self.idle * (1 - self.terms.acting)
        worth = self.terms.expected(rows) - (table != 0) @ each
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
    rows = [*surrogate.lattice.rows([each for each in starts if each])]
    if len(run):
        rows.append(run[int(np.argmax(choice.worth(run)))])
    ends = [choice.climbed(row) for row in rows]
    worth, row = max(ends, key=lambda end: end[0], default=(0.0, None))
    if row is None or worth <= 0:
        return {}
    return surrogate.encoding.space.only_changes(surrogate.lattice.configuration(row))
