"""ApacheBench: its report, and what -g and -e write (httpd, support/ab.c).

The report has whole milliseconds. -g writes a row for each request, sorted by its time; these are no runs: a
run is one mean, and a percentile of all its requests. ab finds it at the place n·p/100 of the sorted times.
"""

import math
import re
from collections.abc import Iterator, Mapping
from statistics import fmean

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured, only, the_only
from ktrial.text_lines import lines_of

_RATE = Column("requests", "1/s", Direction.HIGHER)
_TIME = Column("time per request", "ms", Direction.LOWER)
_THROUGHPUT = Column("throughput", "KiB/s", Direction.HIGHER)
_LATENCY = Column("latency", "ms", Direction.LOWER)
_PRINTED = [50, 66, 75, 80, 90, 95, 98, 99, 100]
_PERCENTS = (50, 90, 95, 99)
_PERCENTILES = {percent: Column(f"latency p{percent}", "ms", Direction.LOWER) for percent in _PERCENTS}
_WORST = Column("worst latency", "ms", Direction.LOWER)
_NOT_ANSWERED = "not all requests were answered"
_HALF_OF_RATE, _HALF_OF_SECONDS = 0.005, 0.0005
_LINES = LinePatterns(
    measurements=(
        r"Requests per second:\s+[0-9.]+ \[#/sec\] \(mean\)",
        r"Time per request:\s+[0-9.]+ \[ms\] \(mean(?:, across all concurrent requests)?\)",
        r"Transfer rate:\s+[0-9.]+ \[Kbytes/sec\] received",
        r"Time taken for tests:\s+[0-9.]+ seconds|Complete requests:\s+\d+",
        r"\s*\d+%\s+\d+(?: \(longest request\)| \(last request\))?",
    ),
    conditions=(
        r"This is ApacheBench, Version (?P<version>\S+).*",
        r"Server Software:\s*(?P<server>.*)",
        r"Document Path:\s+(?P<path>\S+)",
        r"Document Length:\s+(?P<answer_size>\d+ bytes|Variable)",
        r"Concurrency Level:\s+(?P<concurrency>\d+)",
        r"SSL/TLS Protocol:\s+(?P<TLS>\S.*)",
    ),
    failures=(
        r"apr_\w+: .*|Total of \d+ requests completed|Test aborted after .*",
        r"(?:Failed requests|Write errors|Non-2xx responses):\s+\d+|\s+\(Connect: .*\)",
    ),
    decoration=(
        r"Copyright .*|Licensed to .*|Benchmarking .*|Completed \d+ requests|Finished \d+ requests|\.+done",
        r"Server (?:Hostname|Port):\s.*|TLS Server Name:\s.*|Server Temp Key:\s.*|Keep-Alive requests:\s+\d+",
        r"Total (?:transferred|body sent|POSTed|PUT):\s+\d+(?: bytes)?|HTML transferred:\s+\d+ bytes",
        r"\s+[0-9.]+ kb/s (?:sent|total)|Connection Times \(ms\)|\s+min +(?:mean\S* +median|avg) +max",
        r"(?:Connect|Processing|Waiting|Total):(?:\s+\d+){2}(?:\s+[0-9.]+)?(?:\s+\d+)+",
        r"Percentage of the requests served within a certain time \(ms\)|Show confirmations .*",
        r"(?:WARNING|ERROR): The median and mean for .*|\s+(?:apart|These results are|are not within).*",
    ),
)


