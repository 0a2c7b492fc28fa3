"""sysbench: what its tests have in common."""

from ktrial.workloads.adapter import Program, Settings, number, whole

PROGRAM = Program("sysbench", "sysbench", version_pattern=r"(sysbench \S+)")
SOURCE = "https://github.com/akopytov/sysbench"
THREADS = whole("threads", "threads", 1, high=65536)
TIME = whole("time", "seconds", 10, high=86400)


def limits(settings: Settings) -> tuple[str, ...]:
    """`--threads` and `--time`."""
    return (f"--threads={settings['threads']}", f"--time={settings['time']}")


def latency(output: str) -> dict[str, float]:
    """Mean and 95th percentile, in milliseconds, which it tells with two decimals."""
    return {
        "latency": number(r"^\s+avg:\s+([0-9.]+)$", output),
        "latency p95": number(r"^\s+95th percentile:\s+([0-9.]+)$", output),
    }
