"""Means, standard errors, standard deviations and run counts that cannot belong together."""

import math
from collections.abc import Iterator, Sequence

from ktrial.model.imported import Family, Group, Imported, Summary
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.stats.independent import possible_runs


def find(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """Rows for which no run count fits, or only one that none of the other rows could have."""
    for file in files:
        for family in file.families:
            ranges = {
                group.label: found
                for group in family.groups
                if group.summary is not None and (found := possible_runs(group.summary)) is not None
            }
            for group in family.groups:
                if group.label in ranges and group.summary is not None:
                    yield from _impossible(file.source, family, group, group.summary)
                    yield from _unlike_the_others(file.source, family, group, ranges)


def _impossible(source: str, family: Family, group: Group, summary: Summary) -> Iterator[DataWarning]:
    found = possible_runs(summary)
    if found is None:
        return
    least, most = found
    if summary.runs is not None and not least <= summary.runs <= most:
        problem = f"the run count is given as {summary.runs}"
    elif summary.runs is None and (most < 2 or math.ceil(least) > math.floor(most)):
        problem = "no run count fits"
    else:
        return
    yield DataWarning(
        kind=WarningKind.IMPOSSIBLE_SUMMARY,
        text=f"{_where(source, family, group)}: {problem}, but SD and standard error together say "
        f"{least:.2f} to {most:.2f} runs",
        advice="one of the numbers is misprinted: leave the row out, or go back to the runs",
    )


def _unlike_the_others(
    source: str, family: Family, group: Group, ranges: dict[str, tuple[float, float]]
) -> Iterator[DataWarning]:
    """At least four other rows, and this one's run count lies above twice what any of them allows."""
    others = [found for label, found in ranges.items() if label != group.label]
    least = ranges[group.label][0]
    usual = [most for _, most in others if math.isfinite(most)]
    if len(usual) < 4 or least <= 2 * max(usual):
        return
    yield DataWarning(
        kind=WarningKind.IMPOSSIBLE_SUMMARY,
        text=f"{_where(source, family, group)}: SD and standard error say {math.ceil(least)} runs or more, "
        f"where no other row can have more than {math.floor(max(usual))}",
        advice="the two numbers of this row may have been exchanged, or misprinted: go back to the runs",
    )


def _where(source: str, family: Family, group: Group) -> str:
    return ", ".join(part for part in (f"{source}: {family.name}", group.label) if part)