class ApacheBench:
    """Requests a second, and how long they took."""

    name = "ab"
    summary = "ab -n N -c C URL, its report on standard output"
    columns = (_RATE, _TIME, _THROUGHPUT, *_PERCENTILES.values(), _WORST)
    remarks = (
        "the rate, the mean time of a request (`time per request`), and whole milliseconds of percentiles; "
        "0 ms is left out. Requests that failed, but for answers of another length, and answers other than "
        "2xx are refused"
    )
    of_groups = False
    begins = (r"^This is ApacheBench", r"^Server Software:")

    def recognises(self, text: str) -> bool:
        """Whether it has what only ab prints."""
        return bool(
            re.search(r"^This is ApacheBench, Version|^Requests per second:\s.*\[#/sec\]", text, re.MULTILINE)
        )

    def read(self, text: str) -> Report:
        """Rates and times. Raises OutputDamaged, OutputEmpty."""
        notes = list(self._failures(text))
        rate = self._value("Requests per second", r"\[#/sec\] \(mean\)", text)
        seconds = self._value("Time taken for tests", "seconds", text)
        requests = self._value("Complete requests", "", text)
        clients = self._value("Concurrency Level", "", text)
        time = self._value("Time per request", r"\[ms\] \(mean\)", text)
        if not rate or not requests:
            raise OutputEmpty(format=self.name, problem="no request was answered")
        uncertain = _HALF_OF_RATE * seconds + rate * _HALF_OF_SECONDS + 1e-6 * requests
        if abs(rate * seconds - requests) > uncertain:
            problem = f"{rate:g} requests a second are not {requests:g} in {seconds:g} s"
            raise OutputDamaged(format=self.name, where="Requests per second", problem=problem)
        if not math.isclose(
            time * rate, 1000 * clients, rel_tol=1e-3, abs_tol=_HALF_OF_RATE * time + rate / 1000
        ):
            problem = f"{rate:g} requests a second of {clients:g} clients do not take {time:g} ms each"
            raise OutputDamaged(format=self.name, where="Time per request", problem=problem)
        throughput = only(r"^Transfer rate:\s+(\S+) \[Kbytes/sec\] received$", text, self.name)
        values = {_RATE: rate, _TIME: time}
        if throughput is not None:
            values[_THROUGHPUT] = measured(throughput, self.name, "Transfer rate")
        values.update(_of_percentiles(dict(self._percentiles(text)), self.name))
        if zeros := [column.metric for column, value in values.items() if not value]:
            notes.append(
                Note(f"left out, for ab prints 0: {', '.join(zeros)}", "ab -e FILE writes more digits")
            )
        notes += _LINES.remainder(text)
        return Report(_all_measured(values), notes=tuple(notes), conditions=_LINES.conditions_of(text))

    def _failures(self, text: str) -> Iterator[Note]:
        """That answers differed in their lengths. Raises OutputEmpty: others failed, or ab gave up."""
        if match := re.search(r"^(apr_\w+: .*|Test aborted after .*)$", text, re.MULTILINE):
            raise OutputEmpty(format=self.name, problem=f"ab gave up: {match[1]}")
        for name in ("Write errors", "Non-2xx responses"):
            if float(only(rf"^{name}:\s+(\d+)$", text, self.name) or 0):
                raise OutputEmpty(format=self.name, problem=f"{_NOT_ANSWERED}: there are {name}")
        failed = float(only(r"^Failed requests:\s+(\d+)$", text, self.name) or 0)
        if not failed:
            return
        kinds = only(r"^\s+\((Connect: .*)\)$", text, self.name) or ""
        counts = {kind: int(count) for kind, count in re.findall(r"(\w+): (\d+)", kinds)}
        lengths = counts.pop("Length", 0)
        if any(counts.values()) or lengths != failed:
            raise OutputEmpty(
                format=self.name, problem=f"{_NOT_ANSWERED}: {failed:g} failed ({kinds or 'why is not told'})"
            )
        yield Note(
            f"{failed:g} answers had another length than the first, which ab counts as failed",
            "answers that are made anew differ so: ab -l accepts them; else look what the server sent",
        )

    def _value(self, name: str, unit: str, text: str) -> float:
        behind = rf" {unit}" if unit else ""
        return measured(the_only(rf"^{name}:\s+(\S+){behind}$", text, self.name), self.name, name)

    def _percentiles(self, text: str) -> Iterator[tuple[int, float]]:
        rows = re.findall(r"^\s*(\d+)%\s+(\S+)(?: \((?:longest|last) request\))?$", text, re.MULTILINE)
        for percent, time in rows:
            yield int(percent), measured(time, self.name, f"{percent} %")
        there = [int(percent) for percent, _ in rows]
        if "Percentage of the requests served" in text and there != _PRINTED:
            problem = f"percentiles of {', '.join(map(str, _PRINTED))} were expected"
            raise OutputDamaged(format=self.name, where="Percentage of the requests", problem=problem)


