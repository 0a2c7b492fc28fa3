"""How a bisection is done, and what it may cost."""

import math
from dataclasses import dataclass, field

from ktrial.bisect.oracles import Tell
from ktrial.bisect.sequential_decision import FIRST_BLOCKS
from ktrial.experiment.single_kernel import Measurement

DEFAULT_MARGIN = 0.01


@dataclass(frozen=True)
class Terms:
    """How a bisection is done."""

    kind: str
    before: str
    """What A is called."""
    after: str
    how: Measurement
    margin: float = DEFAULT_MARGIN
    metrics: tuple[str, ...] = ()
    """Names of those that are to be explained; empty: the first one of each workload."""
    limit: int | None = None
    """The most candidates that may be measured; None: as many as it takes."""
    alpha: float = 0.05
    """In real time: the probability that any decision of the search is wrong, at most."""
    blocks: int = FIRST_BLOCKS
    """In real time: the most blocks for the first question, which the others are planned from."""
    tell: Tell = field(default=lambda _text: None)


def most_for_one(groups: int) -> int:
    """Candidates for one cause of one member, at most: A, B, the prefixes, itself alone, and B without it."""
    return _prefixes(groups) + 4


def most_for_two(groups: int) -> int:
    """Candidates for a pair that only matters together, at most: each member alone and without is one too."""
    return 2 * (_prefixes(groups) + 1) + 4


def _prefixes(groups: int) -> int:
    return math.ceil(math.log2(groups)) if groups > 1 else 0
