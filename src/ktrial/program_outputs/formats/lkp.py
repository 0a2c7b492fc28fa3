"""LKP's statistics (lkp-tests): stats.json of a run, matrix.json of all runs, a benchmark's own JSON."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.reading import finite, json_report
from ktrial.program_outputs.units import Units

_RATE = Column("rate", "", Direction.HIGHER)
_TIME = Column("time", "", Direction.LOWER)
_ELAPSED = Column("elapsed time", "s", Direction.LOWER)
_SOURCE = "stats_source"
_MONITORS = re.compile(
    r"(?:boot-\w+|buddyinfo|cpuidle|cpufreq\S*|diskstats|dmesg|energy|ethtool|ftrace\S*|hotspots|interrupts|iostat|"
    r"kmsg|last_state|latency_stats|lock_stat|meminfo|mpstat|nfs\S*|nr_\w+|numa-\w+|pagetypeinfo|perf-(?:c2c|"
    r"profile|stat)|perf-sched|pmeter|pmu-numa|proc-\w+|sched_debug|slabinfo|softirqs?|stderr|time|turbostat|"
    r"uptime|vmstat|wait|xfs\S*)\."
)
"""What watches the system while a benchmark runs (lkp-tests/monitors)."""
_OF_GNU_TIME = re.compile(r"[\w+-]+\.time\.\w+(?:\.max)?")
_NEITHER = re.compile(r"std(?:dev|err)|variance|_sd$|percent|%$|_idle$", re.IGNORECASE)
"""What numbers scatter by, and shares."""
_QUANTITY = re.compile(r"^(?:throughput|bandwidth)[-_]", re.IGNORECASE)
_PER_TIME = re.compile(r"(?:per|/)[_-]?(?:s|secs?|seconds?|min|minutes?)(?![a-z])", re.IGNORECASE)
_MORE = re.compile(
    r"throughput|bandwidth|goodput|(?:^|[._-])(?:i?ops|tps|qps|rps|fps|aps|bw|speed|rate|workload|score)(?:$|[._-])|"
    r"[KMGT]i?[Bb]ps|[KMGT]B_sec|flops|\d+\.(?:processes|threads)$",
    re.IGNORECASE,
)
_LESS = re.compile(
    r"latency|overhead|buildtime|(?:^|[._-])(?:[cs]?lat|rtt|delay|elapsed|duration|seconds|time|cost)(?:$|[._-])",
    re.IGNORECASE,
)
_BROKEN = ("last_state.is_incomplete_run", "last_state.exit_fail")
_MARKS = re.compile(rf'[{{,]\s*"(?:{_SOURCE}"|{_MONITORS.pattern}|[\w+-]+\.[\w.%:/+-]+": *[\[\d])')
_MARK_WORDS = (
    "stats_source",
    "time.elapsed_time",
    "last_state.",
    ".throughput",
    "_ops",
    "vmstat.",
    "perf-stat.",
)


class Lkp:
    """A benchmark's rates and times; those of several runs are values."""

    name = "lkp"
    summary = "lkp-tests: stats.json of a result root, matrix.json of all its runs"
    columns = (_RATE, _TIME, _ELAPSED)
    remarks = (
        "what the benchmark told, where the name says which way is better; where it told nothing else, the "
        "elapsed time. Runs that LKP calls incomplete failed. Monitors' numbers are not read; others are told"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether its keys are LKP's: PROGRAM.NAME, or a monitor's."""
        return (
            text.lstrip()[:1] == "{"
            and any(word in text for word in _MARK_WORDS)
            and bool(_MARKS.search(text, 0, 4096))
        )

    def read(self, text: str) -> Report:
        """A metric for each statistic. Raises OutputDamaged, OutputEmpty."""
        document = json_report(text, self.name)
        runs = document.pop(_SOURCE, None)
        if runs is not None and not isinstance(runs, list):
            raise OutputDamaged(format=self.name, where=_SOURCE, problem="a list was expected")
        columns = {key: self._column(key, value, runs) for key, value in document.items()}
        benchmark = {key: numbers for key, numbers in columns.items() if not _MONITORS.match(key)}
        good = self._good(columns, 1 if runs is None else len(runs))
        read, unknown = [], list[str]()
        for key, numbers in _chosen(benchmark).items():
            column = _column_of(key)
            if column is None:
                unknown.append(key)
            elif metric := self._measured(column, key, numbers, good):
                read.append(metric)
        if not read:
            raise OutputEmpty(format=self.name, problem="no benchmark's rate or time is in it")
        broken = len(good) - sum(good)
        failures = (Note(f"LKP calls {broken} of {len(good)} runs incomplete"),) if broken else ()
        return Report(tuple(read), failures, tuple(_notes(read, unknown)), _conditions(runs))

    def _column(self, key: str, value: Any, runs: list[Any] | None) -> list[float | None]:
        """A statistic's number in each run. Raises OutputDamaged."""
        if "." not in key:
            raise OutputDamaged(format=self.name, where=key, problem="it is no PROGRAM.NAME")
        numbers = [finite(item) for item in value] if isinstance(value, list) else [finite(value)]
        if not numbers or (None in numbers and not _MONITORS.match(key)):
            raise OutputDamaged(format=self.name, where=key, problem="numbers were expected")
        if runs is None and len(numbers) > 1:
            problem = "it is what one run did over time: take its stats.json, or the matrix.json of all runs"
            raise OutputDamaged(format=self.name, where=key, problem=problem)
        if runs is not None and len(numbers) > len(runs):
            problem = f"it has {len(numbers)} numbers, and {_SOURCE} {len(runs)}"
            raise OutputDamaged(format=self.name, where=key, problem=problem)
        return numbers + [None] * ((1 if runs is None else len(runs)) - len(numbers))

    def _good(self, columns: dict[str, list[float | None]], runs: int) -> list[bool]:
        """Whether each run ended as it should."""
        marks = [columns.get(key, [None] * runs) for key in _BROKEN]
        return [not any(mark[run] for mark in marks) for run in range(runs)]

    def _measured(
        self, column: Column, key: str, numbers: list[float | None], good: list[bool]
    ) -> Measured | None:
        """Without runs that failed; 0 stands where a run told nothing."""
        values = [number for number, is_good in zip(numbers, good, strict=True) if is_good and number]
        if any(value < 0 for value in values):
            raise OutputDamaged(format=self.name, where=key, problem="it is below 0")
        failed = len(numbers) - len(values)
        if not values:
            return None
        return Measured(column.metric, tuple(values), column.unit, column.direction, key, failed)


def _chosen(benchmark: dict[str, list[float | None]]) -> dict[str, list[float | None]]:
    """What benchmarks told; what GNU time told of them only where that is all."""
    own = {key: numbers for key, numbers in benchmark.items() if not _OF_GNU_TIME.fullmatch(key)}
    if any(_column_of(key) for key in own):
        return own
    return own | {key: numbers for key, numbers in benchmark.items() if key.endswith(".time.elapsed_time")}


def _column_of(key: str) -> Column | None:
    """Which way is better, told by the name behind the program's, and the unit, if that tells one."""
    name = key.partition(".")[2]
    if _NEITHER.search(name):
        return None
    if key.endswith(".elapsed_time"):
        return _ELAPSED
    unit = Units().of_column(_QUANTITY.sub("", name.rpartition(".")[2])).unit
    is_rate = bool(_PER_TIME.search(name))
    if unit and unit.direction and not (is_rate and unit.direction is Direction.LOWER):
        return Column(_kind(unit.direction), "" if unit.ambiguous else unit.symbol, unit.direction)
    if is_rate or _MORE.search(name):
        return _RATE
    return _TIME if _LESS.search(name) else None


def _kind(direction: Direction) -> str:
    return (_RATE if direction is Direction.HIGHER else _TIME).metric


def _conditions(runs: list[Any] | None) -> dict[str, str]:
    """What the path of a result root says: /result/ then a level each of `_LEVELS`, then the run."""
    if not runs or not isinstance(runs[0], str) or runs[0].count("/") < len(_LEVELS):
        return {}
    parts = [path for path in runs[0].removesuffix("/stats.json").split("/") if path]
    levels = dict(zip(_LEVELS, parts[-len(_LEVELS) - 1 : -1], strict=False))
    return {name: level for name, level in levels.items() if level}


_LEVELS = ("test", "parameters", "host", "root file system", "kernel configuration", "compiler", "commit")


def _notes(read: list[Measured], unknown: list[str]) -> Iterator[Note]:
    if all(metric.metric == _ELAPSED.metric for metric in read):
        yield Note("the benchmark told no rate and no time of its own: its elapsed time is read")
    failed = sum(metric.failed for metric in read)
    if failed:
        yield Note(f"{failed} numbers are missing, 0, or of runs that failed; they are left out")
    if unknown:
        text = f"of {len(unknown)} statistics the name does not say which way is better: {unknown[0]}"
        yield Note(f"{text}; they are left out")
    for metric in read:
        if max(Counter(metric.values).values()) > 1:
            yield Note(f"{metric.of}: two of its values are alike to the last digit")


FORMAT = Lkp()
