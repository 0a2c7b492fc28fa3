"""Tries mutants: the file is changed in a copy of the checkout, and what `make test` runs there is run."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.mutation.mutants import Mutant
from tests.mutation.scores import SURVIVED
from tests.support.runs_of_tests import state_of_the_sources

NOT_FOUND = 4
"""pytest's exit status where a test that it was given is not there."""
FIRST = 25
"""So many tests are tried alone first."""
SLACK = 10
"""How many times as long as without a mutant the tests may take, and a minute more."""
BIN = Path(sys.executable).parent
FORM = "E,W,I,RUF100"
"""Rules of ruff on the form of the text, which mutants break without meaning anything by it."""


@dataclass(frozen=True)
class Area:
    """Modules, and the tests that have to notice what is changed in them."""

    name: str
    mutate: tuple[str, ...]
    tests: tuple[str, ...]
    users: tuple[str, ...]
    """Tests of other rooms; a file of them is tried on a mutant if it runs the changed function at all."""


class Attempts:
    """What became of each mutant, on disk at once: an interrupted run goes on where it was."""

    def __init__(self, file: Path, root: Path) -> None:
        """What was tried with other sources or other tests counts no longer."""
        self.file = file
        self.sources = state_of_the_sources(root)
        kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        self.outcomes: dict[str, str] = kept["outcomes"] if kept.get("sources") == self.sources else {}

    def add(self, mutant: Mutant, outcome: str) -> str:
        self.outcomes[mutant.name] = outcome
        content = {"sources": self.sources, "outcomes": self.outcomes}
        self.file.write_text(json.dumps(content, indent=1), encoding="utf-8")
        return outcome


class Workshop:
    """A copy of the checkout, in which the area's tests pass as long as nothing is changed."""

    def __init__(self, root: Path, directory: Path, area: Area) -> None:
        self.directory = directory
        self.area = area
        shutil.rmtree(directory, ignore_errors=True)
        copy_checkout(root, directory)
        self.environment = environment(directory)
        # Python and mypy would take what they know of another mutant of the same size and second.
        self.modified = int(time.time())
        self.server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py"))],
            cwd=directory,
            env=self.environment,
            process_group=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        files = sorted(str(path.relative_to(self.directory)) for path in self.mutated_files())
        clean = self.run((*self.area.tests, *self.area.users), lines_of=files, seconds=1800)
        if clean["failed"] or clean["status"]:
            sys.exit(f"{self.area.name}: the tests do not pass as they are:\n{self.log()}")
        self.lines: dict[str, dict[str, list[int]]] = clean["lines"]
        self.seconds: dict[str, float] = clean["seconds"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.server.stdin
        self.server.stdin.close()
        self.server.wait()

    def mutated_files(self) -> Iterator[Path]:
        for pattern in self.area.mutate:
            yield from self.directory.glob(pattern)

    def run(
        self,
        tests: Iterable[str],
        *,
        order: list[str] | None = None,
        lines_of: list[str] | None = None,
        seconds: float,
    ) -> Any:
        """The tests, in a process of their own, until one fails."""
        assert self.server.stdin
        assert self.server.stdout
        request = {
            "tests": list(tests),
            "order": order or [],
            "lines_of": lines_of or [],
            "seconds": seconds,
            "answer": str(self.directory / "answer.json"),
            "log": str(self.directory / "log.txt"),
        }
        self.server.stdin.write(f"{json.dumps(request)}\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())

    def log(self) -> str:
        """The end of what pytest printed in the last run."""
        return (self.directory / "log.txt").read_text(encoding="utf-8", errors="replace")[-5000:]

    def attempt(self, mutant: Mutant) -> str:
        """Who noticed the mutant: a test, mypy or ruff; `survived` where nobody did."""
        path = self.directory / mutant.file
        original, modified = path.read_bytes(), path.stat().st_mtime_ns
        try:
            path.write_text(mutant.source(), encoding="utf-8")
            self.modified += 1
            os.utime(path, (self.modified, self.modified))
            return self.noticed_by(mutant)
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(modified, modified))

    def noticed_by(self, mutant: Mutant) -> str:
        seconds = SLACK * sum(self.seconds.values()) + 60
        ran_by = self.tests_that_run(mutant)
        hit_files = {test.partition("::")[0] for test in ran_by}
        users = [file for file in self.area.users if file in hit_files]
        # Most mutants are killed by the first of the tests that run them, and few files are soon collected.
        for tests in filter(None, (ran_by[:FIRST], [*self.area.tests, *users])):
            ran = self.run(tests, order=ran_by, seconds=seconds)
            if ran["status"] == NOT_FOUND:
                continue  # a test whose name is another one each time cannot be asked for alone
            if ran["failed"] or ran["status"]:
                return next(iter(ran["failed"]), f"pytest ended with {ran['status']}")
        if ran["status"] == NOT_FOUND:
            sys.exit(f"{mutant.name}: pytest does not find the area's tests:\n{self.log()}")
        for checker in (("mypy", mutant.file), ("ruff", "check", "--quiet", "--ignore", FORM, mutant.file)):
            command = [str(BIN / checker[0]), *checker[1:]]
            checked = subprocess.run(
                command, cwd=self.directory, env=self.environment, capture_output=True, check=False
            )
            if checked.returncode:
                return checker[0]
        return SURVIVED

    def tests_that_run(self, mutant: Mutant) -> list[str]:
        """Those tests that run the changed function, the fastest of them first."""
        ran = self.lines[mutant.file]
        hits = {test for test, lines in ran.items() if any(line in mutant.lines for line in lines)}
        return sorted(hits, key=lambda test: self.seconds.get(test, 0.0))


def copy_checkout(root: Path, directory: Path) -> None:
    """What git knows of, and the guest programs."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    guest_programs = [str(path.relative_to(root)) for path in (root / "src/ktrial/_guest").rglob("*")]
    for name in filter(None, {*listed, *guest_programs}):
        if (root / name).is_file():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, directory / name)


def environment(directory: Path) -> dict[str, str]:
    """Programs that tests start import the copy, too; what a mutant keeps for a user is kept in there."""
    paths = os.pathsep.join(str(directory / name) for name in ("src", "."))
    own = {f"XDG_{name}_HOME": str(directory / "home" / name.lower()) for name in ("DATA", "STATE", "CONFIG")}
    own["MYPY_CACHE_DIR"] = str(directory.parent / "mypy-cache")
    return {**os.environ, **own, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
