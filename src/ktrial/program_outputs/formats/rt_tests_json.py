"""JSON of rt-tests' other programs: pairs of threads, signaltest, oslat, pi_stress."""

from typing import Any

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.keys import KeyPatterns
from ktrial.program_outputs.reading import (
    conditions_of,
    has_keys,
    json_report,
    measured,
    object_of,
    text_of,
)

_MEAN = Column("latency", "µs", Direction.LOWER)
_WORST = Column("worst latency", "µs", Direction.LOWER)
_INVERSIONS = Column("inversions", "", Direction.HIGHER)
_CONDITIONS = {
    "command": "cmdline:",
    "version": "rt_test_version:",
    "kernel": "sysinfo.release",
    "kernel build": "sysinfo.version",
    "host": "sysinfo.nodename",
    "threads": "num_threads",
    "date": "start_time",
}
_KEYS = KeyPatterns(
    measurements=(
        "{num_threads,return_code,inversion}",
        "thread/*/{cycles,samples,count,min,max,avg}",
        "thread/*/receiver/{min,max,avg}",
    ),
    conditions=(
        "sysinfo/*",
        "{cmdline,cmdline:,rt_test_version,rt_test_version:}",
        "thread/*/{priority,freq,duration,interval}",
    ),
    decoration=(
        "thread/*/{cpu,node}",
        "thread/*/histogram/*",
        "thread/*/receiver/{cpu,priority,timeoutcount}",
        "thread/*/sender/{cpu,priority,samples,interval}",
        "{file_version,start_time,end_time}",
    ),
)


class RtTestsJson:
    """The mean over all samples of all threads, and the worst of them; pi_stress counts inversions."""

    name = "rt-tests-json"
    summary = "ptsematest, svsematest, pmqtest, sigwaittest, signaltest, oslat, pi_stress with --json=FILE"
    columns = (_MEAN, _WORST, _INVERSIONS)
    remarks = (
        "the mean over all samples of all threads (of oslat: of its loops, in the time that it ran), and the "
        "worst. cyclictest's and cyclicdeadline's are `cyclictest-json`"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether rt-tests wrote it, and neither cyclictest nor cyclicdeadline."""
        return has_keys(text, "rt_test_version:", "return_code") and '"resolution_in_ns"' not in text

    def read(self, text: str) -> Report:
        """The numbers. Raises OutputDamaged, OutputEmpty."""
        report = json_report(text, self.name)
        if code := report.get("return_code"):
            raise OutputEmpty(format=self.name, problem=f"the program ended with {code}")
        conditions = conditions_of(report, _CONDITIONS)
        notes = tuple(_KEYS.remainder(report))
        if "inversion" in report:
            number = measured(report["inversion"], self.name, "inversion")
            if not number:
                raise OutputEmpty(format=self.name, problem="there was no inversion")
            return Report((_of(_INVERSIONS, number),), notes=notes, conditions=conditions)
        threads = object_of(report.get("thread"), self.name, "thread")
        if not threads or len(threads) != report.get("num_threads"):
            problem = f"{len(threads)} of {report.get('num_threads')} threads are told of"
            raise OutputDamaged(format=self.name, where="thread", problem=problem)
        program = text_of(report.get("cmdline:")).split(" ")[0].rpartition("/")[2]
        read = [self._thread(f"{program} thread {name}", facts) for name, facts in threads.items()]
        mean = sum(samples * average for samples, average, _ in read) / sum(samples for samples, _, _ in read)
        return Report(
            (_of(_MEAN, mean), _of(_WORST, max(worst for _, _, worst in read))),
            notes=notes,
            conditions=conditions,
        )

    def _thread(self, where: str, thread: Any) -> tuple[float, float, float]:
        """Samples, mean and worst."""
        facts = object_of(thread, self.name, where)
        if "sender" in facts:
            sender = object_of(facts["sender"], self.name, f"{where}, sender")
            facts = {**sender, **object_of(facts.get("receiver"), self.name, f"{where}, receiver")}
        low, mean, worst = (
            measured(facts.get(key), self.name, f"{where}, {key}") for key in ("min", "avg", "max")
        )
        if "duration" in facts:
            time = 1e6 * measured(facts["duration"], self.name, f"{where}, duration")
            samples = time / mean if mean else 0.0
        else:
            key = "samples" if "samples" in facts else "cycles"
            samples = measured(facts.get(key), self.name, f"{where}, {key}")
        if not samples or not worst:
            raise OutputDamaged(format=self.name, where=where, problem="it has no sample above 0")
        if not low <= mean <= worst:
            problem = f"its avg is {mean:g}, from {low:g} to {worst:g}"
            raise OutputDamaged(format=self.name, where=where, problem=problem)
        return samples, mean, worst


def _of(column: Column, value: float) -> Measured:
    return Measured(column.metric, (value,), column.unit, column.direction)


FORMAT = RtTestsJson()
