"""Measurements from elsewhere: one module a format.

An importer is a module here, or an entry point in the group `ktrial.importers`, with an object `IMPORTER`
that has the methods of `Importer`.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ktrial import plugin_discovery, program_outputs
from ktrial.importers.errors import FormatUnknown
from ktrial.importers.labels import as_labelled
from ktrial.importers.program_output import ProgramOutput
from ktrial.importers.protocol import Choices, Importer, SourceFile
from ktrial.importers.reading import LARGEST_MIB, source_file
from ktrial.model.imported import Family, Imported
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.program_outputs.numbers import in_unit, same_time_unit

_GROUP = "ktrial.importers"
_LAST = "csv"
"""Nearly every text could be a table: it is asked last."""


@cache
def installed() -> tuple[dict[str, Importer], tuple[DataWarning, ...]]:
    """Every importer by its name, sorted, and a warning for each plugin that is broken.

    Each format of what programs print is one.
    """
    formats, told = program_outputs.installed()
    own: dict[str, Importer] = {name: ProgramOutput(each) for name, each in formats.items()}
    known, warnings = plugin_discovery.installed(_GROUP, "importer", "IMPORTER", (__name__,), _check, own)
    return known, (*told, *warnings)


def read(file: SourceFile) -> tuple[Importer, Imported]:
    """What is in a file, and who read it. Raises FormatUnknown, and what the importer raises."""
    importers = sorted(installed()[0].values(), key=lambda each: each.name == _LAST)
    for importer in importers:
        if importer.recognises(file):
            return importer, importer.read(file)
    known = "; ".join(importer.summary for importer in importers)
    raise FormatUnknown(file=file.path, known=known)


def read_all(paths: Sequence[tuple[str, Path]], choices: Choices) -> tuple[Imported, ...]:
    """Several files, each with the label that the user gave it (or an empty one).

    Files that hold one group each are put together, so that their groups are compared: those of importers of
    such files, and those that became one group by their label (see `labels`). A label that says nothing is
    told. Raises what reading raises.
    """
    alone: list[Imported] = []
    together: dict[str, list[tuple[str, Imported]]] = {}
    for label, path in paths:
        importer, imported = read(source_file(path, label, choices))
        if label and label not in _labels(imported):
            imported = imported.model_copy(
                update={"warnings": (*imported.warnings, _unused(label, imported))}
            )
        elif label or importer.one_group:
            together.setdefault(importer.name, []).append((label, imported))
            continue
        alone.append(imported)
    return (*alone, *(_joined(as_labelled(files)) for files in together.values()))


def _labels(imported: Imported) -> set[str]:
    groups = {group.label for family in imported.families for group in family.groups}
    return groups | {row.group for row in imported.index_rows}


def _unused(label: str, imported: Imported) -> DataWarning:
    return DataWarning(
        kind=WarningKind.INPUT_INCOMPLETE,
        text=f"{imported.source}: the label {label} is not used: the file names its groups itself",
        advice="leave it out, or give files with one group each",
    )


_Key = tuple[str, str, str]


def _joined(files: list[Imported]) -> Imported:
    files = _in_one_unit(files)
    families: dict[_Key, Family] = {}
    for file in files:
        for family in file.families:
            families[_key(family)] = _with(families.get(_key(family)), family)
    orders = _run_orders(files)
    return Imported(
        source=", ".join(file.source for file in files),
        format=files[0].format,
        families=tuple(
            family.model_copy(update={"run_order": orders.get(key, ())}) for key, family in families.items()
        ),
        index_rows=tuple(row for file in files for row in file.index_rows),
        scores=tuple(score for file in files for score in file.scores),
        warnings=tuple(warning for file in files for warning in file.warnings),
        started=files[0].started,
    )


def _key(family: Family) -> _Key:
    return family.name, family.metric, family.unit


def _in_one_unit(files: list[Imported]) -> list[Imported]:
    """The files, a metric's times in the unit of the first that has it: a tool may write us or ms."""
    units: dict[tuple[str, str], str] = {}
    converted = []
    for file in files:
        families = []
        for family in file.families:
            unit = units.setdefault((family.name, family.metric), family.unit)
            families.append(_in_unit(family, unit) if same_time_unit(unit, family.unit) else family)
        converted.append(file.model_copy(update={"families": tuple(families)}))
    return converted


def _in_unit(family: Family, unit: str) -> Family:
    groups = tuple(
        group.model_copy(update={"values": tuple(in_unit(each, family.unit, unit) for each in group.values)})
        for group in family.groups
    )
    return family.model_copy(update={"unit": unit, "groups": groups})


def _run_orders(files: list[Imported]) -> dict[_Key, tuple[str, ...]]:
    """Each family's labels in the order of their runs, where every file says when it began."""
    dated = [(file.started, at, file) for at, file in enumerate(files) if file.started is not None]
    if len(dated) < len(files):
        return {}
    orders: dict[_Key, tuple[str, ...]] = {}
    for _, _, file in sorted(dated, key=lambda each: each[:2]):
        for family in file.families:
            labels = tuple(group.label for group in family.groups for _ in group.values)
            orders[_key(family)] = orders.get(_key(family), ()) + labels
    return orders


def _with(one: Family | None, other: Family) -> Family:
    """Groups of one label are one group: its runs come from several files."""
    if one is None:
        return other
    groups = {group.label: group for group in one.groups}
    for group in other.groups:
        before = groups.get(group.label)
        if before is not None:
            group = group.model_copy(
                update={
                    "values": before.values + group.values,
                    "runs": before.runs + group.runs,
                    "failed": before.failed + group.failed,
                }
            )
        groups[group.label] = group
    return one.model_copy(update={"groups": tuple(groups.values())})


def _check(name: str, extension: object) -> tuple[str, Importer]:
    if not isinstance(extension, Importer):
        raise TypeError(f"{name} is no importer")
    return extension.name, extension


__all__ = [
    "LARGEST_MIB",
    "Choices",
    "Importer",
    "SourceFile",
    "installed",
    "read",
    "read_all",
    "source_file",
]
