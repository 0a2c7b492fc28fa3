"""Which groups are compared: what files are called, and the conditions that `--group-by` names."""

from collections.abc import Sequence
from pathlib import Path

from ktrial.importers.errors import ImportFailed
from ktrial.model.imported import Family, Group, Imported
from ktrial.model.notation import nearest

_MOST_NAMED = 8


def names_of(paths: Sequence[Path]) -> list[str]:
    """What each file is called: without its ending, with as many folders as tell it from the others."""
    stems = [path.stem for path in paths]
    return [
        stem if stems.count(stem) == 1 else _longer(path, [other for other in paths if other.stem == stem])
        for path, stem in zip(paths, stems, strict=True)
    ]


def _longer(path: Path, others: Sequence[Path]) -> str:
    """`6.1/results` where another is `6.12/results`; with its ending where only that differs."""
    for whole in (False, True):
        for depth in range(1, len(path.parts) + 1):
            name = _end(path, depth, whole)
            if [_end(other, depth, whole) for other in others].count(name) == 1:
                return name
    return path.stem


def _end(path: Path, depth: int, whole: bool) -> str:
    return "/".join((*path.parts[-depth:-1], path.name if whole else path.stem))


def by_conditions(imported: Imported, keys: Sequence[str], path: Path) -> Imported:
    """The same, its groups named by what the keys were: `block size 4k`. Columns of a table stay in the name.

    Groups that are called alike then are one. Raises ImportFailed where a group does not tell a key.
    """
    keys = [key for key in keys if imported.format != "csv" or _tells(imported, key)]
    if not keys or not imported.families:
        return imported
    labels = {
        group.label: _label(group, keys, imported, path)
        for family in imported.families
        for group in family.groups
    }
    return imported.model_copy(
        update={
            "families": tuple(_named(family, keys, labels) for family in imported.families),
            "index_rows": tuple(
                row.model_copy(update={"group": labels.get(row.group, row.group)})
                for row in imported.index_rows
            ),
            "scores": tuple(
                score.model_copy(update={"group": labels.get(score.group, score.group)})
                for score in imported.scores
            ),
        }
    )


def _tells(imported: Imported, key: str) -> bool:
    return any(key in group.conditions for family in imported.families for group in family.groups)


def _label(group: Group, keys: Sequence[str], imported: Imported, path: Path) -> str:
    missing = next((key for key in keys if not group.conditions.get(key)), "")
    if missing:
        told = [*group.conditions][:_MOST_NAMED]
        raise ImportFailed(
            f"{path} does not tell {missing}{nearest(missing, list(group.conditions))}; "
            f"it tells: {', '.join(told) or 'no conditions'}.",
            hint="--group-by takes columns of a table, or conditions that every file tells",
        )
    columns = [*group.factors.values()] if imported.format == "csv" else []
    return " · ".join((*columns, *(f"{key} {group.conditions[key]}" for key in keys)))


def _named(family: Family, keys: Sequence[str], labels: dict[str, str]) -> Family:
    groups: dict[str, Group] = {}
    for group in family.groups:
        label = labels[group.label]
        factors = {**group.factors, **{key: group.conditions[key] for key in keys}}
        group = group.model_copy(update={"label": label, "factors": factors})
        groups[label] = one_of_both(groups[label], group) if label in groups else group
    order = tuple(labels.get(label, label) for label in family.run_order)
    return family.model_copy(update={"groups": tuple(groups.values()), "run_order": order})


def one_of_both(group: Group, addition: Group) -> Group:
    """Groups of one name are one group: its runs come from several files."""
    return addition.model_copy(
        update={
            "values": _runs_of(group) + _runs_of(addition),
            "summary": None,
            "conditions": _of_both(group.conditions, addition.conditions),
            "runs": group.runs + addition.runs,
            "failed": group.failed + addition.failed,
        }
    )


def _of_both(conditions: dict[str, str], others: dict[str, str]) -> dict[str, str]:
    """Conditions of runs out of several files; `4, 8` where they differ."""
    return {
        name: level
        if (before := conditions.get(name, level)) == level or level in before.split(", ")
        else f"{before}, {level}"
        for name, level in {**conditions, **others}.items()
    }


def _runs_of(group: Group) -> tuple[float, ...]:
    """The values; the mean of several runs of one file is one run among those of other files."""
    return group.values or ((group.summary.mean.value,) if group.summary else ())
