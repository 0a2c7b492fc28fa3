"""schbench: wake-up and request latencies of a server's workload."""

import re

from ktrial.workloads.adapter import InstalledProgram, Program, Settings, described, less, more, number, whole


def _arguments(settings: Settings) -> tuple[str, ...]:
    threads = ("-t", str(settings["threads"])) if settings["threads"] else ()
    return (
        *("-m", str(settings["message-threads"]), *threads, "-r", str(settings["runtime"])),
        *("-F", str(settings["cache-footprint"]), "-n", str(settings["operations"])),
    )


def _percentile(title: str, percentile: str, output: str) -> float:
    """In the last report: it prints one every ten seconds."""
    _, title_line, last = output.rpartition(f"{title} percentiles")
    match = re.search(rf"^\s*\*?\s*{re.escape(percentile)}th: (\d+)", last, re.MULTILINE)
    if not title_line or not match:
        raise ValueError(f"the {percentile}th percentile of {title} is not in it")
    return float(match[1])


def _read(output: str, _settings: Settings) -> dict[str, float]:
    return {
        "requests": number(r"average rps: ([0-9.]+)", output),
        "wake-up latency p50": _percentile("Wakeup Latencies", "50.0", output),
        "wake-up latency p99": _percentile("Wakeup Latencies", "99.0", output),
        "request latency p50": _percentile("Request Latencies", "50.0", output),
        "request latency p99": _percentile("Request Latencies", "99.0", output),
    }


WORKLOAD = InstalledProgram(
    described(
        "schbench",
        "a web server's scheduling, by schbench",
        "Message threads wake workers, which sleep, compute and answer. The numbers are schbench's own, of "
        "its last report.",
        (
            more("requests", "1/s"),
            less("wake-up latency p50", "µs"),
            less("wake-up latency p99", "µs"),
            less("request latency p50", "µs"),
            less("request latency p99", "µs"),
        ),
        (
            whole("message-threads", "message threads", 1, high=4096),
            whole("threads", "workers of each; 0: as many as there are CPUs", 0, low=0, high=65536),
            whole("runtime", "seconds", 30, high=86400),
            whole("cache-footprint", "KiB that a request works on", 256),
            whole("operations", "how much a request computes", 5),
        ),
        "https://github.com/masoncl/schbench",
    ),
    # No distribution has it, and it does not tell its version.
    Program(
        "schbench",
        "build-essential; then make in https://github.com/masoncl/schbench",
        ("--help",),
        r"\b\B(.)",
    ),
    _arguments,
    _read,
)
