"""Runs tests in a new process for each line of its input, in the copy of the checkout in which it is started.

The processes are forked from this one, which has imported what is dear and never ktrial: nothing that one
run has computed or kept can hide a mutant from the next. Requests and answers are JSON, one a line.
"""

import importlib
import json
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PRELOADED = (
    "pytest",
    "coverage",
    "hypothesis",
    "numpy",
    "scipy.stats",
    "pydantic",
    "sqlalchemy",
    "typer",
    "rich",
)
"""Imported once, for all runs."""
LONGEST_TEST = 300
"""Seconds until pytest ends a test; a mutant that makes one wait for ever is killed by that."""
OUT_OF_TIME = "out of time"


class Recorder:
    """A plugin: the first test that fails; and where lines are asked for, which tests run which lines."""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: list[str] = []

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self.coverage:
            self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)


class FirstAsked:
    """A plugin: those tests first that were named first; pytest keeps the order of files otherwise."""

    def __init__(self, order: Iterable[str]) -> None:
        self.place = {nodeid: place for place, nodeid in enumerate(order)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items.sort(key=lambda item: self.place.get(item.nodeid, len(self.place)))


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Run pytest in this process."""
    import pytest

    coverage = None
    if request["lines_of"]:
        from coverage import Coverage

        coverage = Coverage(data_file=None, include=request["lines_of"], config_file=False)
        coverage.start()
    recorder = Recorder(coverage)
    fixed = ["-n0", "-x", "-q", "--tb=short", "-p", "no:cacheprovider", "-m", "not root"]
    arguments = [*fixed, f"--timeout={LONGEST_TEST}", *request["tests"]]
    status = int(pytest.main(arguments, plugins=[recorder, FirstAsked(request["order"])]))
    answer: dict[str, Any] = {"status": status, "failed": recorder.failed, "seconds": recorder.seconds}
    if coverage:
        coverage.stop()
        answer["lines"] = lines_by_test(coverage.get_data(), request["lines_of"])
    return answer


def lines_by_test(data: Any, files: list[str]) -> dict[str, dict[str, list[int]]]:
    """File → test → the lines that it ran."""
    lines: dict[str, dict[str, list[int]]] = {}
    for file in files:
        tests: dict[str, list[int]] = defaultdict(list)
        for line, contexts in data.contexts_by_lineno(str(Path(file).absolute())).items():
            for nodeid in filter(None, contexts):
                tests[nodeid].append(line)
        lines[file] = tests
    return lines


def in_a_child(request: dict[str, Any]) -> dict[str, Any]:
    """What the run came to; whatever it has started and left behind ends with it."""
    answer, log = Path(request["answer"]), Path(request["log"])
    answer.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        os.setsid()
        with log.open("wb") as file:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        status = 70
        try:
            answer.write_text(json.dumps(run(request)), encoding="utf-8")
            status = 0
        finally:
            os._exit(status)
    if not ended_within(child, request["seconds"]):
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return {"status": -1, "failed": [OUT_OF_TIME]}
    if not answer.exists():
        return {"status": -1, "failed": ["the process that ran the tests died"]}
    told: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    return told


def ended_within(child: int, seconds: float) -> bool:
    """Whether the process has ended by then."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.05)
    return False


def main() -> None:
    """Until the input ends."""
    for name in PRELOADED:
        importlib.import_module(name)
    assert "ktrial" not in sys.modules, "ktrial was imported too early"

    for line in sys.stdin:
        print(json.dumps(in_a_child(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
