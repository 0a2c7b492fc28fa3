"""`make bench`: how fast ktrial is, as ratios to other programs that are measured side by side.

Each module in bench/subjects has a function `rows`, which measures and yields rows; one may have a function
`tables` too, which yields tables of other findings.
Exit status 0, however slow it was: on a machine that does other work too, a slow run says little about
ktrial. It is 1 where something grows faster than its work (the subject `growth`); with --strict, where any
limit that was measured does not hold.
"""

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from bench import subjects
from bench.row import Row, told


def main() -> int:
    """Measure, print, and return the exit status."""
    chosen = arguments()
    console = Console()
    console.print(f"{len(os.sched_getaffinity(0))} cores; {load()} before")
    measured = []
    for row in measure(chosen.subjects):
        console.print(f"  {row.what}: {told(row.seconds)}")
        measured.append(row)
    console.print(table(measured))
    for drawn in other_tables(chosen.subjects):
        console.print(drawn)
    console.print(f"{load()} after; limits in seconds are meant for idle cores")
    for note in dict.fromkeys(row.note for row in measured if row.note):
        console.print(note, highlight=False)
    failed = [row for row in measured if row.holds is False and (chosen.strict or row.grows_too_fast)]
    return int(bool(failed))


def arguments() -> argparse.Namespace:
    """What the user asked for."""
    names = sorted(module.name for module in pkgutil.iter_modules(subjects.__path__))
    parser = argparse.ArgumentParser(prog="bench", description="How fast ktrial is, beside other programs.")
    parser.add_argument("subjects", nargs="*", default=names, metavar="SUBJECT", help=", ".join(names))
    parser.add_argument("--strict", action="store_true", help="exit with 1 where something does not hold")
    chosen = parser.parse_args()
    if unknown := sorted(set(chosen.subjects) - set(names)):
        parser.error(f"there is no subject {', '.join(unknown)}; there are: {', '.join(names)}")
    return chosen


def measure(names: list[str]) -> Iterator[Row]:
    """The rows of the subjects, as they are measured."""
    for name in names:
        yield from importlib.import_module(f"{subjects.__name__}.{name}").rows()


def other_tables(names: list[str]) -> Iterator[Table]:
    """What subjects show that is no speed: those that have a function `tables`."""
    for name in names:
        subject = importlib.import_module(f"{subjects.__name__}.{name}")
        if hasattr(subject, "tables"):
            yield from subject.tables()


def table(rows: list[Row]) -> Table:
    """The rows for people."""
    drawn = Table("what", "ktrial", "against", "ratio", "wanted", "holds")
    for row in rows:
        other = "not measured" if row.other_seconds is None else told(row.other_seconds)
        drawn.add_row(
            row.what,
            told(row.seconds),
            f"{row.against}: {other}" if row.against else _exponent(row),
            f"{row.ratio:.2g}" if row.ratio is not None else "",
            wanted(row),
            {True: "yes", False: "NO", None: ""}[row.holds],
        )
    return drawn


def _exponent(row: Row) -> str:
    return "" if row.exponent is None else f"grows with exponent {row.exponent:.2f}"


def wanted(row: Row) -> str:
    """The limits in words."""
    ratio = f"≥ {row.least_ratio:g} times faster" if row.least_ratio is not None else ""
    if row.most_slowdown is not None:
        ratio = f"≤ {row.most_slowdown:g} times slower"
    limit = f"< {told(row.most_seconds)}" if row.most_seconds is not None else ""
    grows = f"exponent ≤ {row.most_exponent:g}" if row.most_exponent is not None else ""
    return ", ".join(text for text in (ratio, limit, grows) if text)


def load() -> str:
    """How busy the machine is: the numbers mean little beside a high one."""
    return "load average " + " ".join(f"{average:.1f}" for average in os.getloadavg())


if __name__ == "__main__":
    sys.exit(main())
