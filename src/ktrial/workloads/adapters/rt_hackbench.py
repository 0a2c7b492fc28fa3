"""hackbench of rt-tests: senders and receivers. (ktrial's own is called hackbench.)"""

from ktrial.workloads.adapter import (
    InstalledProgram,
    Program,
    Settings,
    choice,
    described,
    less,
    number,
    whole,
)


def _arguments(settings: Settings) -> tuple[str, ...]:
    return (
        *("-g", str(settings["groups"]), "-f", str(settings["fds"])),
        *("-l", str(settings["loops"]), "-s", str(settings["datasize"])),
        "-T" if settings["workers"] == "threads" else "-P",
        *(("-p",) if settings["channel"] == "pipes" else ()),
    )


def _read(output: str, _settings: Settings) -> dict[str, float]:
    return {"time": number(r"^Time: ([0-9.]+)$", output)}


WORKLOAD = InstalledProgram(
    described(
        "rt-hackbench",
        "hackbench of rt-tests: many senders and receivers",
        "In each of `groups` groups, `fds` senders send `loops` messages to each of `fds` receivers. The "
        "number is the time that it prints, in seconds.",
        (less("time", "s"),),
        (
            whole("groups", "groups", 10, high=4096),
            whole("fds", "senders, and receivers, of a group", 20, high=1024),
            whole("loops", "messages from each to each", 100),
            whole("datasize", "bytes of a message", 100, high=1 << 20),
            choice("workers", "what they are", "processes", "threads"),
            choice("channel", "what they talk through", "sockets", "pipes"),
        ),
        "https://git.kernel.org/pub/scm/utils/rt-tests/rt-tests.git",
    ),
    # It has no --version; its help begins with one.
    Program("hackbench", "rt-tests", ("--help",), r"(hackbench V \S+)"),
    _arguments,
    _read,
)
