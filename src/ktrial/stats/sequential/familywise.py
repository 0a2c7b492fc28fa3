"""Several comparisons judged together: Holm's procedure at every look.

Differences: with k comparisons, each is tested at alpha / k; each difference that is found gives its share to
the rest (Holm 1979; at every look of a sequential design: Maurer and Bretz, Statistics in Biopharmaceutical
Research 5, 2013). Equivalences are a family of their own, in the same way: finding one gives nothing to the
tests of differences, because a comparison without a difference can still be claimed falsely as one.
So each kind of claim is false anywhere in the family with probability at most alpha.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ktrial.stats.resolution import NO_ROUNDING, Rounding
from ktrial.stats.sequential.boots import BootClusters
from ktrial.stats.sequential.boundaries import boundaries, critical_t
from ktrial.stats.sequential.design import SequentialDesign
from ktrial.stats.sequential.repeated_intervals import (
    ArmsUntil,
    Blocks,
    BlocksUntil,
    Intervals,
    blocks_until,
    claims,
    location,
)
from ktrial.stats.verdict_rules import Claim

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """One comparison after the blocks so far; log ratios."""

    claim: Claim
    blocks: int
    """Blocks that it has."""
    decided_at: int | None
    """Blocks after which the claim was made; None where there is none."""
    location: float
    """As the estimand has it, of all blocks so far; NaN where there is none."""
    low: float
    high: float
    """The interval at its last look; infinite where there was none."""
    withdrawn: bool = False
    """A claim was made after `decided_at` blocks, and the interval of the last look does not bear it out."""

    @property
    def ratio_interval(self) -> tuple[float | None, float | None]:
        """The interval of the ratio; None for an end without a bound: for both where there was no look."""
        low, high = (math.exp(end) if math.isfinite(end) else None for end in (self.low, self.high))
        return low, high


def judge(
    differences: Sequence[Blocks],
    design: SequentialDesign,
    *,
    final: bool = False,
    roundings: Sequence[Rounding] = (),
    boots: Sequence[BootClusters | None] = (),
) -> tuple[Finding, ...]:
    """The findings, one for each comparison's blocks (log ratios, or both arms' numbers; lengths may differ).

    `roundings`: what the resolution of the numbers hides of each; empty: nothing. `boots`: in which boots the
    blocks of each ran; empty: it is not known.

    All looks so far are gone through again, so that the answer depends on the data alone. `final` adds a
    look at the last block, for a budget that ended between two looks.
    """
    family = _Family(design, differences, roundings or [NO_ROUNDING] * len(differences), final=final)
    family.boots = list(boots) or [None] * len(differences)
    looks = sorted({blocks for looked in family.looked for blocks in looked})
    for look in looks:
        family.settle(look)
        if family.all_made:
            findings = family.findings(look)
            # Here the study ended. Blocks that it has beyond (it was told to have more) change no verdict.
            if all(finding.claim is not Claim.NONE for finding in findings):
                return findings
    return family.findings(looks[-1] if looks else 0)


@dataclass(frozen=True)
class _Made:
    """A claim, the blocks after which it was made, and among how many the error was shared then."""

    claim: Claim
    blocks: int
    among: int


class _Family:
    """Comparisons that share an error, with the claims made so far."""

    def __init__(
        self,
        design: SequentialDesign,
        differences: Sequence[Blocks],
        roundings: Sequence[Rounding],
        *,
        final: bool,
    ) -> None:
        self.looked = [design.looked_at(len(difference), final=final) for difference in differences]
        """Each comparison's looks: with failed trials it has fewer blocks than others."""
        self._design = design
        self._differences = differences
        self._until: list[dict[int, BlocksUntil | ArmsUntil]] = [
            {
                look: blocks_until(
                    difference,
                    look,
                    rounding,
                    independent=design.independent,
                    estimand=design.estimand,
                )
                for look in looked
            }
            for difference, looked, rounding in zip(differences, self.looked, roundings, strict=True)
        ]
        """What each comparison's blocks say, by look."""
        self._made: list[_Made | None] = [None] * len(differences)
        self._count = {True: 0, False: 0}
        """Claims made: of equivalence (True), of a difference (False)."""
        self._edges: dict[tuple[int, tuple[int, ...]], dict[int, float]] = {}
        self.boots: Sequence[BootClusters | None] = [None] * len(differences)
        """In which boots each comparison's blocks ran; None where it is not known."""

    @property
    def all_made(self) -> bool:
        """Whether a claim was made of each comparison."""
        return sum(self._count.values()) == len(self._made)

    def settle(self, look: int) -> None:
        """Go on at one look until no comparison is decided any more: each difference helps the rest."""
        while True:
            open_ = [
                place
                for place, made_claim in enumerate(self._made)
                if made_claim is None and look in self._until[place]
            ]
            new = self._claims(open_, look) if open_ else {}
            if not new:
                return
            for place, claim in new.items():
                self._made[place] = claim
                self._count[claim.claim is Claim.EQUIVALENT] += 1

    def findings(self, look: int) -> tuple[Finding, ...]:
        """What is found of each comparison after the look."""
        return tuple(self._finding(place, look) for place in range(len(self._made)))

    def _finding(self, place: int, look: int) -> Finding:
        values, claim = self._differences[place], self._made[place]
        low, high, withdrawn = -math.inf, math.inf, False
        if past := [blocks for blocks in self.looked[place] if blocks <= look]:
            last = self._interval(place, past[-1], claim.among if claim else self._among(Claim.ABOVE))
            low, high = float(last.low), float(last.high)
            # Other comparisons keep a study running. A claim that was right to make is not kept against all
            # the blocks: without it fewer claims are false.
            last_claim = Claim(int(claims(last, self._design.margin)))
            withdrawn = claim is not None and last_claim not in (claim.claim, Claim.EQUIVALENT)
        return Finding(
            claim=claim.claim if claim and not withdrawn else Claim.NONE,
            blocks=len(values),
            decided_at=claim.blocks if claim else None,
            location=float(location(values, self._design.estimand)) if len(values) else float("nan"),
            low=low,
            high=high,
            withdrawn=withdrawn,
        )

    def _claims(self, places: list[int], look: int) -> dict[int, _Made]:
        """The claims that can be made at the look: equivalences first, then differences of the rest."""
        new: dict[int, _Made] = {}
        for kinds in ((Claim.EQUIVALENT,), (Claim.ABOVE, Claim.BELOW)):
            among = self._among(kinds[0])
            for place in [place for place in places if place not in new]:
                claim = Claim(int(claims(self._interval(place, look, among), self._design.margin)))
                if claim in kinds:
                    new[place] = _Made(claim, look, among)
        return new

    def _interval(self, place: int, look: int, among: int) -> Intervals:
        """Of this comparison at one look, if the error is shared among so many."""
        looked = self.looked[place]
        if (among, looked) not in self._edges:
            edges = self._design.edges(among, looked)
            self._edges[among, looked] = dict(zip(looked, edges, strict=True))
        edge = self._edges[among, looked][look]
        seen, boots = self._until[place][look].interval(edge), self.boots[place]
        return seen if boots is None else Intervals(seen.mean, *boots.wider(seen.low, seen.high, look, edge))

    def _among(self, kind: Claim) -> int:
        """Among how many the error of this kind of claim is shared: those it was not made of yet."""
        return max(1, len(self._made) - self._count[kind is Claim.EQUIVALENT])


