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

from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.monitors import Prepared
from ktrial.package_names import INSTALL
from ktrial.program_outputs.formats.perf_stat import NOT_SUPPORTED, Count, csv_counts
from ktrial.system_tools import Tool
from ktrial.target import TracerProgram
from ktrial.target.errors import MonitorUnusable
from ktrial.text_lines import lines_of

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
_PATIENCE = 60.0


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
        counts = [count for count in csv_counts(printed) if count.is_counted]
        if not counts:
            raise ValueError("perf printed no count")
        return {
            f"{NAME}.{_name(count)}{'_ms' * (count.unit == 'msec')}": float(count.value) for count in counts
        }


def _name(count: Count) -> str:
    """Without the modifier that perf adds where it may count in user space only: `cycles:u`."""
    return count.event.partition(":")[0]


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
            *("-e", ",".join(map(_name, events)), "-p", "{pid}"),
        ),
        say="enable\n",
        ready="ack",
    )
    text = f"{version.strip()}: {', '.join(map(_name, events))}"
    return Prepared(tracer, text, tuple(_warnings(events)))


def _counting(program: str) -> tuple[list[Count], str]:
    """The events that are counted here, and perf's own words where there is none.

    All of them are tried together. A perf that does not know one of them takes none: then each for itself.
    """
    together, problem = _tried(program, EVENTS)
    events = together or [count for event in EVENTS for count in _tried(program, (event,))[0]]
    return [count for count in events if count.value != NOT_SUPPORTED], problem


def _tried(program: str, events: Iterable[str]) -> tuple[list[Count], str]:
    true = shutil.which("true") or "/bin/true"
    printed, complaint = _said(program, "stat", "-x,", "--log-fd", "1", "-e", ",".join(events), "--", true)
    words = [line.strip() for line in lines_of(complaint) if line.strip()]
    return list(csv_counts(printed)), words[0] if words else ""


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


def _warnings(events: list[Count]) -> Iterator[DataWarning]:
    missing = [event for event in EVENTS if event not in set(map(_name, events))]
    if missing:
        yield DataWarning(
            kind=WarningKind.EVENTS_LEFT_OUT,
            text=f"{NAME}: this system does not count {', '.join(missing)}",
            advice="virtual machines often have no performance counters: give the guest a virtual PMU, "
            "or measure on hardware",
        )
    shared = [_name(count) for count in events if count.takes_turns]
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
