"""fio: the flexible I/O tester, read by its JSON."""

import json

from ktrial.workloads.adapter import (
    InstalledProgram,
    Program,
    Settings,
    choice,
    described,
    less,
    more,
    whole,
    word,
)

_WAYS = ("read", "write", "trim")


def _arguments(settings: Settings) -> tuple[str, ...]:
    return (
        "--name=ktrial",
        f"--directory={settings['directory']}",
        f"--rw={settings['rw']}",
        f"--bs={settings['bs']}",
        f"--size={settings['size']}",
        f"--ioengine={settings['ioengine']}",
        f"--iodepth={settings['iodepth']}",
        f"--numjobs={settings['numjobs']}",
        f"--direct={settings['direct']}",
        f"--fsync={settings['fsync']}",
        f"--runtime={settings['runtime']}",
        *("--time_based", "--group_reporting", "--unlink=1", "--output-format=json"),
    )


def _read(output: str, _settings: Settings) -> dict[str, float]:
    # Notes for people may stand before the JSON.
    (job,) = json.loads(output[output.index("{") :])["jobs"]
    if job["error"]:
        raise ValueError(f"fio reports error {job['error']}")
    metrics = {}
    for way in _WAYS:
        if job[way]["total_ios"]:
            metrics[f"{way} rate"] = float(job[way]["iops"])
            metrics[f"{way} throughput"] = float(job[way]["bw"])
            metrics[f"{way} latency"] = float(job[way]["lat_ns"]["mean"])
            metrics[f"{way} latency p99"] = float(job[way]["clat_ns"]["percentile"]["99.000000"])
    return metrics


WORKLOAD = InstalledProgram(
    described(
        "fio",
        "disk reads and writes by fio",
        "Runs one fio job for `runtime` seconds on files of `size` that it makes in `directory` and removes. "
        "The numbers are fio's: operations a second, KiB a second, mean and 99th percentile of the latency.",
        tuple(
            metric
            for way in _WAYS
            for metric in (
                more(f"{way} rate", "IOPS"),
                more(f"{way} throughput", "KiB/s"),
                less(f"{way} latency", "ns"),
                less(f"{way} latency p99", "ns"),
            )
        ),
        (
            choice("rw", "what is done", "randread", "randwrite", "randrw", "read", "write", "rw"),
            word("bs", "size of one operation", "4k"),
            word("size", "size of a job's file", "256m"),
            word("ioengine", "how: psync, libaio, io_uring…", "psync"),
            whole("iodepth", "operations under way at once", 1, high=65536),
            whole("numjobs", "jobs at once", 1, high=1024),
            whole("direct", "1: past the page cache", 0, low=0, high=1),
            whole("fsync", "writes between two fsync; 0: none", 0, low=0),
            whole("runtime", "seconds", 10, high=86400),
            word("directory", "where its files are", "/tmp"),
        ),
        "https://github.com/axboe/fio",
    ),
    Program("fio", "fio", version_pattern=r"(fio-\S+)"),
    _arguments,
    _read,
)
