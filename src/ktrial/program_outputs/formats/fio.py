"""fio --output-format=json (fio's HOWTO: JSON output)."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report, distinct
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.keys import KeyPatterns
from ktrial.program_outputs.reading import (
    conditions_of,
    has_keys,
    json_report,
    measured,
    object_of,
    objects_of,
    text_of,
)

_WAYS = ("read", "write", "trim", "mixed")
"""`mixed` where unified_rw_reporting adds them up."""
_CONDITIONS = {
    "pattern": "rw",
    "block size": "bs",
    "depth": "iodepth",
    "engine": "ioengine",
    "direct": "direct",
    "jobs": "numjobs",
    "size": "size",
    "duration": "runtime",
    "fsync": "fsync",
    "mix": "rwmixread",
    "file": "filename",
    "limit": "rate_iops",
}
_DEFAULTS = {"depth": "1", "direct": "0", "jobs": "1"}
"""What fio does where a job names no such option: another file may name it."""
_BESIDE = ("slat_ns", "clat_ns", "bw_mean", "iops_mean")
"""What fio measures of each way besides: times of submission and completion, and samples of the rates."""
_P99 = "99.000000"
_MICROSECOND_NS = 1000.0
_KEYS = KeyPatterns(
    measurements=(
        "jobs/{jobname,error}",
        "jobs/{read,write,trim,sync}/{iops,bw,bw_bytes,io_bytes,io_kbytes,total_ios,runtime}",
        "jobs/{read,write,trim,sync}/{clat_ns,lat_ns,clat,lat}/{mean,min,max,N,stddev}",
        "jobs/{read,write,trim,sync}/{clat_ns,lat_ns,clat,lat}/percentile/*",
    ),
    conditions=(
        "{fio version,time}",
        "global options/*",
        "jobs/job options/*",
    ),
    decoration=(
        "{timestamp,timestamp_ms}",
        "jobs/{read,write,trim,sync}/{short_ios,drop_ios,iops_min,iops_max,iops_mean,iops_stddev,iops_samples}",
        "jobs/{read,write,trim,sync}/{bw_min,bw_max,bw_agg,bw_mean,bw_dev,bw_samples}",
        "jobs/{read,write,trim,sync}/{slat_ns,slat}/{mean,min,max,N,stddev}",
        "jobs/{read,write,trim,sync}/{slat_ns,slat}/{percentile,bins}/*",
        "jobs/{read,write,trim,sync}/{clat_ns,lat_ns,clat,lat}/bins/*",
        "jobs/{groupid,eta,elapsed,job_start,job_runtime,usr_cpu,sys_cpu,ctx,majf,minf,desc,hostname,port}",
        "jobs/{latency_depth,latency_target,latency_percentile,latency_window}",
        "jobs/{iodepth_level,iodepth_submit,iodepth_complete}/{0,1,2,4,8,16,32,64,>=4,>=8,>=16,>=32,>=64}",
        "jobs/{latency_ns,latency_us,latency_ms}/{2,4,10,20,50,100,250,500,750,1000,2000,>=2000}",
        "jobs/steadystate/{ss,duration,attained,criterion,max_deviation,slope}",
        "jobs/steadystate/data/{bw_mean,iops_mean,iops,bw}",
        "disk_util/{name,read_ios,write_ios,read_merges,write_merges,read_sectors,write_sectors,util,in_queue}",
        "disk_util/{read_ticks,write_ticks,aggr_read_ios,aggr_write_ios,aggr_read_merges,aggr_write_merge}",
        "disk_util/{aggr_write_merges,aggr_read_ticks,aggr_write_ticks,aggr_in_queue,aggr_util}",
        "disk_util/{aggr_read_sectors,aggr_write_sectors,slaves}",
        "client_stats/**",
    ),
)


class Fio:
    """Rates, throughput and latency of what each job did."""

    name = "fio-json"
    summary = "fio --output-format=json"
    columns = tuple(
        column
        for way in _WAYS
        for column in (
            Column(f"{way} rate", "IOPS", Direction.HIGHER),
            Column(f"{way} throughput", "KiB/s", Direction.HIGHER),
            Column(f"{way} latency", "ns", Direction.LOWER),
            Column(f"{way} latency p99", "ns", Direction.LOWER),
        )
    )
    remarks = (
        "for each job what it did, and nothing of what it did not; the percentile is that of the "
        "completion latency. A job that reports an error is left out, with a warning. Jobs of one name are "
        "told one by one: `--group_reporting` adds them up. Several reports (`--status-interval`) are refused"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has what only fio writes."""
        return has_keys(text, "fio version", "jobs")

    def read(self, text: str) -> Report:
        """The metrics of each job. Raises OutputDamaged, OutputEmpty."""
        document = json_report(text, self.name)
        jobs = objects_of(document.get("jobs"), self.name, "jobs")
        together = document.get("global options")
        names = [text_of(job.get("jobname")) or "job" for job in jobs]
        read: list[Measured] = []
        failures: list[Note] = []
        for name, job in zip(distinct(names), jobs, strict=True):
            if error := job.get("error"):
                text = f"the job {name} reports error {error}: it is left out"
                failures.append(Note(text, "look at what fio printed on standard error"))
            else:
                read += self._job(name, job, together if isinstance(together, dict) else {})
        if not read:
            problem = failures[0].text if failures else "no job did an operation"
            raise OutputEmpty(format=self.name, problem=problem)
        version = conditions_of(document, {"version": "fio version", "date": "time"})
        notes = (*_notes(names, read), *_KEYS.remainder(document))
        return Report(tuple(read), tuple(failures), notes, version, tuple(_unread(jobs)))

    def _job(self, name: str, job: dict[str, Any], together: dict[str, Any]) -> Iterator[Measured]:
        own = job.get("job options")
        options = {**together, **(own if isinstance(own, dict) else {})}
        conditions = {**(_DEFAULTS if options else {}), **conditions_of(options, _CONDITIONS)}
        for way in _WAYS:
            if way not in job:
                continue
            where = f"{name}, {way}"
            did = object_of(job[way], self.name, where)
            if measured(did.get("total_ios"), self.name, f"{where}, total_ios"):
                if not measured(did.get("runtime"), self.name, f"{where}, runtime"):
                    problem = "it took less than a millisecond, so that fio tells no rate: have it do more"
                    raise OutputDamaged(format=self.name, where=where, problem=problem)
                numbers = self._numbers(did, where)
                for column in self.columns:
                    if column.metric in (
                        names := {f"{way} {quantity}": number for quantity, number in numbers.items()}
                    ):
                        value = (names[column.metric],)
                        yield Measured(
                            column.metric, value, column.unit, column.direction, name, conditions=conditions
                        )

    def _numbers(self, did: dict[str, Any], where: str) -> dict[str, float]:
        numbers = {
            "rate": measured(did.get("iops"), self.name, f"{where}, iops"),
            "throughput": self._throughput(did, where),
            "latency": self._latency(did, where),
        }
        completion = did.get("clat_ns")
        percentiles = completion.get("percentile") if isinstance(completion, dict) else None
        if isinstance(percentiles, dict) and _P99 in percentiles:
            numbers["latency p99"] = measured(percentiles[_P99], self.name, f"{where}, percentile {_P99}")
        return numbers

    def _throughput(self, did: dict[str, Any], where: str) -> float:
        """In KiB a second: fio 2 told no bytes."""
        if "bw_bytes" in did:
            return measured(did["bw_bytes"], self.name, f"{where}, bw_bytes") / 1024
        return measured(did.get("bw"), self.name, f"{where}, bw")

    def _latency(self, did: dict[str, Any], where: str) -> float:
        """The mean in nanoseconds: fio 2 told microseconds."""
        if "lat_ns" in did:
            return measured(
                object_of(did["lat_ns"], self.name, where).get("mean"), self.name, f"{where}, lat_ns"
            )
        mean = object_of(did.get("lat"), self.name, f"{where}, lat_ns").get("mean")
        return measured(mean, self.name, f"{where}, lat") * _MICROSECOND_NS


def _unread(jobs: list[dict[str, Any]]) -> Iterator[str]:
    """Numbers that jobs measured and that are not read; `sync` is the time that fsync took."""
    did = [part for job in jobs for way in _WAYS if isinstance(part := job.get(way), dict)]
    for key in _BESIDE:
        if any(part.get("total_ios") and part.get(key) for part in did):
            yield "clat_ns mean" if key == "clat_ns" else key
    syncs = [job.get("sync") for job in jobs]
    if any(isinstance(sync, dict) and sync.get("total_ios") for sync in syncs):
        yield "sync"


def _notes(names: list[str], read: list[Measured]) -> Iterator[Note]:
    for name, count in Counter(names).items():
        if count > 1:
            text = f"{count} jobs are called {name}: each has its own numbers here"
            yield Note(text, "fio --group_reporting adds them up")
    for way in _WAYS:
        got = {metric.metric for metric in read}
        if f"{way} rate" in got and f"{way} latency p99" not in got:
            yield Note(f"fio tells no 99th percentile of the completion latency of {way}")


FORMAT = Fio()
