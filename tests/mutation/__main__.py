"""Draws mutants of the code that verdicts and settings rest on, and counts those that the tests kill.

python -m tests.mutation [AREA…] [--sample N] [--seed S]; README.md says how to read the result. The exit
status is 1 where the tests kill less than 85 % in an area.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from scipy.stats import binomtest

HERE = Path(__file__).parent
MUTMUT = Path(sys.executable).with_name("mutmut")
SPINNER = tuple("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
LEAST = 0.85
"""The share of mutants that the tests have to kill in each area."""
KILLED = {1, 3, 24, 36, -24, 152, 255}
"""mutmut's exit codes of a mutant that a test noticed: by failing, by an error, by not ending in time."""


@dataclass(frozen=True)
class Area:
    """Modules, and the tests that must notice what is changed in them."""

    name: str
    mutate: list[str]
    tests: list[str]


@dataclass(frozen=True)
class Score:
    """What became of the mutants that were drawn: name → mutmut's exit code."""

    area: str
    of: int
    drawn: dict[str, int]

    @property
    def survivors(self) -> list[str]:
        return sorted(name for name, code in self.drawn.items() if code not in KILLED)

    @property
    def killed(self) -> int:
        return len(self.drawn) - len(self.survivors)

    @property
    def share(self) -> float:
        return self.killed / len(self.drawn)

    @property
    def row(self) -> str:
        interval = binomtest(self.killed, len(self.drawn)).proportion_ci(0.95, method="wilson")
        share = f"{self.share:.0%} ({interval.low:.0%} to {interval.high:.0%})"
        return f"| {self.area} | {self.of} | {len(self.drawn)} | {self.killed} | {share} |"


def areas(file: Path) -> list[Area]:
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    return [Area(name, table["mutate"], table["tests"]) for name, table in tables.items()]


def make_checkout(root: Path, directory: Path, area: Area) -> None:
    """A copy of the checkout, with mutmut's configuration for the area."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    guest_programs = [str(path.relative_to(root)) for path in (root / "src/ktrial/_guest").rglob("*")]
    for name in filter(None, {*names, *guest_programs}):
        if (root / name).is_file():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, directory / name)
    # Python remembers of a directory on its path that it was not there as it started.
    (directory / "mutants" / "src").mkdir(parents=True)
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    project["tool"]["mutmut"] = mutmut_configuration(root, names, area)
    (directory / "pyproject.toml").write_text(tomli_w.dumps(project), encoding="utf-8")


def mutmut_configuration(root: Path, names: list[str], area: Area) -> dict[str, Any]:
    """Without the tests marked `root`: what they change here, the mutated code would have to put back."""
    top = {name.split("/")[0] for name in names if name} - {"src", "tests", "pyproject.toml"}
    return {
        "source_paths": ["src"],
        "only_mutate": area.mutate,
        "also_copy": sorted(name for name in top if (root / name).exists()),
        "pytest_add_cli_args": ["-n0", "-x", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", "not root"],
        "pytest_add_cli_args_test_selection": area.tests,
        # What has been computed and kept before a mutant is tried would hide it.
        "process_isolation": "forkserver",
        "timeout_constant": 30.0,
        "use_git_change_detection": False,
    }


def mutmut(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Programs that tests start import the mutated package, too."""
    paths = os.pathsep.join(str(directory / "mutants" / name) for name in ("src", "."))
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [str(MUTMUT), "run", "--max-children", "1", *arguments]
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, errors="replace", check=False
    )


def said(run: subprocess.CompletedProcess[str]) -> str:
    """Without the pictures of what goes on."""
    lines = [line for line in f"{run.stdout}\n{run.stderr}".splitlines() if not line.startswith(SPINNER)]
    return "\n".join(lines[-100:])


def exit_codes(directory: Path) -> Iterator[tuple[str, int | None]]:
    for file in sorted(directory.glob("mutants/**/*.meta")):
        yield from json.loads(file.read_text(encoding="utf-8"))["exit_code_by_key"].items()


def draw(mutants: list[str], sample: int, seed: int) -> list[str]:
    return sorted(random.Random(seed).sample(sorted(mutants), min(sample, len(mutants))))


def score(area: Area, root: Path, work: Path, sample: int, seed: int) -> Score:
    directory = work / area.name
    shutil.rmtree(directory, ignore_errors=True)
    make_checkout(root, directory, area)
    listed = mutmut(directory, "nothing-is-called-this")
    mutants = [name for name, _ in exit_codes(directory)]
    if not mutants or "Filtered for specific mutants" not in listed.stderr:
        sys.exit(f"{area.name}: the tests do not pass as they are:\n{said(listed)}")
    drawn = draw(mutants, sample, seed)
    run = mutmut(directory, *drawn)
    codes = dict(exit_codes(directory))
    undecided = [name for name in drawn if codes[name] is None]
    if undecided:
        sys.exit(f"{area.name}: not tried: {undecided}\n{said(run)}")
    return Score(area.name, len(mutants), {name: code for name in drawn if (code := codes[name]) is not None})


def survivors(directory: Path, names: list[str]) -> Iterator[str]:
    for name in names:
        command = [str(MUTMUT), "show", name]
        yield subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False).stdout


def main() -> int:
    """0 where every area's share is high enough."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("area", nargs="*", help="as in the file of areas (default: all)")
    parser.add_argument("--sample", type=int, default=60, help="mutants drawn in each area (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (default: 1)")
    parser.add_argument("--areas", type=Path, default=HERE / "areas.toml")
    parser.add_argument("--root", type=Path, default=HERE.parents[1], help="the checkout (default: this one)")
    parser.add_argument("--work", type=Path, default=HERE.parents[1] / "target" / "mutation")
    options = parser.parse_args()
    known = areas(options.areas)
    if unknown := set(options.area) - {area.name for area in known}:
        parser.error(f"no area {', '.join(unknown)}; there are {', '.join(area.name for area in known)}")
    print("| area | mutants | drawn | killed | share (95 %) |\n| --- | --- | --- | --- | --- |", flush=True)
    enough = True
    for area in known:
        if not options.area or area.name in options.area:
            result = score(area, options.root, options.work, options.sample, options.seed)
            print(result.row, flush=True)
            diffs = "\n".join(survivors(options.work / area.name, result.survivors))
            (options.work / f"{area.name}.survivors.diff").write_text(diffs, encoding="utf-8")
            enough = enough and result.share >= LEAST
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
