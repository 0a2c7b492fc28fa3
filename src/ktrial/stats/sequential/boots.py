"""Boots as clusters: what one boot does to one arm is no effect of the treatment.

Memory layout, placement of caches and what a kernel chose while it came up stay for a boot's life. Blocks
within one boot share them, so that their number says nothing about what another boot would have done (a
random effect of the boot; Donner and Klar, Design and Analysis of Cluster Randomization Trials, 2000). Where
boots are known the boot is the unit: the typical log ratio of each boot is one value, and the interval is no
narrower than that of Student's t on these, with one degree of freedom less than there are boots, at the level
that the look has for blocks. Boots of unlike lengths have weights in proportion to their blocks; the standard
error is that of a weighted mean.

Where the arms never share a boot, what a boot does is part of each difference, and a verdict is withheld
below three boots of each arm. Where they share them, it takes four boots until their spread is used: of fewer
it says too little, and most studies have one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ktrial.stats.sequential.typical_block import walsh

Array = NDArray[np.float64]
FEWEST_OWN = 3
"""Boots of each arm that it takes where no boot has trials of both."""
FEWEST_SHARED = 4
"""Boots from which on their spread is used, where boots have trials of both arms."""
_FURTHEST = 1e6
"""What a failed trial's log ratio counts as where boots are compared."""


@dataclass(frozen=True)
class BootClusters:
    """In which boots the blocks of one comparison ran."""

    ratios: Array
    """Log ratios of shape (…, blocks)."""
    baseline: tuple[str, ...]
    """The boot of the baseline's trial in each of these blocks."""
    treatment: tuple[str, ...]

    def wider(self, low: Array, high: Array, blocks: int, edge: float | Array) -> tuple[Array, Array]:
        """The ends of an interval after so many blocks, at an edge of |t|: no narrower than boots allow."""
        if not self._count(blocks):
            return low, high
        if not self.enough(blocks):
            return np.full_like(low, -np.inf), np.full_like(high, np.inf)
        from scipy import special  # takes a third of a second to load

        tail = special.stdtr(blocks - 1, -np.asarray(edge, dtype=np.float64))
        quantile = -special.stdtrit(self._count(blocks) - 1.0, np.maximum(tail, 1e-300))
        location, error = self._typical_boot(blocks)
        half = np.where(tail > 0, quantile * error, np.inf)
        return np.minimum(low, location - half), np.maximum(high, location + half)

    def enough(self, blocks: int) -> bool:
        """Whether a verdict can be had of the boots of so many blocks."""
        return not self.own(blocks) or not self._count(blocks) or self._count(blocks) >= FEWEST_OWN

    def own(self, blocks: int) -> bool:
        """Whether no boot has trials of both arms."""
        return not set(self.baseline[:blocks]) & set(self.treatment[:blocks])

    def counts(self, blocks: int) -> tuple[int, int]:
        """How many boots the baseline had in so many blocks, and the treatment."""
        return len(set(self.baseline[:blocks])), len(set(self.treatment[:blocks]))

    def _count(self, blocks: int) -> int:
        """How many units there are; 0 where the block is the unit."""
        fewest = min(self.counts(blocks))
        is_few = not self.own(blocks) and fewest < FEWEST_SHARED
        return 0 if is_few or fewest == blocks else fewest

    def _typical_boot(self, blocks: int) -> tuple[Array, Array]:
        """The mean of the boots' typical log ratios, and its standard error; shapes (…)."""
        boots = list(zip(self.baseline[:blocks], self.treatment[:blocks], strict=True))
        ratios = np.clip(self.ratios[..., :blocks], -_FURTHEST, _FURTHEST)
        values, weights = [], []
        for boot in dict.fromkeys(boots):
            members = [place for place, other in enumerate(boots) if other == boot]
            values.append(walsh(ratios[..., members]).location)
            weights.append(len(members) / blocks)
        typical, weight = np.stack(values, axis=-1), np.asarray(weights)
        location = typical @ weight
        squares = float(weight @ weight)
        variance = ((typical - location[..., None]) ** 2 @ weight) / max(1 - squares, 1e-12)
        return location, np.sqrt(variance * squares)


def boots_of(
    ratios: Array, baseline: Sequence[str], treatment: Sequence[str], kept: Sequence[bool]
) -> BootClusters | None:
    """Of the blocks that are `kept` among those with these boots; None where a boot is not known."""
    if not baseline or not treatment or not all((*baseline, *treatment)):
        return None
    below, above = (
        tuple(boot for boot, is_kept in zip(boots, kept, strict=True) if is_kept)
        for boots in (baseline, treatment)
    )
    return BootClusters(ratios, below, above)


def why_withheld(boots: BootClusters, blocks: int) -> str:
    """The reason, where boots are too few for a verdict; else empty."""
    if not blocks or boots.enough(blocks):
        return ""
    below, above = boots.counts(blocks)
    many = f"{below} of the baseline and {above} of the treatment"
    return (
        f"the arms ran in boots of their own, {many}: what a boot does cannot be told from what the "
        f"treatment does; a verdict takes {FEWEST_OWN} boots of each"
    )
