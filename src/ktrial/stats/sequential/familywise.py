"""Several comparisons judged together: Holm's procedure at every look.

Differences: with k comparisons, each is tested at alpha / k; each difference that is found gives its share to
the rest (Holm 1979; at every look of a sequential design: Maurer and Bretz, Statistics in Biopharmaceutical
Research 5, 2013). Equivalences are a family of their own, in the same way: finding one gives nothing to the
tests of differences, because a comparison without a difference can still be claimed falsely as one.
So each kind of claim is false anywhere in the family with probability at most alpha.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ktrial.stats.sequential.design import SequentialDesign
from ktrial.stats.sequential.test import Claim, Intervals, claims, intervals

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """One comparison after the blocks so far; log ratios."""

    claim: Claim
    blocks: int
    """Blocks that it has."""
    decided_at: int | None
    """Blocks after which the claim was made; None where there is none."""
    mean: float
    """Over all its blocks so far; NaN where it has none."""
    low: float
    high: float
    """The interval at its last look; infinite where there was none."""
    withdrawn: bool = False
    """A claim was made after `decided_at` blocks, and the interval of the last look does not bear it out."""


def judge(
    differences: Sequence[Array], design: SequentialDesign, *, final: bool = False
) -> tuple[Finding, ...]:
    """The findings, one for each comparison's log ratios (shape (blocks,); lengths may differ).

    All looks so far are gone through again, so that the answer depends on the data alone. `final` adds a
    look at the last block, for a budget that ended between two looks.
    """
    looked = [design.looked_at(len(each), final=final) for each in differences]
    family = _Family(design, tuple(differences), tuple(looked), [None] * len(differences))
    every = sorted({blocks for each in looked for blocks in each})
    for look in every:
        family.settle(look)
        found = tuple(family.finding(index, look) for index in range(len(differences)))
        # Here the study ended. Blocks that it has beyond (it was told to have more) change no verdict.
        if all(one.claim is not Claim.NONE for one in found):
            return found
    return tuple(family.finding(index, every[-1] if every else 0) for index in range(len(differences)))


@dataclass(frozen=True)
class _Made:
    """A claim, the blocks after which it was made, and among how many the error was shared then."""

    claim: Claim
    blocks: int
    among: int


@dataclass(frozen=True)
class _Family:
    design: SequentialDesign
    differences: tuple[Array, ...]
    looked: tuple[tuple[int, ...], ...]
    made: list[_Made | None]

    def settle(self, look: int) -> None:
        """Go on at one look until no comparison is decided any more: each difference helps the rest."""
        while True:
            new = {
                index: made
                for index, looked in enumerate(self.looked)
                if self.made[index] is None and look in looked and (made := self._claim(index, look))
            }
            if not new:
                return
            for index, made in new.items():
                self.made[index] = made

    def finding(self, index: int, look: int) -> Finding:
        """What is found after the look."""
        values, made = self.differences[index], self.made[index]
        looked = [blocks for blocks in self.looked[index] if blocks <= look]
        low, high = -np.inf, np.inf
        if looked:
            low, high = self._interval(index, looked[-1], made.among if made else self._among(Claim.ABOVE))
        # Other comparisons keep a study running. A claim that was right to make is not kept against all the
        # blocks: without it fewer claims are false.
        withdrawn = made is not None and not self._bears_out(made.claim, low, high)
        return Finding(
            claim=made.claim if made and not withdrawn else Claim.NONE,
            blocks=len(values),
            decided_at=made.blocks if made else None,
            mean=float(np.mean(values)) if len(values) else float("nan"),
            low=low,
            high=high,
            withdrawn=withdrawn,
        )

    def _bears_out(self, claim: Claim, low: float, high: float) -> bool:
        both = Intervals(np.zeros(1), np.array([low]), np.array([high]))
        return Claim(int(claims(both, self.design.margin)[0])) in (claim, Claim.EQUIVALENT)

    def _claim(self, index: int, look: int) -> _Made | None:
        for_equivalence, for_difference = self._among(Claim.EQUIVALENT), self._among(Claim.ABOVE)
        if self._says(index, look, for_equivalence) is Claim.EQUIVALENT:
            return _Made(Claim.EQUIVALENT, look, for_equivalence)
        said = self._says(index, look, for_difference)
        return _Made(said, look, for_difference) if said in (Claim.ABOVE, Claim.BELOW) else None

    def _says(self, index: int, look: int, among: int) -> Claim:
        low, high = self._interval(index, look, among)
        both = Intervals(np.zeros(1), np.array([low]), np.array([high]))
        return Claim(int(claims(both, self.design.margin)[0]))

    def _interval(self, index: int, look: int, among: int) -> tuple[float, float]:
        edges = self.design.edges(among, self.looked[index])
        edge = edges[self.looked[index].index(look)]
        found = intervals(self.differences[index], (look,), (edge,))
        return float(found.low[0]), float(found.high[0])

    def _among(self, kind: Claim) -> int:
        """Among how many the error of this kind of claim is shared: those it was not made of yet."""
        equivalence = kind is Claim.EQUIVALENT
        done = sum(made is not None and (made.claim is Claim.EQUIVALENT) is equivalence for made in self.made)
        return max(1, len(self.made) - done)
