"""What a row of the audit is, and how kernel files are read for it."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ktrial.model.trial import ReadingKind


@dataclass(frozen=True)
class Observation:
    """What a reader found."""

    value: str
    number: float | None = None
    concern: str = ""
    advice: str = ""


class Absent(Exception):
    """It cannot be read here; the text says why."""


@dataclass(frozen=True)
class EnvironmentReader:
    """One thing that is looked at."""

    name: str
    what: str
    """What it is, in a line."""
    why: str
    """Why it matters to a measurement, in a sentence."""
    read: Callable[[Path], Observation]
    """Given the root directory. Raises Absent or OSError where it cannot be read."""
    kind: ReadingKind = ReadingKind.SETTING
    places: tuple[str, ...] = ()
    """Files that it reads; `*` stands for a CPU's number."""
    takes_time: bool = False
    """It has to wait to see something."""


def text(root: Path, path: str) -> str:
    """A file's content without blanks at its ends. Raises OSError."""
    return (root / path.lstrip("/")).read_text(errors="replace").strip()


def chosen(root: Path, path: str) -> str:
    """The choice in a file like `always [madvise] never`. Raises OSError."""
    content = text(root, path)
    marked = re.search(r"\[([^\]]+)\]", content)
    return marked[1] if marked else content


def of_cpus(root: Path, path: str) -> dict[int, str]:
    """A file of every CPU that has it: `/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor`."""
    texts = {}
    for file in root.glob(path.lstrip("/")):
        number = re.search(r"/cpu(\d+)/", str(file))
        if number:
            texts[int(number[1])] = file.read_text(errors="replace").strip()
    return texts


def together(values: dict[int, str]) -> str:
    """`performance`, or `performance (cpu 0-3), powersave (cpu 4)` where CPUs differ. Raises Absent: none."""
    if not values:
        raise Absent("no CPU has it")
    by_value: dict[str, list[int]] = {}
    for cpu, value in sorted(values.items()):
        by_value.setdefault(value, []).append(cpu)
    if len(by_value) == 1:
        return next(iter(by_value))
    return ", ".join(f"{value} (cpu {ranges(cpus)})" for value, cpus in by_value.items())


def ranges(numbers: Iterable[int]) -> str:
    """`0-3,8`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def meminfo(root: Path) -> dict[str, int]:
    """/proc/meminfo: name → KiB. Raises OSError."""
    lines = (line.split() for line in text(root, "/proc/meminfo").splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in lines if len(words) > 1 and words[1].isdecimal()}
