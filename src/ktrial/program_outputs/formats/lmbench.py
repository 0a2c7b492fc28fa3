"""What lmbench's programs print (lat_* and bw_*; lmbench 2 and 3): a line a measurement."""

import re
from collections import Counter
from collections.abc import Iterator

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputEmpty
from ktrial.program_outputs.lines import told
from ktrial.program_outputs.reading import measured
from ktrial.program_outputs.units import converted
from ktrial.text_lines import lines_of

_LATENCY = Column("latency", "µs", Direction.LOWER)
_THROUGHPUT = Column("throughput", "MB/s", Direction.HIGHER)
_FILE = Column("file throughput", "KB/s", Direction.HIGHER)
_TIMES = {"nanoseconds": "ns", "microseconds": "µs", "usecs": "µs", "milliseconds": "ms", "seconds": "s"}
_NAMES = (
    r"Simple \S+|Select on \d+ (?:tcp )?fd's|Signal handler (?:installation|overhead)|Protection fault|"
    r"(?:Pipe|FIFO|Semaphore|Fcntl lock|AF_UNIX sock stream) latency|Process fork\+\S+(?: -c)?|"
    r"(?:UDP|TCP|RPC/\S+) latency using \S+|TCP/IP connection cost to \S+|Pagefaults on \S+|"
    r"(?:integer|int64|uint64|float|double) \w+(?: \w+)*"
)
_LATENCY_LINE = re.compile(rf"(?P<name>{_NAMES}): (?P<value>[0-9.]+) (?P<unit>{'|'.join(_TIMES)})")
_BANDWIDTH_LINE = re.compile(
    r"(?P<name>(?:Pipe|AF_UNIX sock stream) bandwidth|File \S+ write bandwidth): ?(?P<value>[0-9.]+) "
    r"(?P<unit>MB|KB)/sec"
)
_SWITCH_TITLE = re.compile(r'"size=(?P<size>\d+k) ovr=[0-9.]+')
_SWITCH_LINE = re.compile(r"(?P<processes>\d+) (?P<value>[0-9]+\.[0-9]{2})")


class Lmbench:
    """Latencies and bandwidths, each with the name that lmbench gives it."""

    name = "lmbench"
    summary = "lat_syscall, lat_pipe, lat_proc, lat_ctx, bw_pipe …: sh -c 'lat_pipe 2>&1'"
    columns = (_LATENCY, _THROUGHPUT, _FILE)
    remarks = (
        "lines of one name are repetitions. Tables of sizes (bw_mem, lat_mem_rd, lat_fs) and the summary of "
        "`make see` are not read: lines that are not understood are told"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether a line is one of lmbench's."""
        return any(
            _LATENCY_LINE.fullmatch(line) or _BANDWIDTH_LINE.fullmatch(line) or _SWITCH_TITLE.fullmatch(line)
            for line in _lines(text)
        )

    def read(self, text: str) -> Report:
        """A metric for each name. Raises OutputDamaged, OutputEmpty."""
        values: dict[tuple[str, Column], list[float]] = {}
        left, size = list[str](), ""
        lines = _lines(text)
        for line in lines:
            if match := _SWITCH_TITLE.fullmatch(line):
                size = match["size"]
            elif result := self._result(line, size):
                of, column, value = result
                values.setdefault((of, column), []).append(value)
            elif line:
                left.append(line)
            size = size if line else ""
        if not any(any(numbers) for numbers in values.values()):
            raise OutputEmpty(format=self.name, problem="no line has a number above 0")
        read = tuple(
            Measured(column.metric, tuple(numbers), column.unit, column.direction, of)
            for (of, column), numbers in values.items()
        )
        notes = (*told(left, sum(bool(line) for line in lines)), *_doubts(read))
        return Report(read, notes=notes)

    def _result(self, line: str, size: str) -> tuple[str, Column, float] | None:
        if match := _LATENCY_LINE.fullmatch(line):
            value = measured(match["value"], self.name, match["name"])
            return match["name"], _LATENCY, converted(value, _TIMES[match["unit"]], _LATENCY.unit)
        if match := _BANDWIDTH_LINE.fullmatch(line):
            column = _THROUGHPUT if match["unit"] == "MB" else _FILE
            return match["name"], column, measured(match["value"], self.name, match["name"])
        if size and (match := _SWITCH_LINE.fullmatch(line)):
            name = f"context switch, {match['processes']} processes of {size}"
            return name, _LATENCY, measured(match["value"], self.name, name)
        return None


def _lines(text: str) -> list[str]:
    return [line.strip() for line in lines_of(text)]


def _doubts(read: tuple[Measured, ...]) -> Iterator[Note]:
    """That lines may be missing, or there twice."""
    counts = {len(measurement.values) for measurement in read}
    if len(counts) > 1:
        yield Note(f"names have from {min(counts)} to {max(counts)} values: some may be missing")
    for measurement in read:
        if max(Counter(measurement.values).values()) > 1:
            yield Note(f"{measurement.of}: two of its values are alike to the last digit")


FORMAT = Lmbench()
