"""`perf stat`: what the CPU and the kernel count for a program (tools/perf/Documentation/perf-stat.txt).

It is attached to the process that starts the programs, whose children inherit the counters, so that nothing
stands between ktrial and a program that it measures. What it prints for a machine is its format `-x`, which
is older than `-j`.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.monitors import Prepared
from ktrial.package_names import INSTALL
from ktrial.system_tools import Tool
from ktrial.target import TracerProgram
from ktrial.target.errors import MonitorUnusable

NAME = "perf-stat"
_PERF = Tool("perf", "linux-perf", "counts events of the CPU")
EVENTS = (
    *("cycles", "instructions", "branches", "branch-misses", "cache-references", "cache-misses"),
    *("stalled-cycles-frontend", "stalled-cycles-backend"),
    *("L1-dcache-loads", "L1-dcache-load-misses", "LLC-loads", "LLC-load-misses"),
    *("dTLB-loads", "dTLB-load-misses", "iTLB-load-misses"),
    *("task-clock", "context-switches", "cpu-migrations", "page-faults", "minor-faults", "major-faults"),
)
"""What is tried, in perf's own words (tools/perf/util/parse-events.l has had them since 2009)."""
_LEVEL_FILE = Path("/proc/sys/kernel/perf_event_paranoid")
_WHOLE = 99.0
"""Percent of the time: below that perf took turns, and scaled what it counted."""
_PATIENCE = 60.0


class Counted(NamedTuple):
    """One line of what perf printed."""

    event: str
    """Without the modifier that perf adds where it may count in user space only (`cycles:u`)."""
    value: float | None
    """None where it was not counted."""
    supported: bool
    """Whether this system has the event at all; a short program may end before its turn comes."""
    unit: str
    """`msec` of task-clock; empty for a plain count."""
    percent: float
    """How much of the time it was counted; the value is scaled up where that is not all."""


def lines(printed: str) -> Iterator[Counted]:
    """What `perf stat -x,` printed: value, unit, event, time counted, percent of the time, then metrics.

    Lines that are something else are passed over.
    """
    for line in printed.splitlines():
        fields = line.split(",")
        if len(fields) < 5 or not fields[2]:
            continue
        value = _number(fields[0])
        if value is None and not fields[0].startswith("<not "):
            continue
        event = fields[2].partition(":")[0]
        yield Counted(event, value, fields[0] != "<not supported>", fields[1], _number(fields[4]) or 0.0)


def _number(text: str) -> float | None:
    plain = text.replace(".", "", 1)
    return float(text) if plain.isascii() and plain.isdecimal() else None


class _PerfStat:
    """Counts events of the CPU and of the kernel."""

    name = NAME
    summary = "events of the CPU and the kernel: cycles, instructions, cache misses, context switches"

    needed_tools = (_PERF,)

    def prepare(self) -> Prepared:
        """With the events that this system counts. Raises MonitorUnusable."""
        program = _PERF.path()
        if not program:
            raise _unusable("perf is not installed", f"{INSTALL} {_PERF.package}")
        return _prepared(program)

    def counted(self, printed: str) -> dict[str, float]:
        """`perf-stat.cycles` and so on; `perf-stat.task-clock_ms`."""
        counts = [counter for counter in lines(printed) if counter.value is not None]
        if not counts:
            raise ValueError("perf printed no count")
        return {
            f"{NAME}.{line_counted.event}{'_ms' * (line_counted.unit == 'msec')}": line_counted.value or 0.0
            for line_counted in counts
        }


@cache
def _prepared(program: str) -> Prepared:
    version, _ = _said(program, "--version")
    events, problem = _counting(program)
    if not events:
        raise _unusable(problem or "perf counts none of its events", _remedy())
    tracer = TracerProgram(
        name=NAME,
        # Its events begin disabled, and perf tells when it has enabled them: then all of them are there.
        argv=(
            *(program, "stat", "-x,", "--log-fd", "1", "--control", "fd:0,1", "-D", "-1"),
            *("-e", ",".join(each.event for each in events), "-p", "{pid}"),
        ),
        say="enable\n",
        ready="ack",
    )
    text = f"{version.strip()}: {', '.join(each.event for each in events)}"
    return Prepared(tracer, text, tuple(_warnings(events)))


def _counting(program: str) -> tuple[list[Counted], str]:
    """The events that are counted here, and perf's own words where there is none.

    All of them are tried together. A perf that does not know one of them takes none: then each for itself.
    """
    together, problem = _tried(program, EVENTS)
    events = together or [counter for event in EVENTS for counter in _tried(program, (event,))[0]]
    return [event_counted for event_counted in events if event_counted.supported], problem


def _tried(program: str, events: Iterable[str]) -> tuple[list[Counted], str]:
    true = shutil.which("true") or "/bin/true"
    printed, complaint = _said(program, "stat", "-x,", "--log-fd", "1", "-e", ",".join(events), "--", true)
    words = [line.strip() for line in complaint.splitlines() if line.strip()]
    return list(lines(printed)), words[0] if words else ""


def _said(*argv: str) -> tuple[str, str]:
    environment = {"LC_ALL": "C", "PATH": os.environ.get("PATH", os.defpath)}
    try:
        finished = subprocess.run(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unusable(f"{argv[0]} does not run: {error}", f"{INSTALL} {_PERF.package}") from None
    return finished.stdout, finished.stderr


def _warnings(events: list[Counted]) -> Iterator[DataWarning]:
    counted = {counter.event for counter in events}
    missing = [event for event in EVENTS if event not in counted]
    if missing:
        yield DataWarning(
            kind=WarningKind.EVENTS_LEFT_OUT,
            text=f"{NAME}: this system does not count {', '.join(missing)}",
            advice="virtual machines often have no performance counters: give the guest a virtual PMU, "
            "or measure on hardware",
        )
    shared = [event_counted.event for event_counted in events if event_counted.percent < _WHOLE]
    if shared:
        yield DataWarning(
            kind=WarningKind.EVENTS_LEFT_OUT,
            text=f"{NAME}: there are not counters enough: these take turns, and are scaled up: "
            f"{', '.join(shared)}",
        )


def _remedy() -> str:
    try:
        level = _LEVEL_FILE.read_text().strip()
    except OSError:
        return "a kernel with CONFIG_PERF_EVENTS"
    return f"as root, or {_LEVEL_FILE} (now {level}) at 2 or less"


def _unusable(problem: str, remedy: str) -> MonitorUnusable:
    return MonitorUnusable(monitor=NAME, problem=problem, remedy=remedy)


MONITOR = _PerfStat()
