"""Who holds the lock on an SQLite database, as far as the kernel tells: /proc/locks."""

import os
import re
from pathlib import Path

_LOCK = re.compile(r"^\d+: \S+ +\S+ +WRITE +(\d+) +([0-9a-f]+):([0-9a-f]+):(\d+) ")


def holder_of(file: Path) -> str:
    """` by process 4711 (ktrial)`; empty where it cannot be told (another container, another host)."""
    # With a write-ahead log it is -shm that is locked, never -wal (https://www.sqlite.org/wal.html).
    nodes = {node for suffix in ("", "-shm") if (node := _node(Path(f"{file}{suffix}")))}
    pids = [pid for pid, node in _write_locks() if node in nodes and pid != os.getpid()]
    return f" by process {pids[0]}{_program(pids[0])}" if pids else ""


def _write_locks() -> list[tuple[int, tuple[int, int]]]:
    """Process and (device, inode) of every write lock on this host."""
    table = Path("/proc/locks")
    lines = table.read_text().splitlines() if table.exists() else []
    locks = [match for line in lines if (match := _LOCK.match(line))]
    return [(int(m[1]), (os.makedev(int(m[2], 16), int(m[3], 16)), int(m[4]))) for m in locks]


def _node(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _program(pid: int) -> str:
    try:
        return f" ({Path(f'/proc/{pid}/comm').read_text(encoding='utf-8', errors='replace').strip()})"
    except OSError:
        return ""
