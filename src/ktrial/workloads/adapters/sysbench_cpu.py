"""sysbench cpu: prime numbers."""

from ktrial.workloads.adapter import InstalledProgram, Settings, described, less, more, number, whole
from ktrial.workloads.adapters import sysbench


def _arguments(settings: Settings) -> tuple[str, ...]:
    return ("cpu", f"--cpu-max-prime={settings['max-prime']}", *sysbench.limits(settings), "run")


def _read(output: str, _settings: Settings) -> dict[str, float]:
    rate = number(r"events per second:\s+([0-9.]+)", output)
    return {"events": rate, **sysbench.latency(output)}


WORKLOAD = InstalledProgram(
    described(
        "sysbench-cpu",
        "prime numbers by sysbench: hardly any kernel",
        "One event finds all prime numbers up to `max-prime` by trial division. A null control for most of "
        "what a kernel can be told.",
        (more("events", "1/s"), less("latency", "ms"), less("latency p95", "ms")),
        (whole("max-prime", "the last number looked at", 10_000, low=3), sysbench.THREADS, sysbench.TIME),
        sysbench.SOURCE,
    ),
    sysbench.PROGRAM,
    _arguments,
    _read,
)