class RequestsOfApacheBench:
    """Each request of a run."""

    name = "ab-requests"
    summary = "ab -g FILE: a row for each request, with tabs"
    columns = (_LATENCY, *_PERCENTILES.values(), _WORST)
    remarks = (
        "one mean, and ab's percentiles, of the time of all requests (ttime), for the requests of one "
        "process are one run. Milliseconds are whole"
    )
    of_groups = False
    header = "starttime\tseconds\tctime\tdtime\tttime\twait"

    def recognises(self, text: str) -> bool:
        """Whether it begins with ab's header."""
        return text.lstrip().startswith(self.header)

    def read(self, text: str) -> Report:
        """Mean and percentiles. Raises OutputDamaged, OutputEmpty."""
        times: list[int] = []
        for at, line in enumerate(lines_of(text), start=1):
            if not line.strip() or line == self.header:
                continue
            match = re.fullmatch(r"\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}\t\d+\t(\d+)\t(\d+)\t(\d+)\t\d+", line)
            if match is None:
                raise OutputDamaged(
                    format=self.name, where=f"line {at}", problem="this is no row of a request"
                )
            connecting, answering, both = (int(part) for part in match.groups())
            if abs(connecting + answering - both) > 1 or (times and both < times[-1]):
                problem = (
                    f"ttime is {both}, where ctime and dtime are {connecting} and {answering}, and rows rise"
                )
                raise OutputDamaged(format=self.name, where=f"line {at}", problem=problem)
            times.append(both)
        if not any(times):
            raise OutputEmpty(format=self.name, problem="no request took a millisecond")
        values = {_LATENCY: fmean(times)}
        percentiles = {percent: float(times[len(times) * percent // 100]) for percent in _PERCENTS}
        values.update(_of_percentiles({**percentiles, 100: float(times[-1])}, self.name))
        note = Note(f"the {len(times)} requests of one process are one run", "run ab several times")
        return Report(_all_measured(values), notes=(note,))


class PercentilesOfApacheBench:
    """Percentiles with more digits than the report has."""

    name = "ab-percentiles"
    summary = "ab -e FILE: the time of each percentage of the requests"
    columns = (*_PERCENTILES.values(), _WORST)
    remarks = "percentiles, in microseconds' steps. A percentage that is missing or there twice is refused"
    of_groups = False
    header = "Percentage served,Time in ms"

    def recognises(self, text: str) -> bool:
        """Whether it begins with ab's header."""
        return text.lstrip().startswith(self.header)

    def read(self, text: str) -> Report:
        """Percentiles. Raises OutputDamaged."""
        times: list[float] = []
        for at, line in enumerate(lines_of(text), start=1):
            if not line.strip() or line == self.header:
                continue
            percent, _, time = line.partition(",")
            if percent != str(len(times)):
                problem = f"{percent!r} where {len(times)} was expected"
                raise OutputDamaged(format=self.name, where=f"line {at}", problem=problem)
            times.append(measured(time, self.name, f"line {at}"))
        if len(times) not in (100, 101):
            problem = f"it ends with {len(times) - 1} %"
            raise OutputDamaged(format=self.name, where="the end", problem=problem)
        values = _of_percentiles(dict(enumerate(times)), self.name)
        return Report(_all_measured(values))


def _of_percentiles(times: Mapping[int, float], format: str) -> dict[Column, float]:
    """Those that have a column. Raises OutputDamaged: they fall."""
    rising = [times[percent] for percent in sorted(times)]
    if rising != sorted(rising):
        raise OutputDamaged(format=format, where="percentiles", problem="a higher percentile is shorter")
    columns = {**_PERCENTILES, 100: _WORST}
    return {columns[percent]: times[percent] for percent in columns if percent in times}


def _all_measured(values: Mapping[Column, float]) -> tuple[Measured, ...]:
    """A number of 0 says nothing."""
    return tuple(
        Measured(column.metric, (value,), column.unit, column.direction)
        for column, value in values.items()
        if value
    )


FORMATS = (ApacheBench(), RequestsOfApacheBench(), PercentilesOfApacheBench())
