"""Reports of stored studies, beside an earlier commit of ktrial: CPU time from the store to the page.

`make bench BENCH=report AGAINST=COMMIT`: the latest study of each store that the variable STORES names; where
it names none, `studies/quick.toml`, which is run first.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.row import Row
from bench.subjects.quick import HERE, PROGRAM, STUDY, checkout, cpu_seconds_of

AGAINST = "5c6776eaa"
"""The commit before charts were drawn without a JavaScript engine; the variable AGAINST names another."""
ROUNDS = 3
TIMES_FASTER = 3
"""The goal: a third of what that commit took, and less."""
NOTE = "reports: user and system time, the least of 3 runs in turn, after one of each that is not counted"


def rows() -> Iterator[Row]:
    """Both in turn, so that both meet the same load."""
    commit = os.environ.get("AGAINST", AGAINST)
    with checkout(commit) as there, tempfile.TemporaryDirectory() as directory:
        for store in os.environ.get("STORES", "").split() or [str(quick_store(Path(directory)))]:
            pages = [Path(directory) / name for name in ("here.html", "there.html")]
            rounds = [
                tuple(
                    cpu_seconds_of(place, "report", "--store", store, "--html", str(page))
                    for place, page in zip((HERE, there), pages, strict=True)
                )
                for _ in range(ROUNDS + 1)
            ]
            ours, theirs = (min(sides) for sides in zip(*rounds[1:], strict=True))
            what = f"ktrial report, {Path(store).name}"
            yield Row(what, ours, commit, theirs, least_ratio=TIMES_FASTER, note=NOTE)


def quick_store(directory: Path) -> Path:
    """A store with the study that everybody runs first."""
    store = directory / "quick.db"
    command = [sys.executable, "-c", PROGRAM, "run", str(STUDY), "--no-html", "--store", str(store)]
    subprocess.run(
        command,
        cwd=HERE,
        env=os.environ | {"PYTHONPATH": str(HERE / "src")},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return store
