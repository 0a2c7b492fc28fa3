"""cyclictest of rt-tests: how late threads wake up."""

from ktrial.workloads.adapter import (
    InstalledProgram,
    Program,
    Reported,
    Settings,
    choice,
    described,
    less,
    whole,
)


def _arguments(settings: Settings) -> tuple[str, ...]:
    real_time = ("-p", str(settings["priority"])) if settings["priority"] else ()
    return (
        *("--quiet", "--nsecs", "-t", str(settings["threads"]), "-i", str(settings["interval"])),
        *("-D", str(settings["duration"]), *real_time),
        *(("--default-system",) if settings["idle-states"] == "as they are" else ()),
        # Guests have no /dev/stdout: a file of that name would be made.
        "--json=/proc/self/fd/1",
    )


WORKLOAD = InstalledProgram(
    described(
        "cyclictest",
        "how late threads wake up, by cyclictest",
        "Threads sleep until a moment, and look how late they are, each `interval` microseconds. The numbers "
        "are the mean over all wake-ups, and the worst of them: one number a run, so that it takes many.",
        (less("latency", "ns"), less("worst latency", "ns")),
        (
            whole("threads", "threads", 1, high=4096),
            whole("interval", "microseconds between two wake-ups", 1000),
            whole("duration", "seconds", 10, high=86400),
            whole("priority", "real-time priority (SCHED_FIFO); 0: none", 0, low=0, high=99),
            choice(
                "idle-states",
                "it keeps CPUs from deep sleep while it runs (/dev/cpu_dma_latency)",
                "as they are",
                "kept shallow",
            ),
        ),
        "https://git.kernel.org/pub/scm/utils/rt-tests/rt-tests.git",
    ),
    # It has no --version; its help begins with one.
    Program("cyclictest", "rt-tests", ("--help",), r"(cyclictest V \S+)"),
    _arguments,
    Reported("cyclictest-json", required=("latency", "worst latency")),
)
