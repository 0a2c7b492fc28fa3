"""The finalists of a search, and which of those that fresh runs confirm is the answer.

What brings much with few knobs, chosen once boldly and once with caution; and the best that was run, where
the model expects more of it. They are confirmed beside each other, so that what taking back costs is
measured, and a good configuration that was seen is not thrown away.
"""

from collections.abc import Sequence

from ktrial.model.tuning import Configuration
from ktrial.optimize.budget import EACH, FEWEST_BLOCKS, ConfirmationSize, size_needed
from ktrial.optimize.surrogate.model import Surrogate

_ALL = 3
"""Finalists at most."""
_AS_GOOD = 1.5
"""Margins by which the smallest answer may fall behind the best."""
_WORSE = 0.1
"""And the part of the best one's gain."""


def shortlist(surrogate: Surrogate, chosen: Sequence[Configuration]) -> list[Configuration]:
    """What promises a gain: of these, the one with the fewest knobs first, and the best that was run."""
    run = surrogate.distinct()
    seen = max(run, key=lambda each: float(surrogate.gains([each])[0]), default={})
    unsafe = [each.configuration for each in surrogate.seen if surrogate.unsafe(each)]
    finalists: list[Configuration] = []
    for each in (*chosen, seen):
        fit = each and each not in finalists and each not in unsafe
        if fit and float(surrogate.gains([each])[0]) > 0:
            finalists.append(each)
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
    own = (each for each in surrogate.seen if not each.configuration)
    baseline = sum(not failure(each) for each in own)
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
    gains = [float(each) for each in surrogate.gains(confirmed)]
    allowed = _AS_GOOD * surrogate.scores.goal.margin + _WORSE * max(*gains, 0.0)
    good = [each for each, gain in zip(confirmed, gains, strict=True) if gain >= max(gains) - allowed]
    return min(good, key=len)
