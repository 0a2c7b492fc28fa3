"""hyperfine --export-json: every command's times, one group a command."""

from ktrial.importers.errors import NoMeasurements
from ktrial.importers.json_text import is_json_object, json_object, objects, text_of
from ktrial.importers.numbers import finite
from ktrial.importers.protocol import SourceFile
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
        """One family, its groups the commands."""
        results = objects(file, self.name, "results", json_object(file, self.name).get("results"))
        groups = [group for result in results if (group := _group(result)) is not None]
        if not groups:
            raise NoMeasurements(file=file.path, format=self.name, problem="no result has times")
        failed = sum(group.failed for group in groups)
        family = Family(
            name=file.path.stem,
            metric="time",
            unit="s",
            direction=Direction.LOWER,
            groups=tuple(_distinct(groups)),
            run_order=tuple(group.label for group in _distinct(groups) for _ in group.values),
        )
        return Imported(
            source=file.name, format=self.name, families=(family,), warnings=_warnings(file.name, failed)
        )


def _group(result: dict[str, object]) -> Group | None:
    times = result.get("times")
    values = [finite(time) for time in times] if isinstance(times, list) else []
    codes = result.get("exit_codes")
    failures = [code != 0 for code in codes] if isinstance(codes, list) else []
    failures += [False] * (len(values) - len(failures))
    kept = [value for value, bad in zip(values, failures, strict=False) if value is not None and not bad]
    if not kept:
        return None
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


def _warnings(source: str, failed: int) -> tuple[DataWarning, ...]:
    if not failed:
        return ()
    return (
        DataWarning(
            kind=WarningKind.FAILED_TRIALS,
            text=f"{source}: {failed} runs ended with an error; their times are left out",
            advice="a command that fails does something else than one that works: mend it first",
        ),
    )


IMPORTER = Hyperfine()
