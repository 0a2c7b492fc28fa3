"""hyperfine --export-json: every command's times.

One group a command; in a file with a label (`A=FILE`), that is the group, and each command is compared with
the same command in other files.
"""

from ktrial.importers.errors import NoMeasurements
from ktrial.importers.protocol import SourceFile
from ktrial.importers.reading import finite, is_json_object, json_object, objects, text_of
from ktrial.model.imported import Family, Group, Imported
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Direction


class Hyperfine:
    """Times in seconds. hyperfine runs all runs of one command before the next: that is the run order."""

    name = "hyperfine"
    summary = "hyperfine --export-json"
    one_group = False

    def recognises(self, file: SourceFile) -> bool:
        """Whether it has what only hyperfine writes."""
        return is_json_object(file) and '"results"' in file.text and '"command"' in file.text

    def read(self, file: SourceFile) -> Imported:
        """One family, its groups the commands; with a label, a family for each command."""
        results = objects(file, self.name, "results", json_object(file, self.name).get("results"))
        commands = _distinct([_group(result) for result in results])
        groups = [group for group in commands if group.values]
        if not groups:
            raise NoMeasurements(file=file.path, format=self.name, problem="no result has times")
        return Imported(
            source=file.name,
            format=self.name,
            families=tuple(
                _families_of_commands(file.label, groups) if file.label else [_family(file, groups)]
            ),
            warnings=_warnings(file.name, commands),
        )


def _family(file: SourceFile, groups: list[Group]) -> Family:
    return Family(
        name=file.path.stem,
        metric="time",
        unit="s",
        direction=Direction.LOWER,
        groups=tuple(groups),
        run_order=tuple(group.label for group in groups for _ in group.values),
    )


def _families_of_commands(label: str, groups: list[Group]) -> list[Family]:
    return [
        Family(
            name=group.label,
            metric="time",
            unit="s",
            direction=Direction.LOWER,
            groups=(group.model_copy(update={"label": label}),),
        )
        for group in groups
    ]


def _group(result: dict[str, object]) -> Group:
    """A command's times; no values where all of its runs failed, or it has none."""
    times = result.get("times")
    values = [finite(time) for time in times] if isinstance(times, list) else []
    codes = result.get("exit_codes")
    failures = [code != 0 for code in codes] if isinstance(codes, list) else []
    failures += [False] * (len(values) - len(failures))
    kept = [value for value, bad in zip(values, failures, strict=False) if value is not None and not bad]
    parameters = result.get("parameters")
    factors = (
        {str(key): str(value) for key, value in parameters.items()} if isinstance(parameters, dict) else {}
    )
    label = text_of(result.get("command")) or "command"
    return Group(label=label, factors=factors, values=tuple(kept), failed=len(values) - len(kept))


def _distinct(groups: list[Group]) -> list[Group]:
    """The same command twice is two groups."""
    seen: dict[str, int] = {}
    named = []
    for group in groups:
        seen[group.label] = count = seen.get(group.label, 0) + 1
        named.append(group if count == 1 else group.model_copy(update={"label": f"{group.label} ({count})"}))
    return named


def _warnings(source: str, commands: list[Group]) -> tuple[DataWarning, ...]:
    texts = [
        f"{source}: all {group.failed} runs of {group.label} ended with an error: it is left out"
        if group.failed
        else f"{source}: {group.label} has no times: it is left out"
        for group in commands
        if not group.values
    ]
    if failed := sum(group.failed for group in commands if group.values):
        texts.append(f"{source}: {failed} runs ended with an error; their times are left out")
    advice = "a command that fails does something else than one that works: mend it first"
    return tuple(DataWarning(kind=WarningKind.FAILED_TRIALS, text=text, advice=advice) for text in texts)


IMPORTER = Hyperfine()
