"""Measurements from elsewhere: one module a format.

An importer is a module here, or an entry point in the group `ktrial.importers`, with an object `IMPORTER`
that has the methods of `Importer`.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ktrial import plugin_discovery, program_outputs
from ktrial.importers.directories import ResultFile, files_of
from ktrial.importers.errors import ImportFailed, MeasurementsDamaged, NoMeasurements
from ktrial.importers.grouping import by_conditions, names_of, one_of_both
from ktrial.importers.machine_load import ReadFile, as_conditions
from ktrial.importers.protocol import LARGEST_MIB, Choices, Importer, SourceFile, source_file
from ktrial.model.imported import Family, Group, Imported, Rounded, Summary
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.program_outputs import Measured, OutputDamaged, OutputEmpty, OutputFormat, Report
from ktrial.program_outputs.logs import read_log
from ktrial.program_outputs.places import extent, line_of, names_line
from ktrial.program_outputs.units import converted, converts
from ktrial.text_lines import lines_of

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
_GROUP = "ktrial.importers"
_LAST = "csv"
_OF_GROUPS = ("csv", "phoronix")
"""What holds several groups as a rule: a file of one is compared with others like it."""
"""Nearly every text could be a table: it is asked last."""
_SAME = "give the same names to what is to be compared, or files of one command or benchmark each"
_Key = tuple[str, str, str]


@cache
def installed() -> tuple[dict[str, Importer], tuple[DataWarning, ...]]:
    """Every importer by its name, sorted, and a warning for each plugin that is broken.

    Each format of what programs print is one.
    """
    formats, format_warnings = program_outputs.installed()
    by_format: dict[str, Importer] = {name: ProgramOutput(format) for name, format in formats.items()}
    importers, warnings = plugin_discovery.installed(
        _GROUP, "importer", "IMPORTER", (__name__,), _check, by_format
    )
    return importers, (*format_warnings, *warnings)


def _check(name: str, extension: object) -> tuple[str, Importer]:
    if not isinstance(extension, Importer):
        raise TypeError(f"{name} is no importer")
    return extension.name, extension


def read(file: SourceFile) -> tuple[Importer, Imported]:
    """What is in a file, and who read it. Raises ImportFailed."""
    importers = sorted(installed()[0].values(), key=lambda importer: importer.name == _LAST)
    for importer in importers:
        if importer.name == _LAST and file.path.suffix == ".toml":
            raise ImportFailed(
                f"{file.path} is TOML: a study file has questions, and no results yet.",
                hint=f"ktrial run {shlex.quote(str(file.path))} measures a study, and analyses it, too",
            )
        if importer.recognises(file):
            return importer, importer.read(file)
    first = next((at for at, line in enumerate(lines_of(file.text), start=1) if line.strip()), 1)
    raise ImportFailed(
        f"{file.path}, line {first}: this is in no format that ktrial reads.",
        hint="ktrial workload formats lists what is read; a CSV file with a header, a column that names the "
        "groups and one of numbers always works",
    )


def read_all(paths: Sequence[tuple[str, Path]], choices: Choices) -> tuple[Imported, ...]:
    """Several files, each with the label that the user gave it (or an empty one).

    Files that hold one group each are put together, so that their groups are compared: those of importers of
    such files, and those that became one group by their label (see `labels`). A label that says nothing is
    told. Raises what reading raises.
    """
    alone: list[Imported] = []
    together: dict[str, list[tuple[str, Imported]]] = {}
    files = as_conditions(_each_read(files_of(paths), choices), choices.value)
    given: dict[tuple[str, Path], str] = {}
    for label, name, path, importer, imported in files:
        if (
            given.setdefault((label, path.resolve()), name) != name
            or sum((other, where.resolve()) == (label, path.resolve()) for other, _, where, *_ in files) > 1
        ):
            imported = _warned(imported, f"{path.name} is given twice: its runs count twice", "name it once")
        conditioned = by_conditions(imported, choices.group_by, path)
        if conditioned is not imported:
            together.setdefault(importer.name, []).append((label, conditioned))
            continue
        if _is_one_group(imported) and sum(other is importer for *_, other, _ in files) > 1:
            named = _with_label(imported, label) if label else imported
            together.setdefault(importer.name, []).append((label or name, named))
            continue
        if label and label not in _labels(imported):
            imported = imported.model_copy(
                update={"warnings": (*imported.warnings, _unused(label, imported))}
            )
        elif label or importer.one_group:
            together.setdefault(importer.name, []).append((label, imported))
            continue
        alone.append(imported)
    return (*alone, *(_joined(as_labelled(_told_apart(labelled))) for labelled in together.values()))


def _each_read(files: Sequence[ResultFile], choices: Choices) -> list[ReadFile]:
    """A suite's log that cannot be read is told where others can be. Raises ImportFailed."""
    choices = replace(choices, several=len(files) > 1)
    read_files = list[ReadFile]()
    refused = list[ImportFailed]()
    for file, name in zip(files, names_of([file.path for file in files]), strict=True):
        try:
            importer, imported = read(source_file(file.path, file.label, replace(choices, name=name)))
        except ImportFailed as error:
            if not file.part:
                raise
            refused.append(error)
            continue
        if file.note:
            advice = "compare-kernels.sh prints a table of all benchmarks"
            imported = _warned(imported, f"{file.label}: {file.note}", advice)
        read_files.append(ReadFile(file.label, name, file.path, importer, _of_part(imported, file.part)))
    if refused and not read_files:
        raise refused[0]
    for problem in refused:
        first = read_files[0]
        failed = DataWarning(kind=WarningKind.FAILED_TRIALS, text=str(problem), advice=problem.advice)
        warnings = (*first.imported.warnings, failed)
        read_files[0] = first._replace(imported=first.imported.model_copy(update={"warnings": warnings}))
    return read_files


