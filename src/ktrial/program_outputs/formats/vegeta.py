"""vegeta's report, as text and as JSON (github.com/tsenart/vegeta, lib/reporters.go)."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.keys import KeyPatterns
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import has_keys, json_report, measured, object_of, the_only

_RATE = Column("throughput", "1/s", Direction.HIGHER)
_NAMES = {"mean": "latency", "max": "worst latency", "min": ""} | {
    key: f"latency p{key}" for key in ("50", "90", "95", "99")
}
"""What vegeta's words are called here; the smallest is only compared with."""
_LATENCIES = tuple(Column(name, "ms", Direction.LOWER) for name in _NAMES.values() if name)
_NANO = 1e-9
_NANOSECONDS = 1e6
"""In a millisecond."""
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "ns": 1e-9}
_PART = re.compile(r"([0-9.]+)(ms|µs|us|ns|h|m|s)")
_APART = 0.01
_LINES = LinePatterns(
    measurements=(r"Requests +\[total, rate(?:, throughput)?\] .*", r"Latencies +\[[\w, ]+\] .*"),
    conditions=(
        r"Duration +\[total(?:, attack, wait)?\] +\S+, (?P<attack>\S+), .*",
        r"Success +\[ratio\] +(?P<success>\S+)",
    ),
    decoration=(r"Bytes (?:In|Out) +\[total, mean\] .*", r"Status Codes +\[code:count\] .*", r"Error Set:"),
)
_KEYS = KeyPatterns(
    measurements=(
        "latencies/{mean,min,max,50th,90th,95th,99th}",
        "{throughput,success,requests,duration,wait}",
    ),
    conditions=("rate",),
    decoration=(
        "latencies/total",
        "{bytes_in,bytes_out}/{total,mean}",
        "{earliest,latest,end,errors}",
        "status_codes/*",
        "buckets/*",
    ),
)


class Vegeta:
    """Good answers a second over the whole time, and how long answers took."""

    name = "vegeta"
    summary = "vegeta report, with -type=json or without"
    columns = (_RATE, *_LATENCIES)
    remarks = (
        "the throughput, not the rate, which is what was asked for; latencies in ms. A report in which not "
        "every request succeeded is refused"
    )
    of_groups = False
    begins = (r"^Requests +\[total",)

    def recognises(self, text: str) -> bool:
        """Whether it is one of vegeta's reports."""
        is_text = re.search(r"^Requests +\[total, rate", text, re.MULTILINE) is not None
        return is_text or has_keys(text, "latencies", "bytes_in", "status_codes", "success")

    def read(self, text: str) -> Report:
        """Throughput and latencies. Raises OutputDamaged, OutputEmpty."""
        if has_keys(text, "latencies", "status_codes"):
            document = json_report(text, self.name)
            read = tuple(self._json(document))
            notes = tuple(_KEYS.remainder(document))
            return Report(read, notes=notes, conditions={"rate": str(document.get("rate"))})
        return Report(
            tuple(self._text(text)),
            notes=tuple(_LINES.remainder(text)),
            conditions={"rate": self._fields("Requests", text)["rate"]} | _LINES.conditions_of(text),
        )

    # --- JSON.

    def _json(self, document: dict[str, Any]) -> Iterator[Measured]:
        """Nanoseconds."""
        numbers = {
            key: measured(document.get(key), self.name, key)
            for key in ("success", "requests", "duration", "wait")
        }
        self._check_success(numbers["success"])
        seconds = _NANO * (numbers["duration"] + numbers["wait"])
        if "throughput" in document:
            throughput = measured(document["throughput"], self.name, "throughput")
            yield self._throughput(throughput, numbers["requests"], seconds)
        latencies = object_of(document.get("latencies"), self.name, "latencies")
        yield from self._latencies(
            {
                key.removesuffix("th"): measured(value, self.name, f"latencies, {key}") / _NANOSECONDS
                for key, value in latencies.items()
                if key.removesuffix("th") in _NAMES
            }
        )

    # --- Text.

    def _text(self, text: str) -> Iterator[Measured]:
        ratio = the_only(r"^Success +\[ratio\] +(\S+)%$", text, self.name)
        self._check_success(measured(ratio, self.name, "Success") / 100)
        requests = self._fields("Requests", text)
        seconds = self._seconds(self._fields("Duration", text)["total"])
        if "throughput" in requests:
            throughput, total = (
                measured(requests[key], self.name, f"Requests, {key}") for key in ("throughput", "total")
            )
            yield self._throughput(throughput, total, seconds)
        latencies = self._fields("Latencies", text)
        yield from self._latencies({key: 1000 * self._seconds(value) for key, value in latencies.items()})

    def _fields(self, name: str, text: str) -> dict[str, str]:
        """What stands in brackets → what stands behind them."""
        line = the_only(rf"^({name} +\[.*\] .*)$", text, self.name)
        keys, values = line.partition("[")[2].split("]", 1)
        names, numbers = keys.split(", "), [value.strip() for value in values.split(",")]
        if len(names) != len(numbers):
            problem = f"it has {len(numbers)} numbers for {len(names)} names"
            raise OutputDamaged(format=self.name, where=name, problem=problem)
        return dict(zip(names, numbers, strict=True))

    def _seconds(self, text: str) -> float:
        """Of a duration as Go prints it: 1m0.5s."""
        if not re.fullmatch(rf"(?:{_PART.pattern})+|0", text):
            raise OutputDamaged(format=self.name, where="a time", problem=f"{text!r} is none")
        return sum(
            measured(number, self.name, "a time") * _UNITS[unit] for number, unit in _PART.findall(text)
        )

    # --- Both.

    def _check_success(self, ratio: float) -> None:
        if ratio != 1:
            raise OutputEmpty(
                format=self.name, problem=f"only {100 * ratio:g} % of the requests were answered well"
            )

    def _throughput(self, value: float, requests: float, seconds: float) -> Measured:
        if not seconds or not math.isclose(value, requests / seconds, rel_tol=_APART):
            problem = f"{value:g} a second are not {requests:g} requests in {seconds:g} s"
            raise OutputDamaged(format=self.name, where="throughput", problem=problem)
        return Measured(_RATE.metric, (value,), _RATE.unit, _RATE.direction)

    def _latencies(self, times: Mapping[str, float]) -> Iterator[Measured]:
        if missing := [key for key in ("mean", "50", "max") if key not in times]:
            raise OutputDamaged(format=self.name, where="latencies", problem=f"{missing[0]} is not there")
        in_order = [times[key] for key in ("min", "50", "90", "95", "99", "max") if key in times]
        if in_order != sorted(in_order) or not in_order[0] <= max(times["mean"], times["50"]):
            raise OutputDamaged(format=self.name, where="latencies", problem="they do not grow")
        if times["mean"] > times["max"]:
            raise OutputDamaged(format=self.name, where="latencies", problem="the mean is over the largest")
        for key, name in _NAMES.items():
            if name and key in times:
                yield Measured(name, (times[key],), "ms", Direction.LOWER)


FORMAT = Vegeta()
