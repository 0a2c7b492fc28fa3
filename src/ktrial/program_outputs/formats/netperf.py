"""netperf's report of one test (github.com/HewlettPackard/netperf, src/nettest_bsd.c)."""

import re

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured, the_only
from ktrial.text_lines import lines_of

_STREAM = Column("throughput", "Mbit/s", Direction.HIGHER)
_SENT = Column("sent", "Mbit/s", Direction.HIGHER)
_RATE = Column("transactions", "1/s", Direction.HIGHER)
_TITLE = (
    r"(?:MIGRATED )?(?P<protocol>TCP|UDP|SCTP) "
    r"(?P<test>STREAM|MAERTS|SENDFILE|REQUEST/RESPONSE|UNIDIRECTIONAL SEND|Connect/Request/Response|"
    r"Connect/Accept) TEST(?: +(?:from .*)?| *)"
)
_ROW = r" *\d+(?: +[0-9.]+)+"
_LINES = LinePatterns(
    measurements=(_ROW,),
    conditions=(_TITLE,),
    failures=(
        r".*(?:[Cc]onnection refused|could not establish|send_data error|netperf: .*|shutdown_control: .*).*",
    ),
    decoration=(r" *(?:Size|bytes|Sock|Socket|Local|Remote|Send|Recv)\b.*",),
)
_STREAM_FIELDS, _MOST_STREAM_FIELDS = 5, 9
_RR_FIELDS = 6
_UDP_FIELDS = (6, 4)


class Netperf:
    """The throughput that arrived, or the transactions a second."""

    name = "netperf"
    summary = "netperf -t TEST -H HOST, its report on standard output"
    columns = (_STREAM, _SENT, _RATE)
    remarks = (
        "the tables of TCP_STREAM, TCP_MAERTS, UDP_STREAM (what arrived, and what was sent), TCP_RR, UDP_RR "
        "and TCP_CRR, in 10^6 bits a second. Other units, and selected outputs (-o, -k), are refused"
    )
    of_groups = False
    begins = (r"^(?:MIGRATED )?(?:TCP|UDP|SCTP) .* TEST\b",)

    def recognises(self, text: str) -> bool:
        """Whether there is netperf's title."""
        return " TEST" in text and any(re.fullmatch(_TITLE, line.rstrip()) for line in lines_of(text))

    def read(self, text: str) -> Report:
        """The numbers of the test. Raises OutputDamaged, OutputEmpty."""
        if " TEST" not in text:
            raise OutputEmpty(format=self.name, problem="it names no test")
        if failure := _LINES.failure_of(text):
            raise OutputEmpty(format=self.name, problem=f"it says {failure.strip()}")
        titles = [match for line in lines_of(text) if (match := re.fullmatch(_TITLE, line.rstrip()))]
        if len(titles) != 1:
            problem = f"there are {len(titles)} tests in it: it is not clear which of them counts"
            raise OutputDamaged(format=self.name, where="the whole", problem=problem)
        rows = [line.split() for line in lines_of(text) if re.fullmatch(_ROW, line.rstrip())]
        if titles[0]["test"] in ("STREAM", "MAERTS", "SENDFILE", "UNIDIRECTIONAL SEND"):
            the_only(r"(10\^6 ?bits/s(?:ec)?)\b", text, self.name)
            is_udp = titles[0]["protocol"] == "UDP"
            fields = _MOST_STREAM_FIELDS if "% S" in text else _STREAM_FIELDS
            read, told = self._datagrams(rows) if is_udp else self._stream(rows, fields)
        else:
            the_only(r"(per sec)\b", text, self.name)
            read, told = self._transactions(rows)
        if not all(measurement.values[0] for measurement in read):
            raise OutputEmpty(format=self.name, problem="nothing arrived")
        conditions = _LINES.conditions_of(text) | told
        return Report(read, notes=tuple(_LINES.remainder(text)), conditions=conditions)

    def _stream(self, rows: list[list[str]], fields: int) -> tuple[tuple[Measured, ...], dict[str, str]]:
        """Receive and send buffer, message, seconds, throughput; with -c utilisation behind it."""
        if len(rows) != 1 or len(rows[0]) != fields:
            raise self._unexpected(rows)
        receive, send, message, seconds, rate, *_ = rows[0]
        told = {"receive buffer": receive, "send buffer": send, "message size": message, "duration": seconds}
        return (self._of(_STREAM, rate),), told

    def _datagrams(self, rows: list[list[str]]) -> tuple[tuple[Measured, ...], dict[str, str]]:
        """Buffer, message, seconds, messages, errors, throughput; below what the receiver got."""
        if tuple(map(len, rows)) != _UDP_FIELDS:
            raise self._unexpected(rows)
        told = {"send buffer": rows[0][0], "message size": rows[0][1], "duration": rows[0][2]}
        for row, count in ((rows[0], rows[0][3]), (rows[1], rows[1][2])):
            self._check(float(rows[0][1]) * 8e-6 * float(count), float(row[-1]), rows[0][2])
        return (self._of(_STREAM, rows[1][3]), self._of(_SENT, rows[0][5])), told

    def _transactions(self, rows: list[list[str]]) -> tuple[tuple[Measured, ...], dict[str, str]]:
        """Buffers, request, response, seconds, rate; below the remote buffers."""
        if len(rows) != 2 or len(rows[0]) < _RR_FIELDS or len(rows[1]) != 2:
            raise self._unexpected(rows)
        keys = ("send buffer", "receive buffer", "request size", "response size", "duration")
        return (self._of(_RATE, rows[0][5]),), dict(zip(keys, rows[0], strict=False))

    def _check(self, megabits: float, rate: float, seconds: str) -> None:
        """That the messages are as many as the rate says."""
        duration = measured(seconds, self.name, "seconds")
        if not duration or abs(megabits / duration - rate) > 0.01 * rate + 0.01:
            problem = f"{megabits:g} Mbit in {duration:g} s are not {rate:g} Mbit/s"
            raise OutputDamaged(format=self.name, where="UDP", problem=problem)

    def _of(self, column: Column, value: str) -> Measured:
        number = measured(value, self.name, column.metric)
        return Measured(column.metric, (number,), column.unit, column.direction)

    def _unexpected(self, rows: list[list[str]]) -> OutputDamaged:
        shown = "; ".join(" ".join(row) for row in rows[:2]) or "no row of numbers"
        return OutputDamaged(format=self.name, where="the table", problem=f"{shown}: the test prints another")


FORMAT = Netperf()
