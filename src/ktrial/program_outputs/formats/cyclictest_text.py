"""cyclictest's report for people: its last line of each thread, or the end of its histogram (rt-tests)."""

import re
from collections.abc import Iterator

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured, only
from ktrial.text_lines import lines_of

_MEAN = Column("latency", "ns", Direction.LOWER)
_WORST = Column("worst latency", "ns", Direction.LOWER)
_THREAD = re.compile(
    r"T: *(?P<thread>\d+) \( *\d+\) P: *(?P<priority>\d+) I: *(?P<interval>\d+) C: *(?P<cycles>\d+)"
    r" Min: *(?P<min>\d+) Act: *\d+ Avg: *(?P<avg>\d+) Max: *(?P<max>\d+)(?: SMI: *\d+)?"
)
_MICROSECOND = 1000
_OVER = "Histogram Overflows"
"""What lies beyond the histogram is not in its total."""
_LINES = LinePatterns(
    measurements=(
        _THREAD.pattern.replace("(?P<thread>", "(?:")
        .replace("(?P<priority>", "(?:")
        .replace("(?P<interval>", "(?:"),
        r"# (?:Total|Histogram Overflows|Min Latencies|Avg Latencies|Max Latencies):(?: \d+)+",
    ),
    conditions=(
        r"# /dev/cpu_dma_latency set to (?P<DMA_latency>\S+)",
        r"policy: (?P<policy>\S+): loadavg: .*",
    ),
    failures=(r"(?:FATAL|ERROR|Unable to).*",),
    decoration=(
        r"# Histogram(?: Overflow at.*)?|# Thread \d+:.*|\d{6}(?:\s\d+)+|WARN: .*|INFO: .*|defaulting .*",
    ),
)


class CyclictestText:
    """The mean over all wake-ups of all threads, and the worst of them."""

    name = "cyclictest"
    summary = "cyclictest --quiet, with --histogram or without, on standard output"
    columns = (_MEAN, _WORST)
    remarks = (
        "as `cyclictest-json`, which is finer: here averages are whole microseconds. `--nsecs` may not be "
        "used, for it cannot be told. Of lines that are printed again and again the last counts"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has a thread's line, or a histogram's end."""
        if '"resolution_in_ns"' in text or not ("T:" in text or "# Histogram" in text):
            return False
        plain = "\n".join(_plain(text))
        return bool(re.search(r"^T: *\d+ \( *\d+\) P: *\d+ I:", plain, re.MULTILINE)) or (
            "# Histogram" in plain and "# Avg Latencies:" in plain
        )

    def read(self, text: str) -> Report:
        """Mean and worst. Raises OutputDamaged, OutputEmpty."""
        if not ("T:" in text or "# Histogram" in text):
            raise OutputEmpty(format=self.name, problem="it tells of no thread")
        plain = "\n".join(_plain(text))
        if failure := _LINES.failure_of(plain):
            raise OutputEmpty(format=self.name, problem=f"it says {failure}")
        threads = self._threads(plain) or self._histogram(plain)
        cycles = sum(count for count, _, _ in threads)
        if not all(count for count, _, _ in threads):
            raise OutputDamaged(format=self.name, where="C", problem="a thread never woke up")
        mean = _MICROSECOND * sum(count * average for count, average, _ in threads) / cycles
        worst = _MICROSECOND * max(largest for _, _, largest in threads)
        notes = [*_LINES.remainder(plain)]
        if len(threads) > 1:
            notes.append(Note(f"the mean and the worst are those of {len(threads)} threads"))
        read = tuple(
            Measured(column.metric, (value,), column.unit, column.direction)
            for column, value in ((_MEAN, mean), (_WORST, worst))
            if value
        )
        if not read:
            raise OutputEmpty(format=self.name, problem="all latencies are printed as 0")
        return Report(read, notes=tuple(notes), conditions=self._conditions(plain, len(threads)))

    def _threads(self, text: str) -> list[tuple[float, float, float]]:
        """Wake-ups, mean and largest of each thread's last line."""
        last: dict[int, re.Match[str]] = {}
        for line in lines_of(text):
            match = _THREAD.fullmatch(line.strip())
            if match is None:
                continue
            thread = int(match["thread"])
            if thread in last and int(match["cycles"]) <= int(last[thread]["cycles"]):
                problem = "it is there again, and its cycles did not grow"
                raise OutputDamaged(format=self.name, where=f"thread {thread}", problem=problem)
            last[thread] = match
        if sorted(last) != list(range(len(last))):
            problem = f"the threads {', '.join(map(str, sorted(last)))} are told of, and none between them"
            raise OutputDamaged(format=self.name, where="T", problem=problem)
        return [
            self._checked(
                f"thread {thread}", *map(float, (match["cycles"], *match.group("min", "avg", "max")))
            )
            for thread, match in sorted(last.items())
        ]

    def _histogram(self, text: str) -> list[tuple[float, float, float]]:
        """The same, out of the lines below the histogram."""
        rows = {
            name: [
                measured(number, self.name, name)
                for number in (only(rf"^# {name}:((?: \d+)+) *$", text, self.name) or "").split()
            ]
            for name in (_OVER, "Total", "Min Latencies", "Avg Latencies", "Max Latencies")
        }
        over = rows.pop(_OVER) or [0.0] * len(rows["Total"])
        if {len(row) for row in (over, *rows.values())} != {len(rows["Total"]) or -1}:
            problem = "its lines tell of different numbers of threads"
            raise OutputDamaged(format=self.name, where="histogram", problem=problem)
        return [
            self._checked(f"thread {thread}", within + beyond, *numbers)
            for thread, (beyond, within, *numbers) in enumerate(zip(over, *rows.values(), strict=True))
        ]

    def _checked(
        self, where: str, cycles: float, low: float, mean: float, high: float
    ) -> tuple[float, float, float]:
        if not low <= mean <= high:
            problem = f"its average is {mean:g}, from {low:g} to {high:g}"
            raise OutputDamaged(format=self.name, where=where, problem=problem)
        return cycles, mean, high

    def _conditions(self, text: str, threads: int) -> dict[str, str]:
        told = {"threads": str(threads)} | _LINES.conditions_of(text)
        for line in lines_of(text):
            if match := _THREAD.fullmatch(line.strip()):
                return told | {"priority": match["priority"], "interval": match["interval"]}
        return told


def _plain(text: str) -> Iterator[str]:
    """Lines without the codes that move a terminal's cursor."""
    for line in lines_of(text):
        yield re.sub(r"\x1b\[\d*[A-Z]", "", line).rstrip()


FORMAT = CyclictestText()
