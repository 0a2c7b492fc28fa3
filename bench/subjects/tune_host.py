"""What a search adds to the workload on this system: around a run, and at its start."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.row import Row, median, seconds

RUNS, ROUNDS = 30, 3
MOST_EACH, MOST_START = 0.050, 2.0
_KTRIAL = (sys.executable, "-c", "from ktrial.cli.main import main; main()")
_SLEEP = 0.02
_KNOBS = "vm.stat_interval=1..9,vm.vfs_cache_pressure=50..200"
_NEEDS_ROOT = "only root may change knobs"


def rows() -> Iterator[Row]:
    """A dry run from its start to its end; and what a run of a search takes beyond the workload."""
    yield Row("`ktrial tune --dry-run`, from start to end", _start_up(), most_seconds=MOST_START)
    if os.geteuid() != 0:
        yield Row("a run of a search beyond its workload", 0.0, note=_NEEDS_ROOT)
        return
    rounds = [_around() for _ in range(ROUNDS)]
    what = f"a run of a search on the host beyond its workload (`sleep {_SLEEP}`, two knobs, stored)"
    yield Row(what, median([each for each, _ in rounds]), most_seconds=MOST_EACH)
    yield Row(
        "a search of 30 runs beyond its runs: start, choosing, report", median([all_ for _, all_ in rounds])
    )


def _start_up() -> float:
    with tempfile.TemporaryDirectory(prefix="ktrial-bench-") as directory:
        store = ("--store", str(Path(directory) / "tune.db"))
        dry = ("tune", "--knobs", "vm.stat_interval=1..9", *store, "--dry-run", "--", "/bin/true")
        _took(*dry)  # An installed ktrial has its modules compiled: the first start does that here.
        return median([_took(*dry) for _ in range(ROUNDS)])


def _around() -> tuple[float, float]:
    """Seconds around each run of the workload; and all that the search takes beyond its runs."""
    with tempfile.TemporaryDirectory(prefix="ktrial-bench-") as directory:
        store = str(Path(directory) / "tune.db")
        options = ("--budget", str(RUNS), "--allow-host-changes", "--store", store, "--no-html", "--json")
        command = (*_KTRIAL, "tune", "--knobs", _KNOBS, *options, "--", "sleep", str(_SLEEP))
        done: list[subprocess.CompletedProcess[bytes]] = []
        whole = seconds(
            lambda: done.append(
                subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            )
        )
        observations = json.loads(done[0].stdout)["observations"]
        each = [one["seconds"] - one["values"]["elapsed"] / 1e9 for one in observations if one["values"]]
        return median(each), whole - sum(one["seconds"] for one in observations)


def _took(*arguments: str) -> float:
    command = (*_KTRIAL, *arguments)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return seconds(lambda: subprocess.run(command, check=True, capture_output=True, env=environment))
