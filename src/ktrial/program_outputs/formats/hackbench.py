"""hackbench of rt-tests, and the one before it (hackbench.c): what it was run with, then its time."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import told
from ktrial.program_outputs.reading import measured
from ktrial.text_lines import lines_of

_TIME = Column("time", "s", Direction.LOWER)
_TIME_LINE = re.compile(r"Time: (\d+\.\d{3})")
_FIRST = (
    re.compile(
        r"Running in (?P<mode>process|threaded) mode with (?P<groups>\d+) groups using "
        r"(?P<file_descriptors>\d+) file descriptors each \(== (?P<tasks>\d+) tasks\)"
    ),
    re.compile(r"Running with (?P<groups>\d+)\*40 \(== (?P<tasks>\d+)\) tasks\.?"),
)
_SECOND = re.compile(r"Each sender will pass (?P<messages>\d+) messages of (?P<bytes>\d+) bytes")


@dataclass
class _Attempt:
    """What hackbench says before a time, and the time."""

    settings: dict[str, str] = field(default_factory=dict)
    seconds: float | None = None


class Hackbench:
    """The time of each run; runs with other settings are measurements of their own."""

    name = "hackbench"
    summary = "hackbench (rt-tests, or alone), its report on standard output"
    columns = (_TIME,)
    remarks = (
        "the time of each run; runs with the same settings are repetitions. A run that printed no time "
        "failed. perf's hackbench is `perf-bench`"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has hackbench's heading, or nothing but times."""
        if "Time: " not in text:
            return False
        lines = [line for line in _lines(text) if line]
        return any(_heading(line) for line in lines) or all(_TIME_LINE.fullmatch(line) for line in lines)

    def read(self, text: str) -> Report:
        """The times. Raises OutputDamaged, OutputEmpty."""
        if "Time: " not in text:
            raise OutputEmpty(format=self.name, problem="no run printed its time")
        runs, left = self._runs(_lines(text))
        shapes = {tuple(run.settings) for run in runs}
        if len(shapes) > 1:
            problem = "some runs tell their settings, and others do not"
            raise OutputDamaged(format=self.name, where="the whole", problem=problem)
        by_settings: dict[tuple[tuple[str, str], ...], list[_Attempt]] = {}
        for run in runs:
            by_settings.setdefault(tuple(run.settings.items()), []).append(run)
        read = tuple(
            self._measured(dict(settings) if len(by_settings) > 1 else {}, group)
            for settings, group in by_settings.items()
            if any(run.seconds is not None for run in group)
        )
        if not read:
            raise OutputEmpty(format=self.name, problem="no run printed its time")
        failed = sum(run.seconds is None for run in runs)
        failures = (Note(f"{failed} of {len(runs)} runs printed no time"),) if failed else ()
        conditions = runs[0].settings if len(by_settings) == 1 else {}
        lines = sum(bool(line) for line in _lines(text))
        return Report(read, failures, (*told(left, lines), *_doubts(read)), conditions)

    def _runs(self, lines: list[str]) -> tuple[list[_Attempt], list[str]]:
        """Runs in their order, and the lines that are none of hackbench's."""
        runs, left, current = list[_Attempt](), list[str](), _Attempt()
        for line in lines:
            if match := _heading(line):
                if set(match.groupdict()) & set(current.settings):
                    runs.append(current)
                    current = _Attempt()
                current.settings |= {key.replace("_", " "): level for key, level in match.groupdict().items()}
            elif match := _TIME_LINE.fullmatch(line):
                current.seconds = measured(match[1], self.name, "Time")
                if not current.seconds:
                    problem = "0 is less than it can tell; send more messages: -l 1000"
                    raise OutputDamaged(format=self.name, where="Time", problem=problem)
                runs.append(current)
                current = _Attempt()
            elif line:
                left.append(line)
        return [*runs, *([current] if current.settings else [])], left

    def _measured(self, settings: dict[str, str], runs: list[_Attempt]) -> Measured:
        values = tuple(run.seconds for run in runs if run.seconds is not None)
        of = ", ".join(f"{level} {name}" for name, level in settings.items())
        failed = len(runs) - len(values)
        return Measured(_TIME.metric, values, _TIME.unit, _TIME.direction, of, failed, conditions=settings)


def _heading(line: str) -> re.Match[str] | None:
    return next((match for each in (*_FIRST, _SECOND) if (match := each.fullmatch(line))), None)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in lines_of(text)]


def _doubts(read: tuple[Measured, ...]) -> Iterator[Note]:
    """That runs may be missing, or there twice."""
    counts = {len(measurement.values) for measurement in read}
    if len(counts) > 1:
        yield Note(f"settings have from {min(counts)} to {max(counts)} runs: some may be missing")
    for measurement in read:
        if max(Counter(measurement.values).values()) > 1:
            where = f"{measurement.of}: " if measurement.of else ""
            yield Note(f"{where}two of its times are alike to the last digit")


FORMAT = Hackbench()