def _of_part(imported: Imported, part: str) -> Imported:
    """The same, with what was measured before each family's name."""
    if not part:
        return imported
    families = tuple(
        family.model_copy(update={"name": f"{part}: {family.name}"}) for family in imported.families
    )
    return imported.model_copy(update={"families": families})


def _is_one_group(imported: Imported) -> bool:
    """Whether it is a table or a suite's result of one treatment: only other files have another one."""
    several = imported.format in _OF_GROUPS and not imported.index_rows and bool(imported.families)
    return several and len(_labels(imported)) == 1


def _with_label(imported: Imported, label: str) -> Imported:
    """The same, its only group called otherwise."""
    families = tuple(
        family.model_copy(
            update={
                "groups": tuple(
                    group.model_copy(update={"label": label, "factors": {}}) for group in family.groups
                ),
                "run_order": tuple(label for _ in family.run_order),
            }
        )
        for family in imported.families
    )
    return imported.model_copy(update={"families": families})


def _told_apart(files: list[tuple[str, Imported]]) -> list[tuple[str, Imported]]:
    """Files of one group each whose groups have one name, although nobody gave it: each is a group."""
    labels = [next(iter(_labels(imported)), "") for _, imported in files]
    if files[0][1].format not in _OF_GROUPS or len(set(labels)) == len(labels):
        return files
    return [
        (
            label,
            imported if own == label or labels.count(own) == 1 else _with_label(imported, f"{own} ({label})"),
        )
        for own, (label, imported) in zip(labels, files, strict=True)
    ]


def _labels(imported: Imported) -> set[str]:
    groups = {group.label for family in imported.families for group in family.groups}
    return groups | {row.group for row in imported.index_rows}


def _unused(label: str, imported: Imported) -> DataWarning:
    return DataWarning(
        kind=WarningKind.INPUT_INCOMPLETE,
        text=f"{imported.source}: the label {label} is not used: the file names its groups itself",
        advice="leave it out, or give files with one group each",
    )


# --- Several files of one importer are put together.


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
        understood=files[0].understood,
        started=files[0].started,
    )


def _key(family: Family) -> _Key:
    return family.name, family.metric, family.unit


def _in_one_unit(files: list[Imported]) -> list[Imported]:
    """The files, each metric in the unit of the first that has it: a tool may write us or ms."""
    units: dict[tuple[str, str], str] = {}
    converted = []
    for file in files:
        families = []
        for family in file.families:
            unit = units.setdefault((family.name, family.metric), family.unit)
            families.append(_in_unit(family, unit) if converts(unit, family.unit) else family)
        converted.append(file.model_copy(update={"families": tuple(families)}))
    return converted


