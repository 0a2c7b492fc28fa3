"""Many runs of a short command on this system, beside hyperfine; and what ktrial does meanwhile."""

import json
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.row import Row, median, seconds
from ktrial import monitors
from ktrial.machines.host import HostMachine
from ktrial.model.machine import Boot
from ktrial.target import Run, StepResult

COMMAND = ("/bin/sleep", "0.001")
"""A command of about a millisecond."""
RUNS, ROUNDS = 200, 5
MOST_OWN_WORK = 0.001
"""ktrial's own CPU time while a workload runs, as a share of the wall clock."""
_LONG = ("/bin/sh", "-c", "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done")


def rows() -> Iterator[Row]:
    """In turn, so that both meet the same load."""
    if not shutil.which("hyperfine"):
        note = "hyperfine is not installed: sudo apt-get install hyperfine"
        yield Row("a run of `sleep 0.001` on the host", _ours()[0], "hyperfine", note=note)
        return
    rounds = [(*_ours(), *_theirs()) for _ in range(ROUNDS)]
    whole, inside, other_whole, other_inside = (median(list(column)) for column in zip(*rounds, strict=True))
    name = f"a run of `sleep 0.001` on the host ({RUNS} in a row)"
    yield Row(f"{name}, with all around it, counters too", whole, "hyperfine -N, without", other_whole)
    yield Row(f"{name}, as it is measured", inside, "hyperfine -N", other_inside, least_ratio=1.0)
    share = own_share()
    yield Row(
        "ktrial's own CPU time in a second of a workload",
        share,
        most_seconds=MOST_OWN_WORK,
        note=f"ktrial worked {share * 100:.4f} % of the time while a workload ran",
    )


def _perform(*steps: Run) -> tuple[StepResult, ...]:
    machine = HostMachine()
    with machine.start(Boot(kernel=machine.kernel())) as target:
        return target.perform(steps)


def _ours() -> tuple[float, float]:
    """Seconds a run: with all that is around it, and as measured (median)."""
    run = Run(argv=COMMAND, watch=monitors.watched_files())
    results: list[StepResult] = []
    whole = seconds(lambda: results.extend(_perform(*(run,) * RUNS)))
    return whole / RUNS, statistics.median(result.wall_ns for result in results) / 1e9


def _theirs() -> tuple[float, float]:
    """The same of hyperfine, without a shell."""
    with tempfile.TemporaryDirectory(prefix="ktrial-bench-") as directory:
        report = Path(directory) / "report.json"
        command = ("hyperfine", "-N", "--runs", str(RUNS), "--export-json", str(report), " ".join(COMMAND))
        whole = seconds(lambda: subprocess.run(command, check=True, capture_output=True))
        return whole / RUNS, float(json.loads(report.read_text())["results"][0]["median"])


def own_share() -> float:
    """The middle one of some rounds: another program may have disturbed one."""
    results = _perform(*(Run(argv=_LONG),) * ROUNDS)
    return median([result.rusage["ktrial_ns"] / result.wall_ns for result in results])
