"""Screening around the best: what is sure of it is kept, all else is varied at once.

So one run says something of every knob that is in doubt, where runs of the best itself say nothing of any
(Box, Hunter and Hunter, Statistics for Experimenters, 2005, chapter 6: factors are screened together, not one
at a time). While nothing is sure, all knobs are varied, by a covering design: two that do something only
together are not met by small steps from the baseline.
"""

from collections.abc import Sequence

import numpy as np

from ktrial.model.tuning import Configuration
from ktrial.optimize.ablation import BOLD, Pruning, losses, pruned, without
from ktrial.optimize.covering import Covering
from ktrial.optimize.encoding import Encoding, place_of, value_at
from ktrial.optimize.surrogate.model import Surrogate
from ktrial.studyfile.errors import NoValidConfiguration

_SURE = Pruning(1.5, 0.5)
"""What is not taken back so is sure."""
_CERTAIN = Pruning(2.5, 1.0)
"""What is not taken back so is not looked at again: a model that does not fit is sure of a knob now and then
that does nothing."""
_SUBSETS = 64
_UNDECIDED, _NEAR = 3.0, 1.5
"""Standard deviations of what a knob does, within which it is looked at; and from the border of what stays,
within which it weighs most."""
_CREDIBLE = 1.0
"""Standard deviations of the model that the best must lie above the baseline before anything of it is."""
_STEP, _STEPPED = 0.08, 0.6
"""Standard deviation of a step along a range that is sure, as a part of it, and how often there is one: its
best place is looked for as well."""
_ROWS = 15
"""Of a covering design, after which a new one begins: beside what is kept some pairs never meet."""


class Screening:
    """Chooses configurations around the best of a search."""

    def __init__(self, encoding: Encoding, covering: Covering, rng: np.random.Generator) -> None:
        self._encoding = encoding
        self._covering = covering
        self._rng = rng
        self._rows = 0

    def others(self, surrogate: Surrogate, best: Configuration) -> Configuration:
        """What is sure of the best, near its values, beside any values of all other knobs."""
        return self._row(self._stepped(self._sure(surrogate, best)))

    def doubted(self, surrogate: Surrogate, best: Configuration) -> Configuration:
        """The best without some of its knobs, as tells most of what they do; if nothing is sure, any row."""
        if not self._sure(surrogate, best):
            return self._row({})
        kept = pruned(surrogate, best, _CERTAIN)
        some = [
            {name: value for name, value in best.items() if name in kept or self._rng.random() < 0.5}
            for _ in range(_SUBSETS)
        ]
        held = [each for each in some if each and self._encoding.space.holds(each)]
        return _most_telling(surrogate, best, held) if held else best

    def _sure(self, surrogate: Surrogate, best: Configuration) -> Configuration:
        if not best or not credible(surrogate, best):
            return {}
        return pruned(surrogate, best, _SURE)

    def _stepped(self, sure: Configuration) -> Configuration:
        stepped = dict(sure)
        for name, value in sure.items():
            span = self._encoding.space[name].range
            if span is not None and self._rng.random() < _STEPPED:
                place = place_of(self._encoding.space[name], value) + _STEP * self._rng.standard_normal()
                stepped[name] = value_at(span, float(np.clip(place, 0, 1)))
        return stepped if self._encoding.space.holds(self._encoding.space.only_changes(stepped)) else sure

    def _row(self, fixed: Configuration) -> Configuration:
        if self._covering.open <= 0 or self._rows >= _ROWS:
            self._covering, self._rows = Covering(self._encoding, self._rng), 0
        self._rows += 1
        try:
            return self._covering.next(fixed)
        except NoValidConfiguration:
            return self._covering.next({})


def credible(surrogate: Surrogate, configuration: Configuration) -> bool:
    """Whether the model believes that it gains, beyond its own doubt."""
    gain, spread = surrogate.gains([configuration])[0], surrogate.spread([configuration])[0]
    return bool(gain >= _CREDIBLE * spread)


def _most_telling(surrogate: Surrogate, best: Configuration, some: Sequence[Configuration]) -> Configuration:
    """That of these whose run is expected to lessen most the variance of what single knobs of the best do,
    by the model (active learning: Cohn, Ghahramani and Jordan, J. Artificial Intelligence Research 4, 1996);
    knobs near the border of what stays weigh most.
    """
    doubtful = [each for each in losses(surrogate, best) if abs(each.mean) < _UNDECIDED * each.deviation]
    rests = [without(best, each.names) for each in doubtful]
    border = np.array([each.mean / max(each.deviation, 1e-9) - BOLD.doubt for each in doubtful])
    weights, told = np.exp(-0.5 * (border / _NEAR) ** 2), np.zeros(len(some))
    for response in surrogate.responses:
        _, covariance = response.gain([best, *rests, *some])
        own = np.diag(covariance)[1 + len(rests) :] + response.strengths.noise**2
        shared = covariance[0, 1 + len(rests) :] - covariance[1 : 1 + len(rests), 1 + len(rests) :]
        told += weights @ (shared**2 / own)
    return some[int(np.argmax(told))]
