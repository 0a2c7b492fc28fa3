"""cyclictest --json (rt-tests): how late threads wake up."""

from typing import Any

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.keys import KeyPatterns
from ktrial.program_outputs.reading import conditions_of, has_keys, json_report, measured, object_of

_MEAN = Column("latency", "ns", Direction.LOWER)
_WORST = Column("worst latency", "ns", Direction.LOWER)
_CONDITIONS = {
    "command": "cmdline:",
    "version": "rt_test_version:",
    "kernel": "sysinfo.release",
    "kernel build": "sysinfo.version",
    "host": "sysinfo.nodename",
    "threads": "num_threads",
    "date": "start_time",
}
"""The colons in the names are cyclictest's."""
_KEYS = KeyPatterns(
    measurements=(
        "thread/*/{cycles,min,max,avg}",
        "{num_threads,resolution_in_ns,return_code}",
    ),
    conditions=(
        "sysinfo/*",
        "{cmdline,cmdline:,rt_test_version,rt_test_version:}",
    ),
    decoration=(
        "thread/*/{cpu,node}",
        "thread/*/histogram/*",
        "{file_version,start_time,end_time}",
    ),
)


class Cyclictest:
    """The mean over all wake-ups of all threads, and the worst of them."""

    name = "cyclictest-json"
    summary = "cyclictest --quiet --json=FILE"
    columns = (_MEAN, _WORST)
    remarks = (
        "microseconds, or nanoseconds with `--nsecs`, as resolution_in_ns says. A run that returned an "
        "error, or a thread that never woke up, is refused"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has what only cyclictest writes."""
        return has_keys(text, "resolution_in_ns", "thread")

    def read(self, text: str) -> Report:
        """Mean and worst. Raises OutputDamaged, OutputEmpty."""
        report = json_report(text, self.name)
        if code := report.get("return_code"):
            raise OutputEmpty(format=self.name, problem=f"cyclictest ended with {code}")
        threads = object_of(report.get("thread"), self.name, "thread")
        if not threads or len(threads) != report.get("num_threads"):
            problem = f"{len(threads)} of {report.get('num_threads')} threads are told of"
            raise OutputDamaged(format=self.name, where="thread", problem=problem)
        scale = self._scale(report.get("resolution_in_ns"))
        read = [self._thread(name, facts) for name, facts in threads.items()]
        wakeups = sum(cycles for cycles, _, _ in read)
        mean = scale * sum(cycles * average for cycles, average, _ in read) / wakeups
        worst = scale * max(maximum for _, _, maximum in read)
        return Report(
            tuple(
                Measured(column.metric, (value,), column.unit, column.direction)
                for column, value in ((_MEAN, mean), (_WORST, worst))
            ),
            notes=tuple(_KEYS.remainder(report)),
            conditions=conditions_of(report, _CONDITIONS),
        )

    def _scale(self, resolution: Any) -> float:
        if resolution not in (0, 1):
            problem = "it is neither 0 (microseconds) nor 1 (nanoseconds)"
            raise OutputDamaged(format=self.name, where="resolution_in_ns", problem=problem)
        return 1.0 if resolution else 1000.0

    def _thread(self, name: str, thread: Any) -> tuple[float, float, float]:
        """Wake-ups, mean, worst."""
        facts = object_of(thread, self.name, f"thread {name}")
        cycles, mean, worst = (
            measured(facts.get(key), self.name, f"thread {name}, {key}") for key in ("cycles", "avg", "max")
        )
        if not cycles:
            raise OutputDamaged(format=self.name, where=f"thread {name}", problem="it never woke up")
        return cycles, mean, worst


FORMAT = Cyclictest()
