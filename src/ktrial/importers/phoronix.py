"""Phoronix Test Suite's composite.xml: every run's value, from RawString."""

import json
from statistics import fmean, median
from xml.etree.ElementTree import Element

from defusedxml import DefusedXmlException, EntitiesForbidden
from defusedxml.ElementTree import ParseError, fromstring

from ktrial.importers.errors import ImportFailed, MeasurementsDamaged, NoMeasurements
from ktrial.importers.grouping import one_of_both
from ktrial.importers.protocol import SourceFile, check_groups, decimals, rounded
from ktrial.model.imported import Family, Group, Imported, Summary
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Direction
from ktrial.program_outputs.reading import number
from ktrial.program_outputs.units import direction_of

_NAMES = ("Title", "Description", "Scale", "Proportion")
"""What a result is called, in which unit it is, and which way is better: there, if empty, in every result."""
_SAME = 0.005
"""How far a result may be from the mean of its runs: outliers are dropped, and decimals."""
_DIRECTIONS = {"HIB": Direction.HIGHER, "LIB": Direction.LOWER}


class Phoronix:
    """A family for each test, a group for each identifier that the user gave."""

    name = "phoronix"
    summary = "Phoronix Test Suite: composite.xml of a saved result"
    one_group = False

    def recognises(self, file: SourceFile) -> bool:
        """Whether it has the suite's root element."""
        return "<PhoronixTestSuite" in file.text[:4096]

    def read(self, file: SourceFile) -> Imported:
        """Families and groups. XML with a document type, entities or references outside is refused."""
        root = _root(file, self.name)
        stamps = _time_stamps(root)
        conditions = _conditions(root)
        families: list[tuple[str, Family]] = []
        warnings: list[DataWarning] = []
        for result in root.iter("Result"):
            groups, problems = _groups(file, result)
            groups = [
                group.model_copy(update={"conditions": conditions.get(group.label, {})}) for group in groups
            ]
            warnings += problems
            warnings += [_incomplete(file.name, result, name) for name in _NAMES if result.find(name) is None]
            if groups:
                families.append((_text(result, "Arguments"), _family(result, groups, stamps)))
        if not families:
            raise NoMeasurements(file.path, self.name, "no result has numbers", text=file.text)
        united, of_several = _one_each(file.name, families)
        return Imported(
            source=file.name, format=self.name, families=united, warnings=(*warnings, *of_several)
        )


def _root(file: SourceFile, format: str) -> Element:
    try:
        root: Element = fromstring(file.text, forbid_dtd=True)
    except ParseError as error:
        line, column = error.position
        where = f"line {line}, column {column + 1}"
        raise MeasurementsDamaged(file=file.path, format=format, where=where, problem=str(error)) from error
    except DefusedXmlException as error:
        declaration = "entities" if isinstance(error, EntitiesForbidden) else "a document type"
        raise ImportFailed(
            f"{file.path}: the XML declares {declaration}, which no results file needs and which can harm "
            "who reads it.",
            hint="remove the document type declaration, if you trust the rest",
        ) from error
    return root


def _text(element: Element, name: str) -> str:
    return (element.findtext(name) or "").strip()


def _time_stamps(root: Element) -> dict[str, str]:
    """Identifier → when its tests were run (`2016-10-16 12:34:56`)."""
    return {
        _text(system, "Identifier"): stamp
        for system in root.iter("System")
        if (stamp := _text(system, "TimeStamp"))
    }


def _conditions(root: Element) -> dict[str, dict[str, str]]:
    """Identifier → what its system was made of: `Processor: …, Memory: …`, of hardware and software."""
    conditions: dict[str, dict[str, str]] = {}
    for system in root.iter("System"):
        text = f"{_text(system, 'Hardware')}, {_text(system, 'Software')}"
        parts = [part.partition(":") for part in text.split(", ") if ":" in part]
        facts = {name.strip(): value.strip() for name, _, value in parts if value.strip()}
        conditions[_text(system, "Identifier")] = facts
    return conditions


def _family(result: Element, groups: list[Group], stamps: dict[str, str]) -> Family:
    unit = _text(result, "Scale")
    parts = (_text(result, "Title"), _text(result, "Description"))
    name = " · ".join(part for part in parts if part) or _text(result, "Identifier") or "test"
    return Family(
        name=name,
        metric=name,
        unit=unit,
        direction=_DIRECTIONS.get(_text(result, "Proportion")) or direction_of(unit),
        groups=tuple(groups),
        run_order=_run_order(groups, stamps),
    )


