"""perf bench: the kernel's own small benchmarks."""

import re

from ktrial.workloads.adapter import (
    InstalledProgram,
    Program,
    Settings,
    choice,
    described,
    less,
    more,
    number,
    word,
)

_SECONDS = "sched messaging"
_EACH = ("sched pipe", "syscall basic", "syscall getpgid", "syscall execve", "syscall fork")
_FUTEX = ("futex hash", "futex lock-pi")
_MEMORY = ("mem memcpy", "mem memset")


def _arguments(settings: Settings) -> tuple[str, ...]:
    return ("bench", *str(settings["benchmark"]).split(), *str(settings["options"]).split())


def _read(output: str, settings: Settings) -> dict[str, float]:
    benchmark = str(settings["benchmark"])
    if benchmark == _SECONDS:
        return {"time": number(r"Total time: ([0-9.]+) \[sec\]", output)}
    if benchmark in _FUTEX:
        return {"rate": number(r"Averaged ([0-9]+) operations/sec", output)}
    if benchmark in _MEMORY:
        # Several ways of copying one after another; the first is the C library's.
        amount, unit = re.findall(r"([0-9.]+) ([KMG]?)B/sec", output)[0]
        return {"throughput": float(amount) * {"": 1e-9, "K": 1e-6, "M": 1e-3, "G": 1.0}[unit]}
    return {"operation": number(r"([0-9.]+) usecs/op", output)}


WORKLOAD = InstalledProgram(
    described(
        "perf-bench",
        "a benchmark of perf bench",
        "Runs one of the benchmarks that come with the kernel's perf. The number is what it prints.",
        (
            less("time", "s"),
            less("operation", "µs"),
            more("rate", "1/s"),
            more("throughput", "GB/s"),
        ),
        (
            choice("benchmark", "which", _SECONDS, *_EACH, *_FUTEX, *_MEMORY),
            word("options", "further options, separated by blanks: -l 10000", ""),
        ),
        "tools/perf/bench of the kernel's sources",
    ),
    Program("perf", "linux-perf", version_pattern=r"(perf version \S+)"),
    _arguments,
    _read,
)
