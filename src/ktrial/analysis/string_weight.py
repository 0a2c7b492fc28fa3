"""What string bytes weigh beside instructions: a row of bytes has no verdict of its own below what matters.

Their own ratio says little: from 192 bytes to 608 is +217 %, and 13 instructions by the weight of a byte.
"""

from collections.abc import Mapping

from ktrial.format.number_format import number, percentage
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.design import Perturbation
from ktrial.model.profile import CycleModel
from ktrial.stats.paired_perturbations import held_together

Values = Mapping[Perturbation, float]
"""Perturbation → a sample's value."""


def weighed(comparison: Comparison, below: Values, above: Values, whole: Values, margin: float) -> Comparison:
    """The comparison of string bytes; equivalent, with the reason, where all that differs is too light.

    `below`, `above`: the bytes of both sides. `whole`: the baseline's instructions, of which `margin` is the
    smallest part that matters.
    """
    if comparison.verdict is Verdict.EQUIVALENT or not (below and above and whole):
        return comparison
    cost, least = CycleModel().string_byte, min(whole.values())
    weight = max(abs(after - before) * cost for before, after in held_together(below, above))
    if weight > margin * least:
        return comparison
    reason = (
        f"what differs in string bytes weighs {number(weight)} of {number(least)} instructions: "
        f"less than the {percentage(margin)} that matter"
    )
    return comparison.model_copy(update={"verdict": Verdict.EQUIVALENT, "reason": reason})
