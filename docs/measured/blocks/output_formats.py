"""docs/formats.md: what is read of what other programs print, as the formats themselves say it."""

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.wording import table

from ktrial import importers, program_outputs
from ktrial.program_outputs import Column

_OF_FILES = {
    "csv": "a row a run; or a row a group with mean, standard error, SD or SD %; the tables of hyperfine and "
    "pytest-benchmark are in seconds",
    "phoronix": "every run, from RawString; failed runs are noticed by the number of run times; directories",
    "unixbench": "logs are recomputed pass by pass; tests outside the index, too; each report is a run",
}
"""What is read of files that `ktrial analyze` takes, and that no program prints."""


def _formats(measuring: Measuring) -> str:
    del measuring
    formats, _ = program_outputs.installed()
    files, _ = importers.installed()
    rows = [
        [f"`{name}`", each.summary, "as the file says", f"{_OF_FILES[name]}."]
        for name, each in files.items()
        if name not in formats
    ]
    rows += [
        [f"`{name}`", each.summary, _metrics(each.columns), f"{each.remarks}."]
        for name, each in formats.items()
    ]
    heads = ("format", "printed by", "metrics (unit; which is better)", "what is read, and what is not")
    return table(heads, rows)


def _metrics(columns: tuple[Column, ...]) -> str:
    """`read/write rate (IOPS; higher)`: metrics that differ in their first words only are one."""
    shown: dict[tuple[str, str, str], list[str]] = {}
    for each in columns:
        first, _, rest = each.metric.partition(" ")
        alike = f" {rest}" if rest in {"rate", "throughput", "latency", "latency p99"} else ""
        key = (alike or each.metric, each.unit, each.direction.value)
        shown.setdefault(key, []).append(first if alike else "")
    return ", ".join(
        f"{'/'.join(first)}{name} ({'; '.join(filter(None, (unit, better)))})"
        for (name, unit, better), first in shown.items()
    )


BLOCKS = (Block("output-formats", "docs/formats.md", _formats, simulated=True),)