def _in_unit(family: Family, unit: str) -> Family:
    groups = tuple(
        group.model_copy(
            update={
                "values": tuple(converted(value, family.unit, unit) for value in group.values),
                "summary": _summary_in(group.summary, family.unit, unit),
            }
        )
        for group in family.groups
    )
    return family.model_copy(update={"unit": unit, "groups": groups})


def _summary_in(summary: Summary | None, before: str, unit: str) -> Summary | None:
    if summary is None:
        return None
    parts = {
        name: Rounded(
            value=converted(part.value, before, unit), half_unit=converted(part.half_unit, before, unit)
        )
        for name in ("mean", "standard_error", "sd")
        if (part := getattr(summary, name)) is not None
    }
    return summary.model_copy(update=parts)


def _run_orders(files: list[Imported]) -> dict[_Key, tuple[str, ...]]:
    """Each family's labels in the order of their runs, where every file says when it began."""
    dated = [(file.started, at, file) for at, file in enumerate(files) if file.started is not None]
    if len(dated) < len(files):
        return {}
    orders: dict[_Key, tuple[str, ...]] = {}
    for _, _, file in sorted(dated, key=lambda row: row[:2]):
        for family in file.families:
            labels = tuple(group.label for group in family.groups for _ in group.values)
            orders[_key(family)] = orders.get(_key(family), ()) + labels
    return orders


def _with(family: Family | None, addition: Family) -> Family:
    """Groups of one label are one group: its runs come from several files."""
    if family is None:
        return addition
    groups = {group.label: group for group in family.groups}
    for group in addition.groups:
        before = groups.get(group.label)
        groups[group.label] = one_of_both(before, group) if before else group
    return family.model_copy(update={"groups": tuple(groups.values())})


# --- Labels that the user gave to files: what they say is compared, also where the files name it differently.


def as_labelled(files: Sequence[tuple[str, Imported]]) -> list[Imported]:
    """The files of one importer, each with its label, ready to be put together.

    Files of one thing each are compared whatever it is called in them, which is told. Where they hold several
    and none is in two of them, nothing can be compared: that is told, and what to do.
    """
    read = [imported for _, imported in files]
    if len({label for label, _ in files}) < 2 or not all(label for label, _ in files) or _shared(read):
        return read
    if all(_alike(labelled, read[0]) for labelled in read):
        return _under_one_name(files)
    text = f"nothing is in two of the files, so nothing is compared: {_contents(files)}"
    return [*read[:-1], _warned(read[-1], text, _SAME)]


def _shared(files: Sequence[Imported]) -> bool:
    """Whether anything is in two files under the same name."""
    names = [name for file in files for name in {family.name for family in file.families}]
    return len(set(names)) < len(names)


def _alike(file: Imported, first: Imported) -> bool:
    """Whether both hold one thing, in units and with a direction that can be compared."""
    if (len(file.families), len(first.families)) != (1, 1) or file.index_rows or file.scores:
        return False
    (family,), (first_family,) = file.families, first.families
    units = family.unit == first_family.unit or converts(family.unit, first_family.unit)
    return units and family.direction is first_family.direction


def _under_one_name(files: Sequence[tuple[str, Imported]]) -> list[Imported]:
    name = " and ".join(single.families[0].name for _, single in files)
    read = [
        imported.model_copy(update={"families": (_named(imported.families[0], name),)})
        for _, imported in files
    ]
    text = f"what the labels name is compared, but not the same was measured: {_contents(files)}"
    return [*read[:-1], _warned(read[-1], text, "without labels each file stands for itself")]


def _named(family: Family, name: str) -> Family:
    return family.model_copy(update={"name": name, "metric": name})


def _contents(files: Sequence[tuple[str, Imported]]) -> str:
    return "; ".join(
        f"{label} has {', '.join(family.name for family in imported.families) or 'nothing'}"
        for label, imported in files
    )


