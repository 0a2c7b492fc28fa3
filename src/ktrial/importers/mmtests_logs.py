"""MMTests' logs of its runs: work/log/RUN/iter-N/BENCHMARK/logs, each file what a program has printed.

A run is a group (people name it after its kernel), its iterations are repetitions. MMTests adds the number of
threads, clients or bytes to a file's name, which then tells the things that were measured apart.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_LOGS = ("logs", "noprofile")
"""What the directory is called; before 2018 the second."""
_ITERATION = re.compile(r"iter-(\d+)")
_PACKED = re.compile(r"\.(?:gz|xz|zst)$")
_REPEATED = re.compile(
    r"(?P<what>(?:time|sysbench-raw|stressng)-\d+)-\d+|(?P<netperf>[A-Z]+_[A-Z]+-\d+)\.\d+"
)
"""Files that differ in the number of their iteration only."""
_BESIDE = re.compile(r"time-.*|.*\.time|.*-init\.log|load-.*")
"""Times of a benchmark that tells numbers of its own, and what set it up."""
_NEVER_RESULTS = {
    "commands.log",
    "shellpack.yaml",
    "protocols",
    "interfaces",
    "server-host",
    "models",
    "workloads",
}


@dataclass(frozen=True)
class LogFile:
    """One file of a run."""

    run: str
    benchmark: str
    path: Path

    @property
    def part(self) -> str:
        """What was measured in it: `hackbench-4`, `netperf TCP_STREAM-64`."""
        name = _PACKED.sub("", self.path.name)
        match = _REPEATED.fullmatch(name.removesuffix(".log"))
        plain = (match["what"] or match["netperf"]) if match else name.removesuffix(".log")
        return plain if plain.startswith(self.benchmark) else f"{self.benchmark} {plain}"

    @property
    def is_beside(self) -> bool:
        """Whether it is a time of the benchmark, or of its set-up."""
        return bool(_BESIDE.fullmatch(_PACKED.sub("", self.path.name)))


def runs_of(path: Path) -> list[Path]:
    """The directory itself where it is a run; else the runs in it, in the order of their names."""
    if _iterations(path):
        return [path]
    return [below for below in sorted(path.iterdir()) if below.is_dir() and _iterations(below)]


def logs_of(run: Path) -> list[LogFile]:
    """Every file that may hold results, iteration by iteration."""
    return list(_logs(run))


def results_of(files: Sequence[LogFile], readable: set[Path]) -> tuple[list[LogFile], dict[str, list[str]]]:
    """Those to be read of one run's files; benchmark → names of those that are not.

    `readable`: what has a format. A benchmark's times count where it has nothing else.
    """
    own = {file.benchmark for file in files if file.path in readable and not file.is_beside}
    read = [
        file for file in files if file.path in readable and not (file.is_beside and file.benchmark in own)
    ]
    left: dict[str, list[str]] = defaultdict(list)
    for file in files:
        if file.path not in readable and not file.is_beside and file.path.name not in left[file.benchmark]:
            left[file.benchmark].append(file.path.name)
    return read, {benchmark: names for benchmark, names in left.items() if names}


def _iterations(path: Path) -> list[Path]:
    numbered = [
        (int(match[1]), below)
        for below in path.iterdir()
        if (match := _ITERATION.fullmatch(below.name)) and below.is_dir()
    ]
    return [below for _, below in sorted(numbered)]


def _logs(run: Path) -> Iterator[LogFile]:
    for iteration in _iterations(run):
        for benchmark in sorted(below for below in iteration.iterdir() if below.is_dir()):
            for name in _LOGS:
                directory = benchmark / name
                for path in sorted(directory.iterdir()) if directory.is_dir() else ():
                    if path.is_file() and path.name not in _NEVER_RESULTS:
                        yield LogFile(run.name, benchmark.name, path)
