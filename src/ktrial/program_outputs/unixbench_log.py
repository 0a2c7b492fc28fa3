"""UnixBench's log of all passes: one reader for the workload that runs it, and for `ktrial analyze`."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ktrial.model.imported import BASELINES
from ktrial.program_outputs.errors import OutputDamaged
from ktrial.program_outputs.reading import number
from ktrial.text_lines import lines_of

UNITS = {
    "Double-Precision Whetstone": "MWIPS",
    "File Copy 1024 bufsize 2000 maxblocks": "KBps",
    "File Copy 256 bufsize 500 maxblocks": "KBps",
    "File Copy 4096 bufsize 8000 maxblocks": "KBps",
    "Shell Scripts (1 concurrent)": "lpm",
    "Shell Scripts (8 concurrent)": "lpm",
}
"""Of the tests of the index whose results are not in loops a second, `lps` (UnixBench's Run)."""
_TEST = re.compile(r"^(\S.{0,60}?) -- ([0-9]{1,6}) cop(?:y|ies)$")
_FACT = re.compile(r"^# (COUNT0|COUNT1|TIME|elapsed): (\S{1,40})$")
_UNIT = re.compile(r"^# COUNT2: (\S{1,12})$")
_Pass = list[dict[str, float]]
"""What each copy counted."""


@dataclass
class Section:
    """A test in the log, with so many copies, and its passes."""

    test: str
    copies: int
    passes: list[_Pass] = field(default_factory=list)
    unit: str = ""

    @property
    def result(self) -> float:
        """UnixBench's result (combinePassResults in Run); 0 where a pass that counts has none.

        Counts are summed over copies and times averaged; the lowest third of the passes (rounded down) is
        dropped; the result is the geometric mean of count / (time / timebase), or of the count where the
        timebase is 0.
        """
        rates = sorted((_count(copies), _rate(copies)) for copies in self.passes)
        counted = [rate for _, rate in rates[len(rates) // 3 :]]
        if min(counted) <= 0:
            return 0.0
        return math.exp(math.fsum(math.log(rate) for rate in counted) / len(counted))


def sections(text: str) -> list[Section]:
    """Every test that has passes, in the log's order. Raises OutputDamaged."""
    read: list[Section] = []
    copy: dict[str, float] = {}
    for at, line in enumerate([*lines_of(text), ""], start=1):
        if heading := _TEST.match(line):
            read.append(Section(heading[1], int(heading[2])))
        elif not read:
            continue
        elif line.startswith("#### Pass "):
            read[-1].passes.append([])
        elif unit := _UNIT.match(line):
            read[-1].unit = unit[1]
        elif fact := _FACT.match(line):
            value = number(fact[2])
            if value is None or value < 0:
                problem = f"{fact[1]} is {fact[2]!r}, not a number"
                raise OutputDamaged(format="unixbench", where=f"line {at}", problem=problem)
            copy[fact[1]] = value
        elif not line.strip() and copy:  # it ends what a copy counted
            if read[-1].passes and "COUNT0" in copy:
                read[-1].passes[-1].append(copy)
            copy = {}
    for section in read:
        section.passes = [copies for copies in section.passes if copies]
    return [section for section in read if section.passes]


def index(results: Mapping[str, float]) -> float:
    """Ten times the geometric mean of the results of all twelve tests over the baseline's."""
    logs = [math.log(results[test] / baseline) for test, baseline in BASELINES.items()]
    return 10 * math.exp(math.fsum(logs) / len(logs))


def _count(copies: _Pass) -> float:
    return math.fsum(copy["COUNT0"] for copy in copies)


def _rate(copies: _Pass) -> float:
    timebase = copies[0].get("COUNT1", 0.0)
    if not timebase:
        return _count(copies)
    # As in Run: a time of 0 or none at all stands for the elapsed time.
    time = math.fsum(copy.get("TIME") or copy.get("elapsed", 0.0) for copy in copies) / len(copies)
    return _count(copies) * timebase / time if time else 0.0