def _warned(file: Imported, text: str, advice: str) -> Imported:
    warning = DataWarning(kind=WarningKind.INPUT_INCOMPLETE, text=text, advice=advice)
    return file.model_copy(update={"warnings": (*file.warnings, warning)})


# --- What programs print, as files: each format of `ktrial.program_outputs` is an importer.


@dataclass(frozen=True)
class ProgramOutput:
    """The importer of one format."""

    format: OutputFormat

    @property
    def name(self) -> str:
        """The format's."""
        return self.format.name

    @property
    def summary(self) -> str:
        """The format's."""
        return self.format.summary

    @property
    def one_group(self) -> bool:
        """Whether files are compared with each other; else what one file holds."""
        return not self.format.of_groups

    def recognises(self, file: SourceFile) -> bool:
        """Whether it looks like what this program prints."""
        return self.format.recognises(file.text)

    def read(self, file: SourceFile) -> Imported:
        """A family for each metric, its only group the file; or its groups what the file compares.

        Raises ImportFailed.
        """
        try:
            report = read_log(file.text, self.format)
        except OutputDamaged as error:
            line = line_of(file.text, error.where, error.problem)
            place = extent(file.text, error.problem) if line is None else f"line {line}"
            where = error.where if names_line(error.where) else f"{place}, {error.where}"
            raise MeasurementsDamaged(file.path, self.name, where, error.problem) from error
        except OutputEmpty as error:
            raise NoMeasurements(file.path, self.name, error.problem, text=file.text) from error
        in_groups = self.format.of_groups and not file.label
        families = _of_groups(file, report) if in_groups else _of_metrics(file, report)
        return Imported(
            source=file.name,
            format=self.name,
            families=families,
            warnings=tuple(_warnings(file.name, report)),
            understood=_understood(report),
        )


def _understood(report: Report) -> str:
    """What is read and what is not, where an output has more numbers than are read."""
    metrics = ", ".join(dict.fromkeys(measured.metric for measured in report.measured))
    return f"numbers {metrics}; not read {', '.join(report.unread)}" if report.unread else ""


def _of_metrics(file: SourceFile, report: Report) -> tuple[Family, ...]:
    """A metric that is the only one is called as what was measured."""
    alone = len({metric.metric for metric in report.measured}) == 1
    return tuple(
        _family(
            measurement,
            measurement.of if alone and measurement.of else name,
            (_group(measurement, file.group, report),),
        )
        for name, measurement in report.named().items()
    )


def _of_groups(file: SourceFile, report: Report) -> tuple[Family, ...]:
    families: dict[str, list[Measured]] = {}
    for number in report.measured:
        families.setdefault(number.metric, []).append(number)
    return tuple(
        _family(
            columns[0], file.path.stem, tuple(_group(measured, measured.of, report) for measured in columns)
        ).model_copy(
            update={
                "metric": metric,
                "run_order": tuple(measurement.of for measurement in columns for _ in measurement.values),
            }
        )
        for metric, columns in families.items()
    )


def _family(measured: Measured, name: str, groups: tuple[Group, ...]) -> Family:
    return Family(name=name, metric=name, unit=measured.unit, direction=measured.direction, groups=groups)


def _group(measured: Measured, label: str, report: Report) -> Group:
    factors, spread = dict(measured.parameters), measured.spread
    conditions = {**report.conditions, **measured.conditions}
    group = Group(label=label, factors=factors, failed=measured.failed, conditions=conditions)
    if spread is None:
        return group.model_copy(update={"values": measured.values})
    summary = Summary(
        mean=Rounded(value=measured.values[0], half_unit=spread.half_unit),
        standard_error=Rounded(value=spread.standard_error, half_unit=spread.error_half_unit),
        runs=spread.runs,
    )
    return group.model_copy(update={"summary": summary})


def _warnings(source: str, report: Report) -> list[DataWarning]:
    kinds = {WarningKind.FAILED_TRIALS: report.failures, WarningKind.INPUT_INCOMPLETE: report.notes}
    return [
        DataWarning(kind=kind, text=f"{source}: {remark.text}", advice=remark.advice)
        for kind, remarks in kinds.items()
        for remark in remarks
    ]
