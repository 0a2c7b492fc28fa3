"""Scripts for bpftrace, and what they print (`bpftrace -f json`), as counters.

Each script beside this file can be run by hand; its head tells which places in the kernel it looks at, and
since when they are there. Which of a monitor's scripts fits this kernel is tried on the kernel itself.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ktrial.monitors import Prepared
from ktrial.monitors.tracers.bpftrace.requirements import missing
from ktrial.target import Beside, Watcher
from ktrial.target.monitor_errors import MonitorFailed, MonitorUnusable

SCRIPTS = Path(__file__).parent
_READY = '"watching'
"""What the scripts print by a timer: bpftrace shows that once all is attached. Of `attached_probes` it tells
before it attaches any (0.17)."""
_INSTALL = "sudo apt-get install bpftrace"


class Bucket(NamedTuple):
    """One bar of a histogram: how many values lie from `low` to `high`, both included."""

    low: int | None
    """None: the values below zero."""
    high: int | None
    """None: no end."""
    values: int

    @property
    def name(self) -> str:
        """`[16..31]`, `[1024..]`, `[..-1]`."""
        return f"[{'' if self.low is None else self.low}..{'' if self.high is None else self.high}]"


class Printed(NamedTuple):
    """What a script said at its end."""

    counts: dict[str, float]
    histograms: dict[str, tuple[Bucket, ...]]


def parsed(text: str) -> Printed:
    """The maps of plain numbers and the histograms in what `bpftrace -f json` printed, one object a line.

    Maps with keys are the scripts' own notes. What is none of this is passed over: a line cut short, say.
    """
    found = Printed({}, {})
    for line in text.splitlines():
        for name, value in _maps(line):
            if isinstance(value, int | float) and not isinstance(value, bool):
                found.counts[name] = float(value)
            elif isinstance(value, list):
                found.histograms[name] = tuple(_buckets(value))
    return found


def _maps(line: str) -> Iterator[tuple[str, object]]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return
    data = said.get("data") if isinstance(said, dict) and said.get("type") in {"map", "hist"} else None
    for name, value in data.items() if isinstance(data, dict) else ():
        yield name.removeprefix("@"), value


def _buckets(bars: list[object]) -> Iterator[Bucket]:
    for bar in bars:
        if isinstance(bar, dict):
            low, high, count = (_whole(bar.get(key)) for key in ("min", "max", "count"))
            if count is not None:
                yield Bucket(low, high, count)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class BpftraceMonitor:
    """One question about the kernel, as scripts: that for the newest kernels first."""

    def __init__(self, name: str, summary: str, *scripts: str) -> None:
        self.name = name
        self.summary = summary
        self.scripts = tuple(SCRIPTS / f"{script}.bt" for script in scripts)

    def prepare(self) -> Prepared:
        """With the first script that this kernel takes. Raises MonitorUnusable."""
        program = shutil.which("bpftrace", path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")
        if not program:
            raise MonitorUnusable(monitor=self.name, problem="bpftrace is not installed", remedy=_INSTALL)
        return _prepared(self.name, self.scripts, program)

    def counted(self, printed: str) -> dict[str, float]:
        """`read-ahead.pages`, `read-ahead.window[16..31]` and so on."""
        if _READY not in printed:
            raise ValueError("bpftrace attached nothing")
        found = parsed(printed)
        bars = {
            f"{self.name}.{name}{bar.name}": float(bar.values)
            for name, bars in found.histograms.items()
            for bar in bars
            if bar.values
        }
        return {f"{self.name}.{name}": value for name, value in found.counts.items()} | bars


@cache
def _prepared(name: str, scripts: tuple[Path, ...], program: str) -> Prepared:
    version = _version(name, program)
    refused = ""
    for script in scripts:
        # bpftrace takes $1 for a number where one is given.
        beside = Beside(name=name, argv=(program, "-f", "json", str(script), "{pid}"), ready=_READY)
        try:
            with Watcher(beside, os.getpid()) as watcher:
                watcher.wait_until_ready()
                watcher.end()
            return Prepared(beside, f"{version}: {script.name}")
        except MonitorFailed as error:
            refused = refused or f"{script.name} {error.facts['problem']}"
    lacks = missing()
    problem = "; ".join((*(each.problem for each in lacks), f"bpftrace: {refused}"))
    remedy = next((each.remedy for each in lacks), "a kernel that has what the script's head names")
    raise MonitorUnusable(monitor=name, problem=problem, remedy=remedy)


def _version(name: str, program: str) -> str:
    try:
        done = subprocess.run(
            (program, "--version"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MonitorUnusable(
            monitor=name, problem=f"{program} does not run: {error}", remedy=_INSTALL
        ) from None
    return done.stdout.strip()
