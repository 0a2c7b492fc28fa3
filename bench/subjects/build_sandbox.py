"""What the sandbox of builds costs: the same files compiled in it, and as whoever runs this."""

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.row import Row, median
from ktrial.kernels.build import sandbox

FILES = 120
"""Each some 80 ms of gcc, as those of a kernel: what the sandbox adds to each process is seen."""
ROUNDS = 5
MOST_SLOWDOWN = 1.05


def rows() -> Iterator[Row]:
    """Processor time of make, gcc and sh; the rounds take turns."""
    what = f"{FILES} files compiled in the sandbox, CPU time"
    if problem := sandbox.problem():
        yield Row(what, 0.0, "without it", None, most_slowdown=MOST_SLOWDOWN, note=problem)
        return
    place = Path(tempfile.mkdtemp(prefix="ktrial-bench-", dir="/var/tmp"))
    try:
        place.chmod(0o755)
        plain, confined = (_source(place / name) for name in ("plain", "confined"))
        build = sandbox.Sandbox((place,), (confined,), {})
        command = build.command(sandbox.until_closed(_make(confined)), os.environ)
        outside, inside = [], []
        for _ in range(ROUNDS):
            outside.append(_cpu_seconds(_make(plain)))
            inside.append(_cpu_seconds(command))
        yield Row(what, median(inside), "without it", median(outside), most_slowdown=MOST_SLOWDOWN)
    finally:
        shutil.rmtree(place)


def _source(directory: Path) -> Path:
    directory.mkdir()
    for number in range(FILES):
        body = f'int f{number}(int x) {{ return printf("%d", x + {number}); }}'
        (directory / f"f{number}.c").write_text(f"#include <stdio.h>\n#include <stdlib.h>\n{body}\n")
    (directory / "Makefile").write_text(
        "all: $(patsubst %.c,%.o,$(wildcard *.c))\n%.o: %.c FORCE\n\tgcc -O2 -Wall -c $< -o $@\nFORCE:\n"
    )
    return directory


def _make(directory: Path) -> list[str]:
    # Nobody outside waits for what ends with a namespace: its time is told from inside.
    return ["bash", "-c", f"TIMEFORMAT='%U %S'; time make -s -C {directory}"]


def _cpu_seconds(command: list[str]) -> float:
    """Of make, of all that it runs, and of what confines it."""
    before = _used()
    reading, writing = os.pipe()
    try:
        finished = subprocess.run(command, stdin=reading, stderr=subprocess.PIPE, text=True, check=True)
    finally:
        os.close(reading)
        os.close(writing)
    inside = sum(map(float, finished.stderr.split()[-2:]))
    outside = _used() - before
    return outside if outside > inside / 2 else inside + outside


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
