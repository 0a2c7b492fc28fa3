"""Google Benchmark's JSON (--benchmark_format=json): one value a repetition, one group a file."""

from collections import defaultdict

from ktrial.importers.errors import NoMeasurements
from ktrial.importers.protocol import SourceFile
from ktrial.importers.reading import finite, is_json_object, json_object, objects, text_of
from ktrial.model.imported import Family, Group, Imported
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Direction


class GoogleBenchmark:
    """Real time an iteration. Aggregates (mean, median, stddev) are left out: they are made from the rest."""

    name = "google-benchmark"
    summary = "Google Benchmark's JSON (--benchmark_out=FILE --benchmark_repetitions=N)"
    one_group = True

    def recognises(self, file: SourceFile) -> bool:
        """Whether it has what only Google Benchmark writes."""
        return is_json_object(file) and '"benchmarks"' in file.text and '"real_time"' in file.text

    def read(self, file: SourceFile) -> Imported:
        """A family for each benchmark, with one group."""
        rows = objects(file, self.name, "benchmarks", json_object(file, self.name).get("benchmarks"))
        values: dict[tuple[str, str], list[float]] = defaultdict(list)
        failed = 0
        for row in rows:
            if row.get("run_type") == "aggregate":
                continue
            time = finite(row.get("real_time"))
            failed += bool(row.get("error_occurred"))
            if time is not None and not row.get("error_occurred"):
                name = text_of(row.get("run_name")) or text_of(row.get("name")) or "benchmark"
                values[name, text_of(row.get("time_unit")) or "ns"].append(time)
        if not values:
            raise NoMeasurements(file=file.path, format=self.name, problem="no benchmark has a real_time")
        return Imported(
            source=file.name,
            format=self.name,
            families=tuple(_family(file.group, *key, times) for key, times in values.items()),
            warnings=_warnings(file.name, failed),
        )


def _family(group: str, name: str, unit: str, values: list[float]) -> Family:
    only = Group(label=group, values=tuple(values))
    return Family(name=name, metric=name, unit=unit, direction=Direction.LOWER, groups=(only,))


def _warnings(source: str, failed: int) -> tuple[DataWarning, ...]:
    if not failed:
        return ()
    text = f"{source}: {failed} benchmarks report an error; they are left out"
    return (DataWarning(kind=WarningKind.FAILED_TRIALS, text=text, advice="look at their error_message"),)


IMPORTER = GoogleBenchmark()
