"""pyperf's JSON: one value a process (the mean of its runs), one group a file."""

import statistics

from ktrial.importers.errors import NoMeasurements
from ktrial.importers.protocol import SourceFile
from ktrial.importers.reading import direction_of, finite, is_json_object, json_object, objects, text_of
from ktrial.model.imported import Family, Group, Imported

_UNITS = {"second": "s", "byte": "B", "integer": ""}


class Pyperf:
    """A process is pyperf's trial: values inside one share its layout, and are averaged."""

    name = "pyperf"
    summary = "pyperf's JSON (python -m pyperf … -o FILE)"
    one_group = True

    def recognises(self, file: SourceFile) -> bool:
        """Whether it has what only pyperf writes."""
        return is_json_object(file) and '"benchmarks"' in file.text and '"runs"' in file.text

    def read(self, file: SourceFile) -> Imported:
        """A family for each benchmark, with one group."""
        whole = json_object(file, self.name)
        benchmarks = objects(file, self.name, "benchmarks", whole.get("benchmarks"))
        families = [self._family(file, at, each, whole) for at, each in enumerate(benchmarks)]
        present = tuple(family for family in families if family is not None)
        if not present:
            raise NoMeasurements(file=file.path, format=self.name, problem="no run has values")
        return Imported(source=file.name, format=self.name, families=present)

    def _family(
        self, file: SourceFile, at: int, benchmark: dict[str, object], whole: dict[str, object]
    ) -> Family | None:
        runs = objects(file, self.name, f"benchmarks[{at}].runs", benchmark.get("runs"))
        values = [value for run in runs if (value := _value(run)) is not None]
        if not values:
            return None
        facts = {**_facts(whole), **_facts(benchmark)}
        unit = _UNITS.get(facts.get("unit", "second"), facts.get("unit", ""))
        name = facts.get("name") or f"benchmark {at + 1}"
        group = Group(label=file.group, values=tuple(values))
        return Family(name=name, metric=name, unit=unit, direction=direction_of(unit), groups=(group,))


def _value(run: dict[str, object]) -> float | None:
    """A process's mean; None for one that only calibrated."""
    numbers = run.get("values")
    values = [finite(each) for each in numbers] if isinstance(numbers, list) else []
    kept = [value for value in values if value is not None]
    return statistics.fmean(kept) if kept else None


def _facts(benchmark: dict[str, object]) -> dict[str, str]:
    metadata = benchmark.get("metadata")
    return {key: text_of(value) for key, value in metadata.items()} if isinstance(metadata, dict) else {}


IMPORTER = Pyperf()
