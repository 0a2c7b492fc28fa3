"""fio: the flexible I/O tester, read by its JSON."""

from ktrial.workloads.adapter import (
    InstalledProgram,
    Program,
    Reported,
    Settings,
    choice,
    described,
    less,
    more,
    whole,
    word,
)

_METRICS = tuple(
    metric
    for way in ("read", "write", "trim")
    for metric in (
        more(f"{way} rate", "IOPS"),
        more(f"{way} throughput", "KiB/s"),
        less(f"{way} latency", "ns"),
        less(f"{way} latency p99", "ns"),
    )
)


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


WORKLOAD = InstalledProgram(
    described(
        "fio",
        "disk reads and writes by fio",
        "Runs one fio job for `runtime` seconds on files of `size` that it makes in `directory` and removes. "
        "The numbers are fio's: operations a second, KiB a second, mean and 99th percentile of the latency.",
        _METRICS,
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
    Reported("fio-json", optional=tuple(metric_of_way.name for metric_of_way in _METRICS)),
)
