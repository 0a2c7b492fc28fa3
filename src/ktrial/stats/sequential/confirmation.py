"""A confirmation run: fresh blocks, their number fixed beforehand, judged once, so not inflated."""

from collections.abc import Sequence

from ktrial.stats.sequential.blocks import Measured
from ktrial.stats.sequential.design import SequentialDesign
from ktrial.stats.sequential.interim_analysis import Look, look


def confirm(measured: Sequence[Measured], design: SequentialDesign) -> Look:
    """The verdicts on all blocks at once: one look, at the end, with the whole error (a plain paired t test).

    Raises ValueError where there are fewer than three blocks.
    """
    blocks = max(each.blocks for each in measured)
    return look(measured, SequentialDesign(margin=design.margin, alpha=design.alpha, looks=(blocks,)))