def _one_each(
    source: str, families: list[tuple[str, Family]]
) -> tuple[tuple[Family, ...], tuple[DataWarning, ...]]:
    """Results of one test: those with other arguments are named by them, the others are further runs."""
    names: dict[tuple[str, str], set[str]] = {}
    for arguments, family in families:
        names.setdefault((family.name, family.unit), set()).add(arguments)
    united: dict[tuple[str, str], Family] = {}
    warnings = []
    for arguments, family in families:
        own = f" · {arguments}" if arguments and len(names[family.name, family.unit]) > 1 else ""
        family = family.model_copy(update={"name": f"{family.name}{own}", "metric": f"{family.metric}{own}"})
        before = united.setdefault((family.name, family.unit), family)
        if before is family:
            continue
        if before.groups == family.groups:
            warnings.append(_again(source, family.name, "with the same numbers: it counts once"))
            continue
        warnings.append(_again(source, family.name, "with other numbers: taken for further runs"))
        groups = {group.label: group for group in before.groups}
        for group in family.groups:
            groups[group.label] = one_of_both(groups[group.label], group) if group.label in groups else group
        united[family.name, family.unit] = before.model_copy(
            update={"groups": tuple(groups.values()), "run_order": ()}
        )
    return tuple(united.values()), tuple(warnings)


def _again(source: str, name: str, what: str) -> DataWarning:
    return DataWarning(
        kind=WarningKind.INPUT_INCOMPLETE,
        text=f"{source}: {name} is there again, {what}",
        advice="look whether results were merged twice",
    )


def _run_order(groups: list[Group], stamps: dict[str, str]) -> tuple[str, ...]:
    """The suite runs all runs of a test under one identifier, at that identifier's time."""
    if not all(group.label in stamps and group.values for group in groups):
        return ()
    ordered = sorted(groups, key=lambda group: stamps[group.label])
    return tuple(group.label for group in ordered for _ in group.values)


def _groups(file: SourceFile, result: Element) -> tuple[list[Group], list[DataWarning]]:
    groups: list[Group] = []
    warnings = []
    source, title = file.name, _text(result, "Title")
    for entry in result.iter("Entry"):
        if not _text(entry, "Identifier"):
            warnings.append(_incomplete(file.name, result, f"Identifier in entry {len(groups) + 1}"))
        label = _text(entry, "Identifier") or f"entry {len(groups) + 1}"
        check_groups(file, len(groups))
        while any(group.label == label for group in groups):
            label += " (again)"
        value, raw = _text(entry, "Value"), _text(entry, "RawString")
        pieces = [number(piece) for piece in raw.split(":")] if raw else []
        values = tuple(piece for piece in pieces if piece is not None)
        times = _run_times(_text(entry, "JSON"))
        failed = max(len(pieces), times) - len(values) if values else 0
        if values:
            groups.append(Group(label=label, values=values, failed=failed))
        elif (mean := number(value)) is not None:
            groups.append(Group(label=label, summary=Summary(mean=rounded(mean, decimals(value)))))
        else:
            warnings.append(_no_number(source, title, label, value))
        if values and (mean := number(value)) is not None and _is_other(mean, values, decimals(value)):
            warnings.append(_contradiction(source, title, label, value, values))
        if failed:
            warnings.append(_failed(source, title, label, failed, len(values)))
    return groups, warnings


def _is_other(mean: float, values: tuple[float, ...], places: int) -> bool:
    """Whether a printed result is neither the mean of its runs nor one of them."""
    of_runs = (fmean(values), median(values), min(values), max(values))
    slack = 10.0**-places + _SAME * abs(mean)
    return all(abs(mean - value) > slack for value in of_runs)


def _run_times(text: str) -> int:
    """How many runs the suite timed: more than there are values where some failed."""
    try:
        facts = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return 0
    times = facts.get("test-run-times") if isinstance(facts, dict) else None
    if isinstance(times, list):
        return len(times)
    return len([time for time in times.split(":") if time.strip()]) if isinstance(times, str) else 0


def _incomplete(source: str, result: Element, name: str) -> DataWarning:
    title = _text(result, "Title") or _text(result, "Identifier") or "a result"
    return DataWarning(
        kind=WarningKind.INPUT_INCOMPLETE,
        text=f"{source}: {title} has no {name}",
        advice="every result that the suite writes has one: look whether the file was changed",
    )


def _contradiction(
    source: str, title: str, label: str, printed: str, values: tuple[float, ...]
) -> DataWarning:
    return DataWarning(
        kind=WarningKind.IMPOSSIBLE_SUMMARY,
        text=f"{source}: {title}, {label}: Value is {printed}, and the mean of RawString {fmean(values):g}",
        advice="the runs are taken; one of the two was changed",
    )


def _failed(source: str, title: str, label: str, failed: int, good: int) -> DataWarning:
    return DataWarning(
        kind=WarningKind.FAILED_TRIALS,
        text=f"{source}: {title}, {label}: {failed} of {good + failed} runs gave no value",
        advice="the suite drops failed runs silently; find out why they failed before comparing the rest",
    )


def _no_number(source: str, title: str, label: str, value: str) -> DataWarning:
    content = "a series over time" if "," in value else "no number"
    return DataWarning(
        kind=WarningKind.INPUT_INCOMPLETE,
        text=f"{source}: {title}, {label} has {content}, and is left out",
        advice="only results with one number a run can be compared",
    )


IMPORTER = Phoronix()
