"""What `ktrial` costs before it does anything: CPU, on top of an empty Python program's."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.report_records import a_record
from tests.support.stored_results import a_store

from bench.row import Row

ROUNDS = 9
MOST_TO_START, MOST_TO_SHOW = 0.15, 0.5
NOTE = (
    "to start: user and system time on top of that of python3 -c pass, medians of 9 rounds; what ktrial "
    "keeps of the first is there"
)


def rows() -> Iterator[Row]:
    """`--version`, help, completion, and commands that only read the store.

    Of nine rounds the first works out what the others find kept: names for completion, what `show` prints.
    """
    empty = cpu_seconds(["-c", "pass"])
    for what, arguments, environment in CASES:
        spent = cpu_seconds(["-c", PROGRAM, *arguments], environment)
        yield _row(what, spent - empty, MOST_TO_START)
    with tempfile.TemporaryDirectory() as directory:
        store = {"KTRIAL_STORE": str(a_store(Path(directory), a_record()))}
        for what, words in STORED:
            spent = cpu_seconds(["-c", PROGRAM], store | completion(words))
            yield _row(what, spent - empty, MOST_TO_START)
        for command in ("list", "show"):
            spent = cpu_seconds(["-c", PROGRAM, command], store)
            yield _row(command, spent - empty, MOST_TO_SHOW)


def _row(what: str, seconds: float, most: float) -> Row:
    return Row(f"{what}: processor time to start", max(seconds, 1e-6), most_seconds=most, note=NOTE)


PROGRAM = "from ktrial.cli.main import main; main()"


def completion(words: str) -> dict[str, str]:
    """What bash asks with."""
    return {"_KTRIAL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}


CASES: tuple[tuple[str, list[str], dict[str, str]], ...] = (
    ("--version", ["--version"], {}),
    ("--help", ["--help"], {}),
    ("run --help", ["run", "--help"], {}),
    ("completing a command", [], completion("ktrial re")),
    ("completing an option", [], completion("ktrial run --st")),
    ("completing a workload", [], completion("ktrial compare --workload fo")),
    ("completing a kernel", [], completion("ktrial compare --kernel deb")),
    ("completing a knob", [], completion("ktrial knob show vm.")),
)
STORED = (
    ("completing a stored study", "ktrial show qu"),
    ("completing a treatment", "ktrial explain --from deb"),
)


def cpu_seconds(arguments: list[str], environment: dict[str, str] | None = None) -> float:
    """The median of what Python takes for it."""
    return statistics.median(_once([sys.executable, *arguments], environment or {}) for _ in range(ROUNDS))


def _once(command: list[str], environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, env=os.environ | environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
