"""Measurements from elsewhere: one module a format.

An importer is a module here, or an entry point in the group `ktrial.importers`, with an object `IMPORTER`
that has the methods of `Importer`.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ktrial import extensions
from ktrial.errors import FormatUnknown
from ktrial.importers.protocol import Choices, Importer, SourceFile
from ktrial.importers.reading import LARGEST_MIB, source_file
from ktrial.model.advice import DataWarning
from ktrial.model.measurements import Family, Imported

_GROUP = "ktrial.importers"
_LAST = "csv"
"""Nearly every text could be a table: it is asked last."""


@cache
def found() -> tuple[dict[str, Importer], tuple[DataWarning, ...]]:
    """Every importer by its name, sorted, and a warning for each plugin that is broken."""
    own = dict(_check(*item) for item in extensions.built_in(__name__, "IMPORTER").items())
    return extensions.outside(_GROUP, "importer", _check, own)


def read(file: SourceFile) -> tuple[Importer, Imported]:
    """What is in a file, and who read it. Raises FormatUnknown, and what the importer raises."""
    importers = sorted(found()[0].values(), key=lambda each: each.name == _LAST)
    for importer in importers:
        if importer.recognises(file):
            return importer, importer.read(file)
    known = "; ".join(importer.summary for importer in importers)
    raise FormatUnknown(file=file.path, known=known)


def read_all(paths: Sequence[tuple[str, Path]], choices: Choices) -> tuple[Imported, ...]:
    """Several files, each with the label that the user gave it (or an empty one).

    Files that hold one group each are put together, so that their groups are compared. Raises what reading
    raises.
    """
    alone: list[Imported] = []
    together: dict[str, list[Imported]] = {}
    for label, path in paths:
        importer, imported = read(source_file(path, label, choices))
        if importer.one_group:
            together.setdefault(importer.name, []).append(imported)
        else:
            alone.append(imported)
    return (*alone, *(_joined(files) for files in together.values()))


def _joined(files: list[Imported]) -> Imported:
    families: dict[tuple[str, str, str], Family] = {}
    if all(file.started is not None for file in files):
        files = sorted(files, key=lambda file: (file.started is None, file.started))
        files = [_ordered(file) for file in files]
    for file in files:
        for family in file.families:
            key = (family.name, family.metric, family.unit)
            families[key] = _with(families[key], family) if key in families else family
    return Imported(
        source=", ".join(file.source for file in files),
        format=files[0].format,
        families=tuple(families.values()),
        index_rows=tuple(row for file in files for row in file.index_rows),
        scores=tuple(score for file in files for score in file.scores),
        warnings=tuple(warning for file in files for warning in file.warnings),
        started=files[0].started,
    )


def _ordered(file: Imported) -> Imported:
    """The file's runs in the order in which they stand there."""
    families = tuple(
        family.model_copy(
            update={"run_order": tuple(group.label for group in family.groups for _ in group.values)}
        )
        for family in file.families
    )
    return file.model_copy(update={"families": families})


def _with(one: Family, other: Family) -> Family:
    """Groups of one label are one group: its runs come from several files."""
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
    order = one.run_order + other.run_order
    return one.model_copy(update={"groups": tuple(groups.values()), "run_order": order})


def _check(name: str, found: object) -> tuple[str, Importer]:
    if not isinstance(found, Importer):
        raise TypeError(f"{name} is no importer")
    return found.name, found


__all__ = [
    "LARGEST_MIB",
    "Choices",
    "Importer",
    "SourceFile",
    "found",
    "read",
    "read_all",
    "source_file",
]
