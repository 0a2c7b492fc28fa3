"""A store of 100,000 trials, or of a million, in SQLite and in PostgreSQL: list, history, site side by side.

What histories and sites ask of each study is in the store, as each run leaves it. Of the site's results 50
are made whole, the others are in brief; then it is built again, which makes 50 more whole.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support import databases
from tests.support.grown_studies import grown_on_server, grown_store

from bench.row import Row
from ktrial.experiment.explain import stored_explanations
from ktrial.report.site.site import build
from ktrial.store.store import open_store

LARGE = "KTRIAL_BENCH_LARGE"
"""Where it is set to 1 in the environment, the stores have a million trials: minutes, and 8 GB of disk."""
MOST_SECONDS, MOST_FOR_A_SITE = 2.0, 30.0
"""On idle cores, for a million trials."""


def rows() -> Iterator[Row]:
    """Seconds of each command, whole processes but for the site."""
    trials = 1_000_000 if os.environ.get(LARGE) == "1" else 100_000
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch, databases.running() as server:
        file = grown_store(Path(scratch), trials)
        server.sql("postgres", "CREATE DATABASE grown TEMPLATE template0")
        grown_on_server(server.url("grown"), trials)
        for name, location in (("SQLite", str(file)), ("PostgreSQL", server.url("grown"))):
            what = f"{trials:,} trials in {name}"
            yield from measured(location, what, Path(scratch) / name)


def measured(location: str, what: str, scratch: Path) -> Iterator[Row]:
    """List, history and site of one store."""
    for command in (("list",), ("history", "load-0000")):
        yield from _two(f"{what}: {command[0]}", lambda: _ktrial(*command, "--store", location), MOST_SECONDS)  # noqa: B023
    with open_store(location) as store:
        for again in ("", ", again"):

            def build_it() -> object:
                return build(store, scratch / "site", explain=stored_explanations, notes=scratch / "notes")

            yield from _two(f"{what}: site{again}", build_it, MOST_FOR_A_SITE)


def _ktrial(*arguments: str) -> None:
    command = [sys.executable, "-c", "from ktrial_launcher import main; main()", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _two(what: str, action: Callable[[], object], most: float) -> Iterator[Row]:
    """Seconds on the clock, and of this system's processors but for a server's: after one that is not
    counted, which brings the files into memory.
    """
    action() if most == MOST_SECONDS else None
    before, began = _processor(), time.monotonic()
    action()
    took, used = time.monotonic() - began, _processor() - before
    yield Row(what, took, most_seconds=most)
    yield Row(f"{what}: processor time", used, most_seconds=most)


def _processor() -> float:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
