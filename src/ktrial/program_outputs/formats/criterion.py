"""criterion's files of one benchmark: estimates.json, sample.json, raw.csv (criterion.rs, src/analysis)."""

import csv
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.keys import KeyPatterns
from ktrial.program_outputs.reading import has_keys, json_report, measured, object_of
from ktrial.program_outputs.units import converted, converts
from ktrial.text_lines import lines_of

_TIME = Column("time", "ns", Direction.LOWER)
_HEADER = "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count"
_OLD_HEADER = "group,function,value,sample_time_nanos,iteration_count"
"""That of criterion 0.2."""
_ONE_PROCESS = Note(
    "its samples are of one process: what differs between processes is not in it",
    "run the benchmark several times, and keep each run's files",
)
_SIZES = 10
"""Numbers of samples are multiples of it, where nobody asked for another."""
_SLACK = 1e-6
_KEYS = KeyPatterns(
    measurements=(
        "{slope,mean}/{point_estimate,standard_error}",
        "{slope,mean}/confidence_interval/*",
        "{iters,times,sampling_mode}",
    ),
    decoration=(
        "{median,median_abs_dev,std_dev}/{point_estimate,standard_error}",
        "{median,median_abs_dev,std_dev}/confidence_interval/*",
    ),
)


class Criterion:
    """The time of one iteration: of each sample, or as criterion estimates it."""

    name = "criterion"
    summary = "criterion's target/criterion/BENCHMARK/new/estimates.json, sample.json or raw.csv"
    columns = (_TIME,)
    remarks = (
        "of sample.json and raw.csv each sample's time by its iterations, all of one process, which is told; "
        "of estimates.json the slope, or the mean where there is none. The files of JSON have no name in "
        "them. Other measurements than time are refused"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has what only criterion writes."""
        return (
            has_keys(text, "median_abs_dev", "point_estimate")
            or has_keys(text, "sampling_mode", "iters", "times")
            or text.lstrip().startswith((_HEADER, _OLD_HEADER))
        )

    def read(self, text: str) -> Report:
        """The times. Raises OutputDamaged, OutputEmpty."""
        if text.lstrip().startswith((_HEADER, _OLD_HEADER)):
            return self._raw(text)
        return self._sample(text) if has_keys(text, "sampling_mode") else self._estimates(text)

    def _estimates(self, text: str) -> Report:
        document = json_report(text, self.name)
        if "slope" not in document:
            raise OutputDamaged(format=self.name, where="slope", problem="it is not there, not even as null")
        key = "slope" if document["slope"] is not None else "mean"
        estimate = object_of(document.get(key), self.name, key)
        interval = object_of(estimate.get("confidence_interval"), self.name, f"{key}, confidence_interval")
        low, value, high = (
            measured(number, self.name, f"{key}, {name}")
            for name, number in (
                ("lower_bound", interval.get("lower_bound")),
                ("point_estimate", estimate.get("point_estimate")),
                ("upper_bound", interval.get("upper_bound")),
            )
        )
        if not low * (1 - _SLACK) <= value <= high * (1 + _SLACK):
            problem = f"it is {value:g}, outside its own interval from {low:g} to {high:g}"
            raise OutputDamaged(format=self.name, where=key, problem=problem)
        notes = () if key == "slope" else (Note("it has no slope: the mean is read"),)
        return Report((_times("", [value]),), notes=(*notes, *_KEYS.remainder(document)))

    def _sample(self, text: str) -> Report:
        document = json_report(text, self.name)
        counts, times = (self._list(document.get(key), key) for key in ("iters", "times"))
        if len(counts) != len(times) or not times:
            problem = f"it has {len(counts)} iters and {len(times)} times"
            raise OutputDamaged(format=self.name, where="the whole", problem=problem)
        values = [self._quotient(time, count, "times") for count, time in zip(counts, times, strict=True)]
        conditions = {"sampling mode": str(document.get("sampling_mode"))}
        notes = (_ONE_PROCESS, *_KEYS.remainder(document))
        return Report((_times("", values),), notes=notes, conditions=conditions)

    def _list(self, value: object, key: str) -> list[float]:
        if not isinstance(value, list):
            raise OutputDamaged(format=self.name, where=key, problem="a list was expected")
        return [measured(number, self.name, key) for number in value]

    def _quotient(self, time: float, count: float, where: str) -> float:
        if not count:
            raise OutputDamaged(format=self.name, where=where, problem="a sample has no iteration")
        return time / count

    def _raw(self, text: str) -> Report:
        samples: dict[str, list[tuple[float, float]]] = {}
        header, *lines = lines_of(text.strip())
        for at, row in enumerate(csv.reader(lines), start=2):
            name, sample = self._row(row, f"line {at}", header)
            samples.setdefault(name, []).append(sample)
        if header not in (_HEADER, _OLD_HEADER) or not samples:
            raise OutputEmpty(format=self.name, problem="there is no sample in it")
        read = tuple(
            _times(name, [self._quotient(time, count, name) for time, count in rows])
            for name, rows in samples.items()
        )
        notes = [note for name, rows in samples.items() for note in _doubts(name, rows)]
        return Report(read, notes=(_ONE_PROCESS, *notes))

    def _row(self, row: Sequence[str], where: str, header: str) -> tuple[str, tuple[float, float]]:
        """The benchmark's name; nanoseconds, iterations."""
        fields = header.count(",") + 1
        if len(row) != fields:
            problem = f"it has {len(row)} fields, not {fields}"
            raise OutputDamaged(format=self.name, where=where, problem=problem)
        if header == _OLD_HEADER:
            row = [*row[:3], "", "", row[3], "ns", row[4]]
        unit = row[6]
        if not converts(unit, _TIME.unit):
            raise OutputDamaged(format=self.name, where=where, problem=f"its unit is {unit!r}, no time")
        time, count = (measured(row[at], self.name, where) for at in (5, 7))
        return "/".join(filter(None, row[:3])), (converted(time, unit, _TIME.unit), count)


def _times(name: str, values: Sequence[float]) -> Measured:
    return Measured(_TIME.metric, tuple(values), _TIME.unit, _TIME.direction, name)


def _doubts(name: str, rows: list[tuple[float, float]]) -> Iterator[Note]:
    """That rows are missing or there twice: samples have d, 2d, 3d… iterations, or all as many."""
    counts = [count for _, count in rows]
    steps = {later - count for count, later in pairwise(counts)}
    is_linear = len(steps) == 1 and math.isclose(min(steps), counts[0]) if steps else True
    if steps != {0.0} and not is_linear:
        yield Note(f"{name}: its iterations neither stay nor grow by one step: samples may be missing")
    if twice := max(Counter(rows).values()) - 1:
        yield Note(f"{name}: a sample is there {twice + 1} times, to the last digit")
    if len(rows) % _SIZES:
        yield Note(f"{name}: it has {len(rows)} samples, no multiple of {_SIZES}: some may be missing")


FORMAT = Criterion()
