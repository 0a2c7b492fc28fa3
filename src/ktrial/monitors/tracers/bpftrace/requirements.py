"""What this system lacks for bpftrace, in words that say what to change."""

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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


_TRACEFS = ("sys/kernel/tracing", "sys/kernel/debug/tracing")


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
    lines = (line.removeprefix("CONFIG_") for line in text.splitlines() if line.startswith("CONFIG_"))
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
