"""A whole study, `studies/quick.toml`, beside an earlier commit of ktrial: CPU time of all that it starts.

`make bench BENCH=quick AGAINST=COMMIT`; the variable STUDIES names other files, as a part of
`studies/kernel-upgrades.toml`. Kernels and snapshots are in the cache; each run has its own store.
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.row import Row

AGAINST = "ced558c96"
"""The commit before one QEMU served many trials; the variable AGAINST names another."""
ROUNDS = 3
STUDY = Path("studies") / "quick.toml"
TIMES_FASTER = 53 / 18
"""The goal: 18 CPU-seconds where that commit took 53."""
OTHERS_TIMES_FASTER = 1 / 0.4
"""The goal of `studies/kernel-upgrades.toml`."""
PROGRAM = "from ktrial.cli.main import main; main()"
NOTE = (
    "the whole study: user and system time of ktrial and all its QEMUs, the least of 3 runs in turn, after "
    "one of each that is not counted"
)
HERE = Path(__file__).parents[2]


def rows() -> Iterator[Row]:
    """Both in turn, so that both meet the same load."""
    commit = os.environ.get("AGAINST", AGAINST)
    with checkout(commit) as there:
        for study in map(Path, os.environ.get("STUDIES", str(STUDY)).split()):
            for place in (there, HERE):
                cpu_seconds(place, study)
            rounds = [(cpu_seconds(HERE, study), cpu_seconds(there, study)) for _ in range(ROUNDS)]
            ours, theirs = (min(sides) for sides in zip(*rounds, strict=True))
            goal = TIMES_FASTER if study == STUDY else OTHERS_TIMES_FASTER
            yield Row(f"ktrial run {study}", ours, commit, theirs, least_ratio=goal, note=NOTE)


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """That commit's files, with its guest programs. They are gone at the end of the block."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "ktrial"
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(place), commit], check=True)
        try:
            subprocess.run([place / "crates" / "take-prebuilt"], check=True, stdout=subprocess.DEVNULL)
            yield place
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


def cpu_seconds(place: Path, study: Path) -> float:
    """What the study takes there: a path in the checkout, or one from the root."""
    with tempfile.TemporaryDirectory() as directory:
        return cpu_seconds_of(place, "run", str(place / study), store=str(Path(directory) / "store"))


def cpu_seconds_of(place: Path, *words: str, store: str = "") -> float:
    """What a command takes there, with all that it starts. `store`: where it keeps results, if it does."""
    variables = {"PYTHONPATH": str(place / "src")} | ({"KTRIAL_STORE": store} if store else {})
    command = [sys.executable, "-c", PROGRAM, *words]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=place, env=os.environ | variables, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