# p values: adjusted where many questions are asked of one study, and one that may be looked at repeatedly.

_LEVELS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.003, 0.001, 1e-4, 1e-5)


def holm(p: ArrayLike) -> Array:
    """Holm's step-down (Scandinavian Journal of Statistics 6, 1979): no false claim in the whole family."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    factors = len(values) - np.arange(len(values))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * factors))
    return adjusted


def benjamini_hochberg(p: ArrayLike) -> Array:
    """Benjamini and Hochberg's step-up (JRSS B 57, 1995): few false ones among the claims."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[::-1]
    factors = len(values) / (len(values) - np.arange(len(values)))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(values[order] * factors))
    return adjusted


def repeated_p(
    differences: Blocks,
    design: SequentialDesign,
    *,
    final: bool = False,
    rounding: Rounding = NO_ROUNDING,
) -> float:
    """Two-sided, for log ratio 0, over all looks so far; 1 where there was no look.

    Jennison and Turnbull, Group Sequential Methods (2000), section 9.5: the error at which the interval
    would just hold 0, interpolated in its logarithm, 1e-5 to 0.5. For an open-ended design the inverse of
    the largest Bayes factor so far.
    """
    looked = design.looked_at(len(differences), final=final)
    if not looked:
        return 1.0
    table = np.asarray(_table(looked, 0 if design.open_ended else design.looks[-1]))
    smallest = 1.0
    for look, edges in zip(looked, table.T, strict=True):
        until = blocks_until(
            differences, look, rounding, independent=design.independent, estimand=design.estimand
        )
        seen = until.interval(edges)
        # The level at which the end that is nearer to 0 reaches it: the interval is narrower at larger ones.
        ends, levels = np.maximum(seen.low, -seen.high)[::-1], np.log(_LEVELS)[::-1]
        if ends[-1] > 0:
            finite = np.isfinite(ends)
            smallest = min(smallest, float(np.exp(np.interp(0.0, ends[finite], levels[finite]))))
    return smallest


@lru_cache(maxsize=64)
def _table(looked: tuple[int, ...], horizon: int) -> tuple[tuple[float, ...], ...]:
    """Boundaries at each of the levels, one row a level; open-ended where there is no horizon."""
    if not horizon:
        return tuple(tuple(critical_t(blocks, level) for blocks in looked) for level in _LEVELS)
    return tuple(boundaries(looked, level, horizon) for level in _LEVELS)
