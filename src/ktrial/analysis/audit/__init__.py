"""The audit: what about published numbers cannot be, or cannot carry what is concluded from it.

Each module looks for one kind of thing and has a function `find`, which yields warnings. They say what is
there in the file; they do not say why.
"""

from collections.abc import Sequence

from ktrial.analysis.audit import (
    contradictory_repeats,
    duplicated_values,
    recomputed_indices,
    run_order,
    small_samples,
    summary_consistency,
)
from ktrial.model.imported import Imported
from ktrial.model.warnings import DataWarning

_CHECKS = (
    recomputed_indices,
    duplicated_values,
    summary_consistency,
    run_order,
    contradictory_repeats,
    small_samples,
)


def audit(files: Sequence[Imported]) -> tuple[DataWarning, ...]:
    """Everything that the checks find, in their order; what importers noticed comes first."""
    noticed = [warning for file in files for warning in file.warnings]
    return (*noticed, *(warning for check in _CHECKS for warning in check.find(files)))


__all__ = ["audit"]
