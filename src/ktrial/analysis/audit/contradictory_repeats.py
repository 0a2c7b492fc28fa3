"""One treatment that was measured several times, with results that contradict each other."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ktrial.model.imported import Family, Group, Imported
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.stats.independent import Moments, moments, welch

_LEVEL = 0.01
_Key = tuple[str, str, str]
"""Metric, unit, and what the treatment is."""


def find(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """The default in several families, or one label in several files."""
    seen: dict[_Key, list[tuple[str, Group]]] = defaultdict(list)
    for file in files:
        for family in file.families:
            for group in family.groups:
                seen[family.metric, family.unit, _treatment(group)].append(
                    (_where(file, family, files), group)
                )
    for (metric, unit, treatment), found in seen.items():
        if len(found) > 1:
            yield from _disagreement(metric, unit, treatment, found)


def _treatment(group: Group) -> str:
    if group.is_default:
        return "the default"
    factors = " · ".join(f"{name}={level}" for name, level in sorted(group.factors.items()))
    return factors or group.label


def _where(file: Imported, family: Family, files: Sequence[Imported]) -> str:
    return family.name if len(files) == 1 else f"{file.source}: {family.name}"


def _disagreement(
    metric: str, unit: str, treatment: str, found: list[tuple[str, Group]]
) -> Iterator[DataWarning]:
    measured = [(where, moments(group)) for where, group in found]
    means = [each.mean for _, each in measured]
    if min(means) <= 0 or not _differ([each for _, each in measured]):
        return
    times = max(means) / min(means)
    shown = ", ".join(f"{where} {each.mean:g}" for where, each in measured)
    yield DataWarning(
        kind=WarningKind.REPEATS_DISAGREE,
        text=f"{treatment} was measured {len(found)} times, with means {times:.2f}-fold apart, in "
        f"{unit or metric}: {shown}",
        advice="something else than the factors changed between the measurements, by this much: smaller "
        "effects show nothing",
    )


def _differ(groups: list[Moments]) -> bool:
    """Whether the means differ beyond their own spread; without a spread, by more than 5 %."""
    testable = [group for group in groups if group.testable and group.sd]
    if len(testable) < 2:
        means = [group.mean for group in groups]
        return max(means) > 1.05 * min(means)
    return welch(testable).p < _LEVEL
