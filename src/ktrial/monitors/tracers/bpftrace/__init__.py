"""Scripts for bpftrace, and what they print (`bpftrace -f json`), as counters.

Each script beside this file can be run by hand; its head tells which places in the kernel it looks at, and
since when they are there. Which of a monitor's scripts fits this kernel is tried on the kernel itself.
"""

import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ktrial.monitors import Prepared
from ktrial.package_names import INSTALL
from ktrial.system_tools import Tool
from ktrial.target import TracerProgram
from ktrial.target.errors import MonitorFailed, MonitorUnusable
from ktrial.target.tracer_process import Watcher
from ktrial.text_lines import lines_of

SCRIPTS = Path(__file__).parent
_READY = '"watching'
"""What the scripts print by a timer: bpftrace shows that once all is attached. Of `attached_probes` it tells
before it attaches any (0.17)."""
_BPFTRACE = Tool("bpftrace", "bpftrace", "watches what the kernel does meanwhile")
_INSTALL = f"{INSTALL} {_BPFTRACE.package}"
OPTIONS = (
    "BPF_SYSCALL",
    "BPF_JIT",
    "BPF_EVENTS",
    "FUNCTION_TRACER",
    "DYNAMIC_FTRACE_WITH_DIRECT_CALLS",
    "UPROBE_EVENTS",
    "DEBUG_INFO_BTF",
)
"""What tracepoints and fentry need (kernel/trace/Kconfig, kernel/bpf/Kconfig)."""
_FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""PROC_PID_INIT_INO (include/linux/proc_ns.h)."""
_TRACEFS = ("sys/kernel/tracing", "sys/kernel/debug/tracing")


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


class BpftraceMonitor:
    """One question about the kernel, as scripts: that for the newest kernels first."""

    needed_tools = (_BPFTRACE,)

    def __init__(self, name: str, summary: str, *scripts: str) -> None:
        self.name = name
        self.summary = summary
        self.scripts = tuple(SCRIPTS / f"{script}.bt" for script in scripts)

    def prepare(self) -> Prepared:
        """With the first script that this kernel takes. Raises MonitorUnusable."""
        program = _BPFTRACE.path()
        if not program:
            raise MonitorUnusable(monitor=self.name, problem="bpftrace is not installed", remedy=_INSTALL)
        return _prepared(self.name, self.scripts, program)

    def counted(self, printed: str) -> dict[str, float]:
        """`read-ahead.pages`, `read-ahead.window[16..31]` and so on."""
        if _READY not in printed:
            raise ValueError("bpftrace attached nothing")
        maps = parsed(printed)
        bars = {
            f"{self.name}.{name}{bar.name}": float(bar.values)
            for name, bars in maps.histograms.items()
            for bar in bars
            if bar.values
        }
        return {f"{self.name}.{name}": value for name, value in maps.counts.items()} | bars


class _PageCache(BpftraceMonitor):
    """Hits are what was asked for, less what was added."""

    def counted(self, printed: str) -> dict[str, float]:
        """`page-cache.asked`, `.added`, `.hits`, `.reads`."""
        counts = super().counted(printed)
        requested, added = (counts.get(f"{self.name}.{counter}", 0.0) for counter in ("asked", "added"))
        # What was written, or mapped, was added too, and nobody asked for it by reading.
        return counts | {f"{self.name}.hits": max(0.0, requested - added)}


MONITORS = (
    BpftraceMonitor(
        "off-cpu", "time off the CPU: blocked, asleep, or waiting for a CPU (bpftrace)", "off-cpu"
    ),
    _PageCache(
        "page-cache",
        "pages that reads ask for, pages that are added to the page cache, and hits (bpftrace)",
        "page-cache",
        "page-cache-tracepoints",
    ),
    BpftraceMonitor(
        "read-ahead",
        "read-ahead windows in pages, and whether a miss or a mark asked for them (bpftrace)",
        "read-ahead",
        "read-ahead-tracepoints",
    ),
)


@cache
def _prepared(name: str, scripts: tuple[Path, ...], program: str) -> Prepared:
    version = _version(name, program)
    refused = ""
    for script in scripts:
        # bpftrace takes $1 for a number where one is given.
        tracer = TracerProgram(name=name, argv=(program, "-f", "json", str(script), "{pid}"), ready=_READY)
        try:
            with Watcher(tracer, os.getpid()) as watcher:
                watcher.wait_until_ready()
                watcher.end()
            return Prepared(tracer, f"{version}: {script.name}")
        except MonitorFailed as error:
            refused = refused or f"{script.name} {error.facts['problem']}"
    lacks = missing()
    problem = "; ".join((*(lack.problem for lack in lacks), f"bpftrace: {refused}"))
    remedy = next(
        (missing_part.remedy for missing_part in lacks), "a kernel that has what the script's head names"
    )
    raise MonitorUnusable(monitor=name, problem=problem, remedy=remedy)


def _version(name: str, program: str) -> str:
    try:
        finished = subprocess.run(
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
    return finished.stdout.strip()


# --- What a script printed.


def parsed(text: str) -> Printed:
    """The maps of plain numbers and the histograms in what `bpftrace -f json` printed, one object a line.

    Maps with keys are the scripts' own notes. What is none of this is passed over: a line cut short, say.
    """
    maps = Printed({}, {})
    for line in lines_of(text):
        for name, value in _maps(line):
            if isinstance(value, int | float) and not isinstance(value, bool):
                maps.counts[name] = float(value)
            elif isinstance(value, list):
                maps.histograms[name] = tuple(_buckets(value))
    return maps


def _maps(line: str) -> Iterator[tuple[str, object]]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return
    data = (
        message.get("data") if isinstance(message, dict) and message.get("type") in {"map", "hist"} else None
    )
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


# --- What bpftrace needs, and is not here.


class Lack(NamedTuple):
    """One thing that bpftrace needs, and that is not here."""

    problem: str
    remedy: str


def missing(root: Path = Path("/"), *, user: int | None = None) -> tuple[Lack, ...]:
    """All that is missing, what is easiest to see first. `root` and `user` are for tests."""
    return tuple(_missing(root, os.geteuid() if user is None else user))


def _missing(root: Path, user: int) -> Iterator[Lack]:
    if user:
        yield Lack("bpftrace runs for root only", "as root: sudo ktrial …")
    if not any((root / place / "events").is_dir() for place in _TRACEFS) and not user:
        yield Lack("tracefs is not mounted", "mount -t tracefs tracefs /sys/kernel/tracing")
    if not (root / "sys/kernel/btf/vmlinux").exists():
        yield Lack("the kernel has no BTF (/sys/kernel/btf/vmlinux)", "a kernel with CONFIG_DEBUG_INFO_BTF=y")
    config = _config(root)
    off = [f"CONFIG_{option}" for option in OPTIONS if config and config.get(option) != "y"]
    if off:
        yield Lack(f"the kernel was built without {', '.join(off)}", f"a kernel with {off[0]}=y")
    if not user and (problem := _untraceable(root)):
        yield Lack(f"the kernel's functions may not be traced: {problem}", "boot with lockdown=none")
    if _link(root / "proc/self/ns/pid") not in {"", _FIRST_PID_NAMESPACE}:
        yield Lack("this is a container, whose process ids the kernel does not know", "run it outside")


def _untraceable(root: Path) -> str:
    """Why the list of functions cannot be read, where tracefs is mounted: the kernel is locked down."""
    for place in _TRACEFS:
        try:
            with (root / place / "available_filter_functions").open() as file:
                file.read(1)
            return ""
        except FileNotFoundError:
            continue
        except OSError as error:
            return f"/{place}/available_filter_functions: {error.strerror}"
    return ""


def _config(root: Path) -> dict[str, str]:
    """Option → value, of those that the running kernel has; empty where nobody tells."""
    text = _zipped(root / "proc/config.gz") or _text(root / f"boot/config-{os.uname().release}")
    lines = (line.removeprefix("CONFIG_") for line in lines_of(text) if line.startswith("CONFIG_"))
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def _zipped(path: Path) -> str:
    try:
        with gzip.open(path, "rt") as file:
            return file.read()
    except (OSError, EOFError, UnicodeDecodeError):
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""
