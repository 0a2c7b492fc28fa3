"""The audit: what about published numbers cannot be, or cannot carry what is concluded from it.

Each check is a function that yields warnings. They say what is there in the file; they do not say why.
"""

from collections.abc import Sequence

from ktrial.analysis.audit.alike_neighbours import neighbours_alike
from ktrial.analysis.audit.printed_summaries import impossible_summaries, index_mismatches, small_samples
from ktrial.analysis.audit.repeated_values import copied_values, disagreeing_repeats
from ktrial.analysis.audit.run_order import confounded_orders
from ktrial.analysis.audit.unknown_spread import groups_alike
from ktrial.model.imported import Imported
from ktrial.model.warnings import DataWarning

_CHECKS = (
    index_mismatches,
    copied_values,
    impossible_summaries,
    confounded_orders,
    disagreeing_repeats,
    small_samples,
    groups_alike,
    neighbours_alike,
)


__all__ = ["audit"]


def audit(files: Sequence[Imported]) -> tuple[DataWarning, ...]:
    """Everything that the checks find, in their order; what importers noticed comes first."""
    noticed = [warning for file in files for warning in file.warnings]
    return (*noticed, *(warning for check in _CHECKS for warning in check(files)))
