"""Runs that are like the run before: what lasted longer than one of them is in both, and in no interval."""

from collections.abc import Iterator, Sequence

import numpy as np

from ktrial.model.imported import Family, Group, Imported
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.stats.sequential.block_correlation import lag_one

_LEVEL = 0.01
"""Of a whole file."""
_FEWEST_RUNS = 8


def neighbours_alike(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """Groups whose runs, in the file's order, are alike. Families in blocks have a check of their own."""
    for file in files:
        groups = [
            (family, group)
            for family in file.families
            for group in family.groups
            if not family.blocked and len(group.values) >= _FEWEST_RUNS
        ]
        for family, group in groups:
            correlation, p = lag_one(np.asarray(group.values, dtype=np.float64))
            if correlation > 0 and p < _LEVEL / len(groups):
                yield _warning(file.source, family, group, correlation)


def _warning(source: str, family: Family, group: Group, correlation: float) -> DataWarning:
    where = ", ".join(part for part in (family.name, group.label) if part)
    worth = max(1, round(len(group.values) * (1 - correlation) / (1 + correlation)))
    return DataWarning(
        kind=WarningKind.AUTOCORRELATION,
        text=f"{source}: {where}: neighbouring runs are alike (correlation {correlation:+.2f}): "
        f"{len(group.values)} of them are worth about {worth}, and the intervals do not know it",
        advice="measure in blocks, or take one number of each boot: no test can mend it afterwards",
    )
