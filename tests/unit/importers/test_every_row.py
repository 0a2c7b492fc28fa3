"""Every line of tables, of the Phoronix Test Suite's XML and of UnixBench's reports is removed, doubled,
garbled, cut: that is noticed, or the numbers stay right.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.places import FOREIGN, PROGRAM_OUTPUTS

from ktrial import importers, program_outputs
from ktrial.analysis.audit import audit
from ktrial.importers import SourceFile
from ktrial.importers.errors import ImportFailed
from ktrial.model.imported import Imported

MOST_LINES = 30
"""Of a file; of longer ones every second or third is changed."""
CHANGES: dict[str, Callable[[str], list[str]]] = {
    "removed": lambda line: [],
    "doubled": lambda line: [line, line],
    "garbled": lambda line: [line[::-1]],
    "cut": lambda line: [line[: len(line) // 2]],
}
KERNELS = {"6.1": 12.3, "6.12": 11.9}


def measured(base: float, run: int, digits: int = 4) -> str:
    """A number that no other run has."""
    return f"{base * (1 + (run * 37 + round(base * 10)) % 101 / 1000):.{digits}f}"


RUNS = [(kernel, run, measured(base, run)) for run in range(1, 9) for kernel, base in KERNELS.items()]
TABLES = {
    "a row a run": ["kernel,trial,seconds", *(f"{kernel},{run},{value}" for kernel, run, value in RUNS)],
    "runs without numbers": ["kernel;time (ms)", *(f"{kernel};{value}" for kernel, _, value in RUNS)],
    "a metric in each family": [
        "benchmark,kernel,run,unit,value",
        *(
            f"{name},{kernel},{run},{unit},{measured(base, run)}"
            for name, unit, base in (("pipe", "us", 4.25), ("read", "MB/s", 812.5))
            for kernel, run, _ in RUNS
        ),
    ],
    "Markdown": [
        "# Results",
        "",
        "| kernel | run | seconds |",
        "|---|---:|---:|",
        *(f"| {kernel} | {run} | {value} |" for kernel, run, value in RUNS),
        "",
        "Measured on a laptop.",
    ],
    "comments": [
        "# host: builder",
        "# clients = 4",
        "kernel\trun\tthroughput MB/s",
        *(f"{kernel}\t{run}\t{value}" for kernel, run, value in RUNS),
    ],
    "a row a group": [
        "test,scheduler,mean,sd,se,runs",
        *(
            f"{test},{scheduler},{mean:.4f},{0.05 * mean:.4f},{0.05 * mean / 10**0.5:.4f},10"
            for test, base in (("hackbench", 21.53), ("pipe", 3.417))
            for scheduler, mean in (("eevdf", base), ("bore", base * 1.031), ("ext", base * 0.973))
        ),
    ],
    "decimal commas": [
        "kernel;run;time (s)",
        *(f"{kernel};{run};{value.replace('.', ',')}" for kernel, run, value in RUNS),
    ],
}
FILES = {
    **{name: (f"{name.replace(' ', '_')}.csv", "\n".join(lines)) for name, lines in TABLES.items()},
    **{
        path.name: (path.name, path.read_text())
        for path in sorted([*FOREIGN.iterdir(), *PROGRAM_OUTPUTS.iterdir()])
        if path.name == "composite.xml" or "unixbench" in path.name
    },
}


def read(name: str, text: str) -> Imported | None:
    """What is in it; None where it is refused."""
    try:
        return importers.read(SourceFile(Path(name), text))[1]
    except ImportFailed:
        return None


def numbers_of(imported: Imported) -> dict[tuple[str, ...], tuple[float, ...]]:
    """What was measured, in which unit and which way, of which group → its values, or its summary."""
    numbers: dict[tuple[str, ...], tuple[float, ...]] = {}
    for family in imported.families:
        for group in family.groups:
            parts = group.summary and (group.summary.mean, group.summary.sd, group.summary.standard_error)
            summary = tuple(part.value for part in parts or () if part)
            key = (family.name, family.unit, str(family.direction), group.label)
            numbers[key] = tuple(sorted(group.values)) or summary
    return numbers


def is_noticed(change: str, before: Imported, after: Imported | None) -> bool:
    """Whether it is refused or told, or no number changed; of what was removed, whether the rest is right."""
    if after is None or (after.warnings, after.understood) != (before.warnings, before.understood):
        return True
    numbers, left = numbers_of(before), numbers_of(after)
    is_part = all(key in numbers and set(values) <= set(numbers[key]) for key, values in left.items())
    if left == numbers or (change == "removed" and is_part):
        return True
    return {finding.kind for finding in audit((after,))} != {finding.kind for finding in audit((before,))}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("file", FILES)
def test_a_changed_line_is_noticed(file: str, change: str) -> None:
    name, text = FILES[file]
    before = read(name, text)
    assert before is not None
    lines = text.rstrip("\n").split("\n")
    unnoticed = []
    for at in range(0, len(lines), 1 + len(lines) // MOST_LINES):
        changed = "\n".join([*lines[:at], *CHANGES[change](lines[at]), *lines[at + 1 :], ""])
        if not is_noticed(change, before, read(name, changed)):
            unnoticed.append((at + 1, lines[at]))
    assert unnoticed == []


def test_each_importer_has_a_file_whose_lines_are_changed() -> None:
    """Those of programs' outputs are changed in test_every_line.py."""
    own = set(importers.installed()[0]) - set(program_outputs.installed()[0])
    assert {importers.read(SourceFile(Path(name), text))[0].name for name, text in FILES.values()} == own
