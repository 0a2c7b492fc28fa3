"""What a machine did meanwhile (vmstat, sadf) is a condition of results with the same label, no result."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ktrial.importers.errors import ImportFailed
from ktrial.importers.protocol import Importer
from ktrial.model.imported import Family, Imported
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.program_outputs.machine_load import FORMATS


class ReadFile(NamedTuple):
    """A file as it was read."""

    label: str
    name: str
    path: Path
    importer: Importer
    imported: Imported


def as_conditions(files: Sequence[ReadFile], value: str) -> list[ReadFile]:
    """The results, with what the machine did as their conditions; `value` makes it a result.

    Raises ImportFailed where there are no results beside it, or the value is none of its own.
    """
    loads = [file for file in files if file.importer.name in FORMATS]
    results = [file for file in files if file not in loads]
    if not loads:
        return list(files)
    names = list(dict.fromkeys(family.metric for file in loads for family in file.imported.families))
    if value in names or (value and not results):
        return [*results, *(_only(file, value) for file in loads)]
    if not results:
        raise ImportFailed(
            f"{loads[0].path}, line 1: this tells what a machine did, which is no result.",
            hint=f"give it beside results, with their label; or --value with one of: {', '.join(names)}",
        )
    labels = {group.label for file in results for family in file.imported.families for group in family.groups}
    unused = [file.name for file in loads if (file.label or file.name) not in labels]
    told = [_with_conditions(file, loads) for file in results]
    return [_told(told[0], unused), *told[1:]] if unused else told


def _only(file: ReadFile, value: str) -> ReadFile:
    families = tuple(family for family in file.imported.families if family.metric == value)
    if not families:
        names = ", ".join(family.metric for family in file.imported.families)
        raise ImportFailed(f"{file.name} has no number {value}.", hint=f"--value takes one of: {names}")
    return file._replace(imported=file.imported.model_copy(update={"families": families}))


def _with_conditions(file: ReadFile, loads: Sequence[ReadFile]) -> ReadFile:
    families = tuple(_of_family(family, loads) for family in file.imported.families)
    return file._replace(imported=file.imported.model_copy(update={"families": families}))


def _of_family(family: Family, loads: Sequence[ReadFile]) -> Family:
    conditions = {(load.label or load.name): _conditions(load) for load in loads}
    groups = tuple(
        group.model_copy(update={"conditions": {**conditions.get(group.label, {}), **group.conditions}})
        for group in family.groups
    )
    return family.model_copy(update={"groups": groups})


def _conditions(load: ReadFile) -> dict[str, str]:
    return next((dict(family.groups[0].conditions) for family in load.imported.families), {})


def _told(file: ReadFile, unused: list[str]) -> ReadFile:
    warning = DataWarning(
        kind=WarningKind.INPUT_INCOMPLETE,
        text=f"what the machine did in {', '.join(unused)} belongs to no group",
        advice="give it the label of one: LABEL=FILE",
    )
    warnings = (*file.imported.warnings, warning)
    return file._replace(imported=file.imported.model_copy(update={"warnings": warnings}))
