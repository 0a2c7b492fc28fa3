"""The audit: what about published numbers cannot be, or cannot carry what is concluded from it.

Each module looks for one kind of thing and has a function `find`, which yields warnings. They say what is
there in the file; they do not say why.
"""

from collections.abc import Sequence

from ktrial.model.advice import DataWarning
from ktrial.model.measurements import Imported
from ktrial.stats.audit import copies, few_runs, indices, order, repeats, summaries

_CHECKS = (indices, copies, summaries, order, repeats, few_runs)


def audit(files: Sequence[Imported]) -> tuple[DataWarning, ...]:
    """Everything that the checks find, in their order; what importers noticed comes first."""
    noticed = [warning for file in files for warning in file.warnings]
    return (*noticed, *(warning for check in _CHECKS for warning in check.find(files)))


__all__ = ["audit"]
