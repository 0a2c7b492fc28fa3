"""Groups whose runs are all alike: a coarse clock or print hides how much they scatter."""

from collections.abc import Iterator, Sequence

from ktrial.model.imported import Family, Imported
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.stats.independent import moments


def groups_alike(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """A family at a time, with what is made of such groups. Families in blocks have a check of their own."""
    for file in files:
        for family in file.families:
            alike = [] if family.blocked else _alike(family)
            if alike:
                where = ", ".join(dict.fromkeys(part for part in (family.name, family.metric) if part))
                yield DataWarning(
                    kind=WarningKind.SPREAD_UNKNOWN,
                    text=f"{file.source}: {where}: all runs are alike in {', '.join(alike)}: the resolution "
                    "of the numbers hides how much they scatter; Welch's analysis of variance and Games and "
                    "Howell's intervals are without them, Fisher's is with them",
                    advice="run more, or longer, or print more digits: five equal runs get no verdict",
                )


def _alike(family: Family) -> list[str]:
    known = [moments(group) for group in family.groups]
    return [each.label for each in known if each.testable and not each.sd]
