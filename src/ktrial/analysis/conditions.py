"""Conditions of foreign measurements: what differs between groups besides the factor that names them."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from ktrial.model.imported import Group, Imported
from ktrial.model.warnings import DataWarning, WarningKind

_NEVER_THE_SAME = {"date"}
"""Every run has its own."""
_MOST_NAMED = 4
_MOST_OFFERED = 2
_LONGEST_LEVEL = 40
_Difference = tuple[str, str, str]
"""What differs, and how it is in the baseline and in the other group."""


def differing_conditions(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """Each file's groups against its family's first, once for all families that differ in the same way.

    Files that are not compared with each other, but have a family in common, are told apart, too.
    """
    yield from _between(files)
    for file in files:
        seen: dict[tuple[_Difference, ...], list[str]] = defaultdict(list)
        for family in file.families:
            differences = {
                difference: None
                for group in family.groups[1:]
                for difference in _differences(family.groups[0], group)
            }
            if differences:
                seen[tuple(differences)].append(family.name)
        for together, families in seen.items():
            yield _warning(file.source, families, together)


def _between(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """Conditions that differ between files that measured the same."""
    first: dict[tuple[str, str, str], tuple[str, Group]] = {}
    seen: dict[tuple[str, tuple[_Difference, ...]], list[str]] = defaultdict(list)
    for file in files:
        for family in file.families:
            for group in family.groups:
                source, before = first.setdefault(
                    (family.name, family.metric, group.label), (file.source, group)
                )
                if source != file.source and (different := tuple(_differences(before, group, labels=False))):
                    seen[f"{source} and {file.source}", different].append(family.name)
    for (sources, different), families in seen.items():
        yield _warning(
            sources,
            list(dict.fromkeys(families)),
            different,
            "what they measured differs in more than the file",
        )


def _differences(baseline: Group, group: Group, labels: bool = True) -> Iterator[_Difference]:
    """Conditions that both tell, differently; not those that the `labels` name."""
    for name, level in group.conditions.items():
        before = baseline.conditions.get(name)
        named = labels and before and _names(baseline.label, before) and _names(group.label, level)
        if before and before != level and name not in _NEVER_THE_SAME and not named:
            yield name, before, level


def _names(label: str, level: str) -> bool:
    """Whether a label says it: `block size 4k`, or `6.1` of the kernel 6.1.0-18-amd64."""
    return level in label or (bool(label) and re.match(rf"{re.escape(label)}(?![0-9])", level) is not None)


def _warning(
    source: str,
    families: Sequence[str],
    differences: Sequence[_Difference],
    what: str = "the groups differ in more than their names",
) -> DataWarning:
    names = list(dict.fromkeys(name for name, _, _ in differences))
    shown = {name: (before, level) for name, before, level in reversed(differences)}
    listed = "; ".join(
        f"{name} {_short(before)} and {_short(level)}"
        for name, (before, level) in ((name, shown[name]) for name in names[:_MOST_NAMED])
    )
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    which = families[0] if len(families) == 1 else f"{len(families)} families"
    by = " or ".join(f"--group-by '{name}'" for name in names[:_MOST_OFFERED])
    return DataWarning(
        kind=WarningKind.CONFOUND,
        text=f"{source}: {which}: {what}: {listed}{more}",
        advice=f"if that is what you compare: {by}; else measure again with the same",
    )


def _short(level: str) -> str:
    return level if len(level) <= _LONGEST_LEVEL else f"{level[:_LONGEST_LEVEL]}…"
