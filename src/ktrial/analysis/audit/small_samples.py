"""Groups with so few runs that their spread is hardly known, or with none."""

from collections.abc import Iterator, Sequence

from ktrial.model.imported import Imported
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.stats.independent import moments

FEW = 6
"""With fewer, the smallest p that a comparison by ranks or by permutation can give is above 0.2 %."""


def find(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """A file at a time: how many groups have no spread, and what the fewest runs are."""
    for file in files:
        known = [moments(group) for family in file.families for group in family.groups]
        without = [each.label for each in known if not each.testable]
        if without:
            text = f"{file.source}: {len(without)} of {len(known)} groups have a mean and no spread"
            yield DataWarning(
                kind=WarningKind.TOO_FEW_RUNS,
                text=text,
                advice="a number without its spread can be compared with nothing: publish every run",
            )
        runs = [each.runs for each in known if each.testable and each.runs is not None]
        if runs and min(runs) < FEW:
            many = f"{min(runs)}" if min(runs) == max(runs) else f"{min(runs)} to {max(runs)}"
            yield DataWarning(
                kind=WarningKind.TOO_FEW_RUNS,
                text=f"{file.source}: {many} runs a group: the spread is known to within a factor of several",
                advice="ktrial plan says how many blocks an effect needs",
            )
