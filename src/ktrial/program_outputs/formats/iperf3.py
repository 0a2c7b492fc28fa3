"""iperf3 --json: what arrived, what was sent again, jitter and loss (iperf3's src/iperf_api.c)."""

from collections.abc import Iterator
from typing import Any

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.keys import KeyPatterns
from ktrial.program_outputs.reading import conditions_of, has_keys, json_report, measured, object_of, text_of

_RECEIVED = Column("throughput", "Mbit/s", Direction.HIGHER)
_RETRANSMITS = Column("retransmits", "", Direction.LOWER)
_JITTER = Column("jitter", "ms", Direction.LOWER)
_LOST = Column("lost", "%", Direction.LOWER)
_MEGA = 1e6
_APART = 0.01
_CONDITIONS = {
    "version": "start.version",
    "system": "start.system_info",
    "protocol": "start.test_start.protocol",
    "streams": "start.test_start.num_streams",
    "block size": "start.test_start.blksize",
    "duration": "start.test_start.duration",
    "bytes": "start.test_start.bytes",
    "reverse": "start.test_start.reverse",
    "congestion control": "end.sender_tcp_congestion",
    "server": "start.connecting_to.host",
    "date": "start.timestamp.time",
}
_SUM = (
    "start,end,seconds,bytes,bits_per_second,sender,retransmits,jitter_ms,lost_packets,packets,lost_percent"
)
_STREAM = f"{{{_SUM},socket,max_snd_cwnd,max_snd_wnd,max_rtt,min_rtt,mean_rtt,reorder,out_of_order}}"
_INTERVAL = f"{{{_SUM},socket,omitted,snd_cwnd,snd_wnd,rtt,rttvar,pmtu,reorder}}"
_KEYS = KeyPatterns(
    measurements=(
        f"end/{{sum,sum_sent,sum_received}}/{{{_SUM},omitted,out_of_order}}",
        "error",
    ),
    conditions=(
        "start/{version,system_info,cookie,tcp_mss,tcp_mss_default,target_bitrate,fq_rate,sock_bufsize}",
        "start/{sndbuf_actual,rcvbuf_actual,interval}",
        "start/timestamp/{time,timesecs,timemillisecs}",
        "start/connected/{socket,local_host,local_port,remote_host,remote_port}",
        "start/{connecting_to,accepted_connection}/{host,port}",
        "start/test_start/{protocol,num_streams,blksize,omit,duration,bytes,blocks,reverse,tos,bidir,fqrate}",
        "start/test_start/{target_bitrate,interval,gso,gro,gso_size,gso_dg_size,gro_size,gso_bf_size}",
        "end/{sender_tcp_congestion,receiver_tcp_congestion}",
        "end/cpu_utilization_percent/{host_total,host_user,host_system,remote_total,remote_user,remote_system}",
    ),
    decoration=(
        f"intervals/{{streams,sum}}/{_INTERVAL}",
        f"end/streams/{{udp,sender,receiver}}/{_STREAM}",
        "{title,extra_data,server_output_text}",
        "server_output_json/**",
    ),
)


class Iperf3:
    """The whole test's rate at the receiver."""

    name = "iperf3-json"
    summary = "iperf3 --client HOST --json"
    columns = (_RECEIVED, _RETRANSMITS, _JITTER, _LOST)
    remarks = (
        "the sum of all streams over the whole test, as it arrived; of UDP jitter and the share lost. "
        "Intervals are not read. A test that reports an error is refused"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has what only iperf3 writes."""
        return has_keys(text, "start", "intervals", "end") and '"iperf 3' in text

    def read(self, text: str) -> Report:
        """Throughput, then what went wrong on the way. Raises OutputDamaged, OutputEmpty."""
        document = json_report(text, self.name)
        if error := text_of(document.get("error")):
            raise OutputEmpty(format=self.name, problem=f"iperf3 says: {error}")
        end = object_of(document.get("end"), self.name, "end")
        read = tuple(self._tcp(end) if "sum_received" in end else self._udp(end))
        if not read[0].values[0]:
            raise OutputEmpty(format=self.name, problem="nothing arrived")
        return Report(
            read,
            notes=(*self._notes(end), *_KEYS.remainder(document)),
            conditions=conditions_of(document, _CONDITIONS),
        )

    def _tcp(self, end: dict[str, Any]) -> Iterator[Measured]:
        yield self._of(_RECEIVED, self._rate(end, "sum_received") / _MEGA)
        sent = object_of(end.get("sum_sent"), self.name, "end.sum_sent")
        if "retransmits" in sent:
            yield self._of(_RETRANSMITS, measured(sent["retransmits"], self.name, "retransmits"))

    def _udp(self, end: dict[str, Any]) -> Iterator[Measured]:
        total = object_of(end.get("sum"), self.name, "end.sum")
        lost = measured(total.get("lost_percent"), self.name, "end.sum.lost_percent")
        yield self._of(_RECEIVED, self._rate(end, "sum") * (1 - lost / 100) / _MEGA)
        yield self._of(_JITTER, measured(total.get("jitter_ms"), self.name, "end.sum.jitter_ms"))
        yield self._of(_LOST, lost)

    def _rate(self, end: dict[str, Any], key: str) -> float:
        """Bits a second, which bytes and seconds have to give."""
        where = f"end.{key}"
        total = object_of(end.get(key), self.name, where)
        rate, size, seconds = (
            measured(total.get(name), self.name, f"{where}.{name}")
            for name in ("bits_per_second", "bytes", "seconds")
        )
        if not seconds or abs(8 * size / seconds - rate) > _APART * max(rate, 1.0):
            problem = f"{rate:g} bits a second are not {size:g} bytes in {seconds:g} s"
            raise OutputDamaged(format=self.name, where=where, problem=problem)
        return rate

    def _of(self, column: Column, value: float) -> Measured:
        return Measured(column.metric, (value,), column.unit, column.direction)

    def _notes(self, end: dict[str, Any]) -> Iterator[Note]:
        total = end.get("sum_received") or end.get("sum")
        seconds = total.get("seconds") if isinstance(total, dict) else None
        if isinstance(seconds, int | float) and seconds < 1:
            yield Note(f"the test took {seconds:g} s only", "run it for 10 s or more: -t 10")


FORMAT = Iperf3()
