"""Values and measurements that occur twice: the same numbers in two groups, where every run should have
numbers of its own, and one treatment measured several times, with results that contradict each other.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from ktrial.model.imported import Family, Group, Imported
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.stats.independent import Moments, moments, welch

_FEWEST_DIGITS = 3
"""Numbers with fewer digits repeat by chance."""
_MOST_HOLDERS = 20
"""Of one value: more are no copies but a resolution."""
_MOST_REPEATS = 0.2
"""Above this share of repeated values the metric is printed too coarsely for a repeat to say anything."""

_Runs = tuple[str, str, str, str]
"""Group and run, other group and other run."""


_LEVEL = 0.01
_Key = tuple[str, str, str]
"""Metric, unit, and what the treatment is."""


def copied_values(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """Runs of two groups that share values in two metrics or more; two groups that share all of theirs."""
    for file in files:
        yield from _shared_runs(file)
        for family in file.families:
            yield from _shared_groups(file.source, family)


def _shared_runs(file: Imported) -> Iterator[DataWarning]:
    shared: dict[_Runs, list[tuple[str, float]]] = defaultdict(list)
    for family in file.families:
        if _coarse(family):
            continue
        for pair, value in _equal_values(family):
            shared[pair].append((family.metric, value))
    for (group, run, other, other_run), values in shared.items():
        if len(values) < 2:
            continue
        named = ", ".join(f"{metric} {value:g}" for metric, value in values)
        yield DataWarning(
            kind=WarningKind.COPIED_VALUES,
            text=f"{file.source}: {other}, run {other_run} repeats numbers of {group}, run {run}: {named}",
            advice="independent runs do not agree to the last digit, twice: take one of the two as lost",
        )


def _equal_values(family: Family) -> Iterator[tuple[_Runs, float]]:
    cells: dict[float, list[tuple[str, str]]] = defaultdict(list)
    for group in family.groups:
        names = group.runs or tuple(map(str, range(1, len(group.values) + 1)))
        for run, value in zip(names, group.values, strict=True):
            if _digits(value) >= _FEWEST_DIGITS:
                cells[value].append((group.label, run))
    for value, holders in cells.items():
        for (label, run), (other, other_run) in combinations(holders[:_MOST_HOLDERS], 2):
            if label != other:
                yield (label, run, other, other_run), value


def _shared_groups(source: str, family: Family) -> Iterator[DataWarning]:
    """Two groups with the same values throughout, at least three of them."""
    for at, group in enumerate(family.groups):
        for other in family.groups[at + 1 :]:
            if len(set(group.values)) >= 3 and sorted(group.values) == sorted(other.values):
                yield DataWarning(
                    kind=WarningKind.COPIED_VALUES,
                    text=f"{source}: {family.metric}: {group.label} and {other.label} have the same values",
                    advice="one of the two is a copy: measure it again",
                )


def _coarse(family: Family) -> bool:
    values = [value for group in family.groups for value in group.values]
    return len(values) - len(set(values)) > max(1.0, _MOST_REPEATS * len(values))


def _digits(value: float) -> int:
    return len(f"{value!r}".replace(".", "").replace("-", "").strip("0"))


def disagreeing_repeats(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """The default in several families, or one label in several files."""
    seen: dict[_Key, list[tuple[str, Group]]] = defaultdict(list)
    for file in files:
        for family in file.families:
            for group in family.groups:
                seen[family.metric, family.unit, _treatment(group)].append(
                    (_where(file, family, files), group)
                )
    for (metric, unit, treatment), measurements in seen.items():
        if len(measurements) > 1:
            yield from _disagreement(metric, unit, treatment, measurements)


def _treatment(group: Group) -> str:
    if group.is_default:
        return "the default"
    factors = " · ".join(f"{name}={level}" for name, level in sorted(group.factors.items()))
    return factors or group.label


def _where(file: Imported, family: Family, files: Sequence[Imported]) -> str:
    return family.name if len(files) == 1 else f"{file.source}: {family.name}"


def _disagreement(
    metric: str, unit: str, treatment: str, measurements: list[tuple[str, Group]]
) -> Iterator[DataWarning]:
    measured = [(where, moments(group)) for where, group in measurements]
    means = [each.mean for _, each in measured]
    if min(means) <= 0 or not _differ([each for _, each in measured]):
        return
    times = max(means) / min(means)
    shown = ", ".join(f"{where} {each.mean:g}" for where, each in measured)
    yield DataWarning(
        kind=WarningKind.REPEATS_DISAGREE,
        text=f"{treatment} was measured {len(measurements)} times, with means {times:.2f}-fold apart, in "
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
