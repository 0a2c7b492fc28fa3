"""sysbench memory: reads or writes of one buffer."""

from ktrial.workloads.adapter import InstalledProgram, Settings, choice, described, more, number, word
from ktrial.workloads.adapters import sysbench


def _arguments(settings: Settings) -> tuple[str, ...]:
    return (
        "memory",
        f"--memory-block-size={settings['block-size']}",
        "--memory-total-size=1024T",
        f"--memory-oper={settings['operation']}",
        f"--memory-access-mode={settings['access']}",
        *sysbench.limits(settings),
        "run",
    )


def _read(output: str, _settings: Settings) -> dict[str, float]:
    return {"throughput": number(r"transferred \(([0-9.]+) MiB/sec\)", output)}


WORKLOAD = InstalledProgram(
    described(
        "sysbench-memory",
        "memory reads and writes by sysbench",
        "Reads or writes a buffer of `block-size` again and again, for `time` seconds.",
        (more("throughput", "MiB/s"),),
        (
            word("block-size", "of the buffer", "1K"),
            choice("operation", "what is done", "write", "read"),
            choice("access", "in which order", "seq", "rnd"),
            sysbench.THREADS,
            sysbench.TIME,
        ),
        sysbench.SOURCE,
    ),
    sysbench.PROGRAM,
    _arguments,
    _read,
)
